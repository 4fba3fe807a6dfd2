//! How much writers wait for durability, and which segments the log wants prepared for that.
//!
//! - While a writer has waited lately, little may be buffered: a flush waits for everything before the record.
//! - While small flushes fill segments, the log wants free segments whose blocks were written before: a flush there changes
//!   no metadata of the file system, and a roll need not reserve blocks. A rare write wants none: a small store stays
//!   small.

use std::time::{Duration, Instant};

use super::cut::SEGMENT;
use super::zeroes::SMALL_BYTES;
use kreon_sync::{AtomicU64, Mutex, Ordering, Wakeup};

/// A writer that has waited is expected back within this time.
const LATELY: Duration = Duration::from_secs(1);

/// Rolls count for this time.
const STEADY: Duration = Duration::from_secs(60);

/// The first roll says nothing about a rate.
const ROLLS_MIN: usize = 2;

/// More rolls than this want no more segments.
const ROLLS_MAX: usize = 4;

/// Segments that are wanted for each roll.
const SEGMENTS_PER_ROLL: usize = 4;

/// Free segments that a log wants whose writers wait for durability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentDemand {
    /// Freed segments that keep their blocks.
    pub kept: u32,
    /// Segments that are written ahead, if fewer were freed.
    pub written: u32,
}

/// What writers that wait have done lately.
#[derive(Default)]
pub(super) struct SyncLoad {
    /// When a writer waited last.
    waited: Mutex<Option<Instant>>,
    /// Bytes that small flushes made durable since the last roll.
    small_bytes: AtomicU64,
    rolls: Mutex<Rolls>,
    /// Called when the demand may have changed.
    wakeup: Wakeup,
}

/// The last rolls, the newest first.
#[derive(Default)]
struct Rolls {
    /// Of segments that writers waited for.
    waited: [Option<Instant>; ROLLS_MAX],
    /// Of those that small flushes filled.
    small: [Option<Instant>; ROLLS_MAX],
}

impl SyncLoad {
    /// A writer is about to wait.
    pub fn waits(&self, now: Instant) {
        // Another thread that holds the lock notes the same moment.
        if let Some(mut waited) = self.waited.try_lock() {
            *waited = Some(now);
        }
    }

    /// Whether a writer waited lately.
    pub fn is_waited(&self, now: Instant) -> bool {
        let waited = *self.waited.lock();
        waited.is_some_and(|at| now.saturating_duration_since(at) < LATELY)
    }

    /// A flush made `bytes` durable.
    pub fn flushed(&self, bytes: u64) {
        if bytes <= SMALL_BYTES {
            self.small_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// A segment is full.
    pub fn rolled(&self, now: Instant) {
        let small_bytes = self.small_bytes.swap(0, Ordering::Relaxed);
        let is_small = small_bytes >= u64::from(SEGMENT / 2);
        if !is_small && !self.is_waited(now) {
            return;
        }
        let mut rolls = self.rolls.lock();
        let before = rolls.demand(now);
        push(&mut rolls.waited, now);
        if is_small {
            push(&mut rolls.small, now);
        }
        let is_new = rolls.demand(now) != before;
        drop(rolls);
        if is_new || is_small {
            self.wakeup.call();
        }
    }

    /// What the log could use at `now`.
    pub fn demand(&self, now: Instant) -> SegmentDemand {
        self.rolls.lock().demand(now)
    }

    /// Called when the demand may have changed.
    pub fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }
}

impl Rolls {
    fn demand(&self, now: Instant) -> SegmentDemand {
        let segments = |rolls: &[Option<Instant>]| {
            let lately = |at: &&Instant| now.saturating_duration_since(**at) < STEADY;
            match rolls.iter().flatten().filter(lately).count() {
                0..ROLLS_MIN => 0,
                rolls => (rolls * SEGMENTS_PER_ROLL) as u32,
            }
        };
        SegmentDemand {
            kept: segments(&self.waited),
            written: segments(&self.small),
        }
    }
}

fn push(rolls: &mut [Option<Instant>], now: Instant) {
    rolls.rotate_right(1);
    if let Some(first) = rolls.first_mut() {
        *first = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Fills a segment by flushes of so many bytes.
    fn fill(load: &SyncLoad, bytes: u64, now: Instant) {
        for _ in 0..u64::from(SEGMENT) / bytes {
            load.flushed(bytes);
        }
        load.rolled(now);
    }

    fn demand(load: &SyncLoad, now: Instant) -> (u32, u32) {
        let demand = load.demand(now);
        (demand.kept, demand.written)
    }

    #[test]
    fn segments_are_wanted_from_the_second_small_roll_within_a_minute_on() {
        let (load, start) = (SyncLoad::default(), Instant::now());
        fill(&load, 1536, start);
        assert_eq!(demand(&load, start), (0, 0));
        fill(&load, 1536, start + MINUTE);
        assert_eq!(demand(&load, start + MINUTE), (0, 0), "too long between");
        let now = start + MINUTE + MINUTE / 2;
        fill(&load, 1536, now);
        assert_eq!(demand(&load, now), (8, 8));
        for _ in 0..9 {
            fill(&load, 1536, now);
        }
        assert_eq!(demand(&load, now), (16, 16), "and no more");
        assert_eq!(demand(&load, now + MINUTE), (0, 0), "until they rest");
    }

    #[test]
    fn large_flushes_want_none_written_but_keep_what_is_freed() {
        let (load, start) = (SyncLoad::default(), Instant::now());
        for _ in 0..5 {
            fill(&load, 128 << 10, start);
        }
        assert_eq!(demand(&load, start), (0, 0), "nobody waited");
        for _ in 0..5 {
            load.waits(start);
            fill(&load, 128 << 10, start);
        }
        assert_eq!(demand(&load, start), (16, 0));
    }

    #[test]
    fn a_writer_that_waited_is_expected_for_a_second() {
        let (load, start) = (SyncLoad::default(), Instant::now());
        assert!(!load.is_waited(start));
        load.waits(start);
        assert!(load.is_waited(start + LATELY / 2));
        assert!(!load.is_waited(start + LATELY));
    }
}
