//! The commit group: which writers share the next flush.
//!
//! Writers that a flush released soon come back with their next record. If the leader did not wait for them, the first
//! would lead the next flush alone and the others would need another one: two writers would take turns and never share.
//! A leader therefore waits until as many writers have come as the last flush released and as wait already, but no longer
//! than a fraction of the last flush. A writer that is alone never waits.

use kreon_sync::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kreon_sync::Mutex;

/// A leader waits for at most this part of the time that the last flush took...
const FLUSH_PART: u32 = 8;

/// ... and never longer than this.
const PATIENCE_MAX: Duration = Duration::from_micros(500);

/// Writers that were just released come within microseconds if they have a core: the leader stays awake for them.
const AWAKE_MAX: Duration = Duration::from_micros(50);
const NAP: Duration = Duration::from_micros(20);

/// The writers that sync.
#[derive(Default)]
pub(super) struct CommitGroup {
    /// Calls so far.
    calls: AtomicU64,
    last: Mutex<LastFlush>,
}

/// The group of the last flush, and which calls the next one expects.
#[derive(Clone, Copy, Default)]
struct LastFlush {
    /// Calls when it was closed: those up to here were covered.
    closed_at: u64,
    /// Calls when all writers that the next flush expects have come.
    expected: u64,
    patience: Duration,
}

/// A group that takes no more calls.
pub(super) struct ClosedGroup {
    at: u64,
    since: Instant,
}

impl CommitGroup {
    /// Counts a call that has something to sync.
    pub fn arrive(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for the writers that are expected. Only the leader calls this.
    pub fn gather(&self) -> ClosedGroup {
        let last = *self.last.lock();
        let start = Instant::now();
        while self.calls.load(Ordering::Relaxed) < last.expected {
            match start.elapsed() {
                waited if waited >= last.patience => break,
                waited if waited < AWAKE_MAX => kreon_sync::yield_now(),
                _ => kreon_sync::sleep(NAP),
            }
        }
        ClosedGroup {
            at: self.calls.load(Ordering::Relaxed),
            since: Instant::now(),
        }
    }

    /// The flush of a group has ended.
    pub fn release(&self, group: &ClosedGroup) {
        let mut last = self.last.lock();
        assert!(last.closed_at <= group.at, "groups close in order");
        let released = group.at - last.closed_at;
        *last = LastFlush {
            closed_at: group.at,
            expected: self.calls.load(Ordering::Relaxed) + released,
            patience: (group.since.elapsed() / FLUSH_PART).min(PATIENCE_MAX),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush(writers: &CommitGroup, arrivals_meanwhile: usize) {
        let mut group = writers.gather();
        group.since -= Duration::from_millis(8);
        (0..arrivals_meanwhile).for_each(|_| writers.arrive());
        writers.release(&group);
    }

    fn expected(writers: &CommitGroup) -> u64 {
        writers.last.lock().expected - writers.calls.load(Ordering::Relaxed)
    }

    #[test]
    fn a_writer_alone_waits_for_itself_only() {
        let writers = CommitGroup::default();
        for _ in 0..3 {
            writers.arrive();
            flush(&writers, 0);
            assert_eq!(expected(&writers), 1);
        }
    }

    #[test]
    fn all_released_writers_are_expected_again_until_they_stay_away() {
        let writers = CommitGroup::default();
        writers.arrive();
        flush(&writers, 1);
        assert_eq!(
            expected(&writers),
            1,
            "one was released, and one waits already"
        );
        writers.arrive();
        flush(&writers, 0);
        assert_eq!(expected(&writers), 2);
        writers.arrive();
        let start = Instant::now();
        flush(&writers, 0);
        assert!(start.elapsed() >= PATIENCE_MAX, "waits for the second");
        assert_eq!(expected(&writers), 1, "and no longer after it did not come");
    }
}
