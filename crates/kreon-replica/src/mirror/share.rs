//! Which part of a link copies may take.
//!
//! While other packets wait for the link, after each byte of a copy another one of theirs goes first: copies have at most
//! half. When nothing else waits, they have all of it.

use std::sync::Arc;

use kreon_sync::Mutex;

/// As much as copies may be ahead: the next copy waits until others have sent as much. One packet.
const LEAD_BYTES_MAX: u64 = 64 << 10;

/// Turns of copies and of everything else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Halves {
    /// Bytes of copies that others have not made up for.
    lead_bytes: u64,
}

impl Halves {
    /// Whether it is a copy's turn.
    pub fn may_copy(&self, others_wait: bool) -> bool {
        !others_wait || self.lead_bytes == 0
    }

    /// A copy was sent.
    pub fn copied(&mut self, bytes: u64) {
        self.lead_bytes = (self.lead_bytes + bytes).min(LEAD_BYTES_MAX);
    }

    /// Something else was sent.
    pub fn sent_other(&mut self, bytes: u64) {
        self.lead_bytes = self.lead_bytes.saturating_sub(bytes);
    }
}

/// The turns on one link, which the streams of several groups may have in common.
#[derive(Debug, Default)]
pub struct Share(Mutex<Turns>);

#[derive(Debug, Default)]
struct Turns {
    halves: Halves,
    /// Streams that have something else to send than copies, and found the window full.
    waiting: usize,
}

impl Share {
    pub(super) fn may_copy(&self) -> bool {
        let turns = self.0.lock();
        turns.halves.may_copy(turns.waiting > 0)
    }

    pub(super) fn copied(&self, bytes: u64) {
        self.0.lock().halves.copied(bytes);
    }

    pub(super) fn sent_other(&self, bytes: u64) {
        self.0.lock().halves.sent_other(bytes);
    }

    /// A stream waits until this is dropped.
    pub(super) fn wait(self: &Arc<Self>) -> Waiting {
        self.0.lock().waiting += 1;
        Waiting(Arc::clone(self))
    }
}

/// A stream waits for the window of its link.
#[derive(Debug)]
pub(super) struct Waiting(Arc<Share>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut turns = self.0.0.lock();
        turns.waiting = turns.waiting.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_turns_only_with_those_that_wait() {
        let mut halves = Halves::default();
        for _ in 0..5 {
            assert!(halves.may_copy(false));
            halves.copied(64 << 10);
        }
        assert!(!halves.may_copy(true));
        halves.sent_other(60 << 10);
        assert!(!halves.may_copy(true));
        halves.sent_other(4 << 10);
        assert!(halves.may_copy(true), "what was copied alone is not owed");
        halves.sent_other(1 << 20);
        halves.copied(4 << 10);
        assert!(!halves.may_copy(true), "nor is what others sent alone");
    }
}
