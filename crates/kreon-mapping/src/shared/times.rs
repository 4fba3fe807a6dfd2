//! How long locks were held, and how often counts were written, by all mappings of the process.
//!
//! Each thread writes to lines of its own, after the lock is free again, so that the measurement adds no contention.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::timed::Timed;
use crate::well::{thread_number, ticks};

/// Names of the locks.
const LOCKS: [&str; 8] = [
    "shard",
    "list of free frames",
    "limbo",
    "turn of eviction",
    "search for table room",
    "turn of writeback",
    "record cache",
    // Not of a mapping: what a hold costs.
    "none",
];

/// Number of the lock that belongs to no mapping.
const CALIBRATION: usize = LOCKS.len() - 1;

/// Names of the counts.
const COUNTS: [&str; 5] = [
    "resident pages",
    "dirty pages",
    "free frames",
    "statistics",
    "generations of segments",
];

/// Threads with lines of their own; the others share one.
const THREADS: usize = 64;

static LINES: [ThreadLines; THREADS + 1] = [const { ThreadLines::new() }; _];

/// What one thread did.
#[repr(align(128))]
struct ThreadLines {
    locks: [Sums; LOCKS.len()],
    counts: [AtomicU64; COUNTS.len()],
    /// Holds of all locks that have ended.
    ended: AtomicU64,
}

struct Sums {
    holds: AtomicU64,
    waits: AtomicU64,
    held_ticks: AtomicU64,
    inner_holds: AtomicU64,
}

impl Sums {
    const fn new() -> Self {
        Self {
            holds: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            held_ticks: AtomicU64::new(0),
            inner_holds: AtomicU64::new(0),
        }
    }
}

impl ThreadLines {
    const fn new() -> Self {
        Self {
            locks: [const { Sums::new() }; _],
            counts: [const { AtomicU64::new(0) }; _],
            ended: AtomicU64::new(0),
        }
    }

    /// Those of this thread.
    fn own() -> &'static Self {
        &LINES[thread_number().min(THREADS)]
    }
}

/// The present hold of a lock, until dropped.
pub(super) struct Hold<const LOCK: usize> {
    start: u64,
    /// Holds of this thread that had ended then.
    ended: u64,
}

impl<const LOCK: usize> Hold<LOCK> {
    /// The lock was just taken.
    pub(super) fn begin() -> Self {
        let ended = ThreadLines::own().ended.load(Relaxed);
        Self {
            start: ticks(),
            ended,
        }
    }

    /// The lock was just taken again.
    pub(super) fn begin_again(&mut self) {
        // Not a new one in place of this: the old one would end once more as it is dropped.
        self.ended = ThreadLines::own().ended.load(Relaxed);
        self.start = ticks();
    }

    /// The lock is about to be given up, or was just now.
    pub(super) fn end(&self) {
        let held_ticks = ticks().saturating_sub(self.start);
        let own = ThreadLines::own();
        let ended = own.ended.fetch_add(1, Relaxed);
        let sums = &own.locks[LOCK];
        sums.holds.fetch_add(1, Relaxed);
        sums.held_ticks.fetch_add(held_ticks, Relaxed);
        sums.inner_holds.fetch_add(ended - self.ended, Relaxed);
    }
}

impl<const LOCK: usize> Drop for Hold<LOCK> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A lock was found held.
pub(super) fn waited(lock: usize) {
    ThreadLines::own().locks[lock].waits.fetch_add(1, Relaxed);
}

/// A count was written.
pub(super) fn written(count: usize) {
    ThreadLines::own().counts[count].fetch_add(1, Relaxed);
}

/// How long all locks of a kind were held, in all mappings since the start of the process.
#[derive(Clone, Copy, Debug)]
pub struct LockTimes {
    /// What the locks guard.
    pub name: &'static str,
    /// How many of them this mapping has.
    pub locks: usize,
    /// How often one was held.
    pub holds: u64,
    /// How often one was found held by another thread.
    pub waits: u64,
    /// How long they were held, in [ticks](clock_ticks), their own measurement included.
    pub held_ticks: u64,
    /// Holds of other locks meanwhile, whose measurement is part of the time.
    pub inner_holds: u64,
}

/// How often counts of a kind were written, in all mappings since the start of the process.
#[derive(Clone, Copy, Debug)]
pub struct CountWrites {
    /// What they count.
    pub name: &'static str,
    /// Atomic additions.
    pub writes: u64,
}

/// What locks were held; `locks` are the numbers of locks of this mapping.
pub(crate) fn lock_times(locks: [usize; LOCKS.len() - 1]) -> impl Iterator<Item = LockTimes> {
    locks.into_iter().enumerate().map(|(lock, locks)| {
        let sum = |of: fn(&Sums) -> &AtomicU64| {
            let lines = LINES.iter();
            lines.map(|line| of(&line.locks[lock]).load(Relaxed)).sum()
        };
        LockTimes {
            name: LOCKS[lock],
            locks,
            holds: sum(|sums| &sums.holds),
            waits: sum(|sums| &sums.waits),
            held_ticks: sum(|sums| &sums.held_ticks),
            inner_holds: sum(|sums| &sums.inner_holds),
        }
    })
}

/// What counts were written.
pub(crate) fn count_writes() -> impl Iterator<Item = CountWrites> {
    COUNTS.iter().enumerate().map(|(count, name)| {
        let lines = LINES.iter();
        let writes = lines.map(|line| line.counts[count].load(Relaxed));
        CountWrites {
            name,
            writes: writes.sum(),
        }
    })
}

/// The clock of the holds: the time-stamp counter, where there is one, else nanoseconds.
pub fn clock_ticks() -> u64 {
    ticks()
}

/// What the measurement adds to each hold, and what a hold with its measurement costs the thread, in ticks.
pub fn hold_cost_ticks() -> (f64, f64) {
    const TIMES: u32 = 200_000;
    let start = ticks();
    for _ in 0..TIMES {
        black_box(ticks());
    }
    let clock = (ticks() - start) as f64 / f64::from(TIMES);
    let lock = Timed::<(), CALIBRATION>::new(());
    let start = ticks();
    for _ in 0..TIMES {
        drop(black_box(lock.lock()));
    }
    (clock, (ticks() - start) as f64 / f64::from(TIMES))
}
