//! Waiting a moment for the writers that are about to sync, so that they share the next flush.
//!
//! Writers that a flush released soon come back with their next record. Without waiting, the first of
//! them leads the next flush alone and all the others wait for it, and for another one: two writers
//! would take turns and never share. So a leader waits until as many have come as the last flush
//! released and as wait already, but no longer than a fraction of what a flush takes. A writer that is
//! alone never waits.

use crate::sync::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::sync::Mutex;

/// A leader waits for at most this part of the time that the last flush took...
const FLUSH_PART: u32 = 8;

/// ... and never longer than this.
const PATIENCE_MAX: Duration = Duration::from_micros(500);

/// Those who were just released come within microseconds if they have a core: worth staying awake for.
const AWAKE_MAX: Duration = Duration::from_micros(50);
const NAP: Duration = Duration::from_micros(20);

/// The writers that sync.
#[derive(Default)]
pub(super) struct Crowd {
    /// Calls so far.
    calls: AtomicU64,
    last: Mutex<Group>,
}

/// The group of the last flush, and what it lets expect of the next.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Calls when it was closed: those up to here were covered.
    closed_at: u64,
    /// Calls when everybody will be there who is expected at the next.
    expected: u64,
    patience: Duration,
}

/// A group that takes no more calls.
pub(super) struct Closed {
    at: u64,
    since: Instant,
}

impl Crowd {
    /// Counts a call that has something to sync.
    pub fn arrive(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for those who are expected. Only the leader calls this.
    pub fn gather(&self) -> Closed {
        let Group {
            expected, patience, ..
        } = *self.last.lock();
        let start = Instant::now();
        while self.calls.load(Ordering::Relaxed) < expected {
            match start.elapsed() {
                waited if waited >= patience => break,
                waited if waited < AWAKE_MAX => crate::sync::yield_now(),
                _ => crate::sync::sleep(NAP),
            }
        }
        Closed {
            at: self.calls.load(Ordering::Relaxed),
            since: Instant::now(),
        }
    }

    /// The flush of a group has ended.
    pub fn release(&self, group: &Closed) {
        let mut last = self.last.lock();
        let released = group.at - last.closed_at;
        *last = Group {
            closed_at: group.at,
            expected: self.calls.load(Ordering::Relaxed) + released,
            patience: (group.since.elapsed() / FLUSH_PART).min(PATIENCE_MAX),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush(crowd: &Crowd, arrivals_meanwhile: usize) {
        let mut group = crowd.gather();
        group.since -= Duration::from_millis(8);
        (0..arrivals_meanwhile).for_each(|_| crowd.arrive());
        crowd.release(&group);
    }

    fn expected(crowd: &Crowd) -> u64 {
        crowd.last.lock().expected - crowd.calls.load(Ordering::Relaxed)
    }

    #[test]
    fn a_writer_alone_waits_for_itself_only() {
        let crowd = Crowd::default();
        for _ in 0..3 {
            crowd.arrive();
            flush(&crowd, 0);
            assert_eq!(expected(&crowd), 1);
        }
    }

    #[test]
    fn all_who_were_released_are_expected_again_until_they_stay_away() {
        let crowd = Crowd::default();
        crowd.arrive();
        flush(&crowd, 1);
        assert_eq!(
            expected(&crowd),
            1,
            "one was released, and one waits already"
        );
        crowd.arrive();
        flush(&crowd, 0);
        assert_eq!(expected(&crowd), 2);
        crowd.arrive();
        let start = Instant::now();
        flush(&crowd, 0);
        assert!(start.elapsed() >= PATIENCE_MAX, "waits for the second");
        assert_eq!(expected(&crowd), 1, "and no longer after it did not come");
    }
}
