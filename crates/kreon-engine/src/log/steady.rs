//! Whether writers wait for durability all the time, and what the store does about it.
//!
//! - While somebody has waited lately, little may be buffered: whoever waits, waits for all before its records.
//! - When the log grows by small flushes for long, a stock of segments is worth having whose blocks were written before:
//!   the flushes there never have to make blocks of the file system durable, nor does a roll have to reserve them. One
//!   write now and then does not make a stock: a small store stays small.

use std::time::{Duration, Instant};

use super::bell::Bell;
use super::cut::SEGMENT;
use super::open::Log;
use super::zeroes::SMALL_BYTES;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Who has waited is expected back for so long.
const LATELY: Duration = Duration::from_secs(1);

/// Rolls count for so long.
const STEADY: Duration = Duration::from_secs(60);

/// The first roll tells nothing.
const ROLLS_MIN: usize = 2;

/// More of them change nothing.
const ROLLS_MAX: usize = 4;

/// Segments of a stock for each roll.
const SEGMENTS_PER_ROLL: usize = 4;

/// Segments that are kept free for a log whose writers wait for durability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// So many freed segments keep their blocks.
    pub kept: u32,
    /// So many are written ahead, if fewer were freed.
    pub written: u32,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Steady {
    /// When somebody waited last.
    waited: Mutex<Option<Instant>>,
    /// Bytes that small flushes made durable since the last roll.
    small_bytes: AtomicU64,
    rolls: Mutex<Rolls>,
    /// Rung when there may be a stock to be made.
    bell: Bell,
}

/// The last rolls, the newest first.
#[derive(Default)]
struct Rolls {
    /// Of segments that writers waited for.
    waited: [Option<Instant>; ROLLS_MAX],
    /// Of those that small flushes filled.
    small: [Option<Instant>; ROLLS_MAX],
}

impl Steady {
    /// Somebody is about to wait.
    pub fn waits(&self, now: Instant) {
        // Who finds another one here need not note the same.
        if let Some(mut waited) = self.waited.try_lock() {
            *waited = Some(now);
        }
    }

    /// Whether somebody waited lately.
    pub fn is_waited(&self, now: Instant) -> bool {
        let waited = *self.waited.lock();
        waited.is_some_and(|at| now.saturating_duration_since(at) < LATELY)
    }

    /// A flush made so many bytes durable.
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
        let before = rolls.stock(now);
        push(&mut rolls.waited, now);
        if is_small {
            push(&mut rolls.small, now);
        }
        let is_new = rolls.stock(now) != before;
        drop(rolls);
        if is_new || is_small {
            self.bell.ring();
        }
    }
}

impl Rolls {
    fn stock(&self, now: Instant) -> Stock {
        let segments = |rolls: &[Option<Instant>]| {
            let lately = |at: &&Instant| now.saturating_duration_since(**at) < STEADY;
            match rolls.iter().flatten().filter(lately).count() {
                0..ROLLS_MIN => 0,
                rolls => (rolls * SEGMENTS_PER_ROLL) as u32,
            }
        };
        Stock {
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

impl Log {
    /// Somebody is about to append what it will wait for.
    pub fn expect_wait(&self) {
        self.commit.steady.waits(Instant::now());
    }

    /// What the log could use at `now`.
    pub fn stock(&self, now: Instant) -> Stock {
        self.commit.steady.rolls.lock().stock(now)
    }

    /// Blocks until the log may want another stock, or until `patience` is over.
    pub fn wait_for_stock(&self, patience: Duration) {
        self.commit.steady.bell.wait_for(patience);
    }

    /// Ends a [`wait_for_stock`](Self::wait_for_stock).
    pub fn wake_stock(&self) {
        self.commit.steady.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Fills a segment by flushes of so many bytes.
    fn fill(steady: &Steady, bytes: u64, now: Instant) {
        for _ in 0..u64::from(SEGMENT) / bytes {
            steady.flushed(bytes);
        }
        steady.rolled(now);
    }

    fn stock(steady: &Steady, now: Instant) -> (u32, u32) {
        let stock = steady.rolls.lock().stock(now);
        (stock.kept, stock.written)
    }

    #[test]
    fn a_stock_is_wanted_from_the_second_small_roll_within_a_minute_on() {
        let (steady, start) = (Steady::default(), Instant::now());
        fill(&steady, 1536, start);
        assert_eq!(stock(&steady, start), (0, 0));
        fill(&steady, 1536, start + MINUTE);
        assert_eq!(stock(&steady, start + MINUTE), (0, 0), "too long between");
        let now = start + MINUTE + MINUTE / 2;
        fill(&steady, 1536, now);
        assert_eq!(stock(&steady, now), (8, 8));
        for _ in 0..9 {
            fill(&steady, 1536, now);
        }
        assert_eq!(stock(&steady, now), (16, 16), "and no more");
        assert_eq!(stock(&steady, now + MINUTE), (0, 0), "until they rest");
    }

    #[test]
    fn large_flushes_make_no_stock_but_keep_what_is_freed() {
        let (steady, start) = (Steady::default(), Instant::now());
        for _ in 0..5 {
            fill(&steady, 128 << 10, start);
        }
        assert_eq!(stock(&steady, start), (0, 0), "nobody waited");
        for _ in 0..5 {
            steady.waits(start);
            fill(&steady, 128 << 10, start);
        }
        assert_eq!(stock(&steady, start), (16, 0));
    }

    #[test]
    fn who_waited_is_expected_for_a_second() {
        let (steady, start) = (Steady::default(), Instant::now());
        assert!(!steady.is_waited(start));
        steady.waits(start);
        assert!(steady.is_waited(start + LATELY / 2));
        assert!(!steady.is_waited(start + LATELY));
    }
}
