//! What is counted of the work of a tree. Threads count in lines of their own.

#[cfg(not(shuttle))]
use std::cell::Cell;
#[cfg(not(shuttle))]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Lines that threads are spread over.
const LINES: usize = 16;

/// What the prefixes and hashes of leaves are worth (`Tucana 2.2.1`), and how the tree changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Searches for the place of a new key in a leaf.
    pub searches: u64,
    /// Those that had to read keys, because prefixes were equal.
    pub ties: u64,
    /// Records that were read because their hash is that of the key.
    pub hash_matches: u64,
    /// Those with another key.
    pub hash_misses: u64,
    /// Nodes that were copied at their first change in an epoch.
    pub copies: u64,
    /// Nodes that were split.
    pub splits: u64,
    /// Nodes that were merged into their neighbour.
    pub merges: u64,
    /// Freezes: the ends of epochs.
    pub freezes: u64,
    /// The longest time that a freeze kept writers out, in nanoseconds.
    pub longest_freeze_ns: u64,
}

/// One of the counters of [`TreeStats`] that threads count in lines, in its order.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    Search,
    Tie,
    HashMatch,
    HashMiss,
    Copy,
    Split,
    Merge,
}

const COUNTS: usize = Count::Merge as usize + 1;

/// Two cache lines: neighbours are fetched in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line([AtomicU64; COUNTS]);

#[derive(Default)]
pub(crate) struct Counters {
    lines: [Line; LINES],
    freezes: AtomicU64,
    longest_freeze_ns: AtomicU64,
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, count: Count) {
        self.add_many(count, 1);
    }

    #[inline]
    pub(crate) fn add_many(&self, count: Count, many: u64) {
        self.lines[thread_line(LINES)].0[count as usize].fetch_add(many, Relaxed);
    }

    /// A freeze kept writers out for so long.
    pub(crate) fn add_freeze(&self, time: Duration) {
        self.freezes.fetch_add(1, Relaxed);
        let ns = time.as_nanos().min(u128::from(u64::MAX)) as u64;
        self.longest_freeze_ns.fetch_max(ns, Relaxed);
    }

    pub(crate) fn stats(&self) -> TreeStats {
        let sum = |count: Count| {
            let lines = self.lines.iter();
            lines.map(|line| line.0[count as usize].load(Relaxed)).sum()
        };
        TreeStats {
            searches: sum(Count::Search),
            ties: sum(Count::Tie),
            hash_matches: sum(Count::HashMatch),
            hash_misses: sum(Count::HashMiss),
            copies: sum(Count::Copy),
            splits: sum(Count::Split),
            merges: sum(Count::Merge),
            freezes: self.freezes.load(Relaxed),
            longest_freeze_ns: self.longest_freeze_ns.load(Relaxed),
        }
    }
}

/// The line of this thread, of so many.
#[cfg(not(shuttle))]
pub(super) fn thread_line(lines: usize) -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = Cell::new(THREADS.fetch_add(1, Relaxed));
    }
    NUMBER.with(Cell::get) % lines
}

/// The same for a thread of a model, which is the same in each run.
#[cfg(shuttle)]
pub(super) fn thread_line(lines: usize) -> usize {
    usize::from(shuttle::current::me()) % lines
}
