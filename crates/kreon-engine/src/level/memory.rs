//! The in-memory level: the index of keys, and beside it the ranges of keys that were deleted.
//!
//! Both are ordered by the positions of their writes: a key has the value of its newest version, unless a newer
//! deletion covers it. Without ranges this costs a reader one load.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use kreon_base::{Lsn, RegionId};
use kreon_l0::{Keep, L0};
use kreon_sync::{AtomicUsize, Mutex, Ordering};

use crate::ranges::{Deletion, Ranges};

/// With so many fragments the level is to be spilled: each deletion of a range copies all of them.
const FRAGMENTS_FULL: usize = 1024;

/// With so many it takes no more: writers wait for the spill that is under way.
const FRAGMENTS_MAX: usize = 4 * FRAGMENTS_FULL;

/// One in-memory level. Dereferences to its index of keys.
pub struct Memory {
    index: L0,
    ranges: ArcSwap<Ranges>,
    /// Bytes of `ranges`; 0: there are none.
    range_bytes: AtomicUsize,
    fragments: AtomicUsize,
    /// One change of `ranges` at a time.
    turn: Mutex<()>,
}

impl Memory {
    /// An index without ranges.
    pub fn new(index: L0) -> Self {
        Self {
            index,
            ranges: ArcSwap::default(),
            range_bytes: AtomicUsize::new(0),
            fragments: AtomicUsize::new(0),
            turn: Mutex::default(),
        }
    }

    /// An empty one in the memory that this one leaves.
    pub fn successor(&self) -> Self {
        Self::new(self.index.successor())
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.range_bytes.load(Ordering::Relaxed)
    }

    /// Whether nothing was written to it.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty() && !self.has_ranges()
    }

    /// Whether it is to be spilled, if `bytes` are a full level.
    pub fn is_full(&self, bytes: usize) -> bool {
        self.bytes() >= bytes || self.fragments.load(Ordering::Relaxed) >= FRAGMENTS_FULL
    }

    /// Whether writers must wait before they delete one more range.
    pub fn is_crowded(&self) -> bool {
        self.fragments.load(Ordering::Relaxed) >= FRAGMENTS_MAX
    }

    /// How many stretches of keys with deletions of their own it has.
    pub fn fragments(&self) -> usize {
        self.fragments.load(Ordering::Relaxed)
    }

    /// Whether any range was deleted.
    pub fn has_ranges(&self) -> bool {
        self.range_bytes.load(Ordering::Acquire) > 0
    }

    /// The deleted ranges, as they are now.
    pub fn ranges(&self) -> Guard<Arc<Ranges>> {
        self.ranges.load()
    }

    /// Deletes the keys of `region` from `range.0` on, before `range.1`, as the write at `lsn`. Writers may come in
    /// any order, as with an insert.
    pub fn delete_range(
        &self,
        region: RegionId,
        range: (&[u8], Option<&[u8]>),
        lsn: Lsn,
        keep: Keep,
    ) {
        let deletion = Deletion {
            lsn,
            pending: keep.unit_pending,
        };
        let _turn = self.turn.lock();
        let ranges = self.ranges.load().with(region, range, deletion, keep);
        let (bytes, fragments) = (ranges.bytes(), ranges.fragments());
        self.ranges.store(Arc::new(ranges));
        self.fragments.store(fragments, Ordering::Relaxed);
        // After `ranges`: a reader that sees the count must find the ranges.
        self.range_bytes.store(bytes, Ordering::SeqCst);
    }
}

impl Deref for Memory {
    type Target = L0;

    fn deref(&self) -> &L0 {
        &self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_count_as_memory_and_fill_the_level() {
        let memory = Memory::new(L0::new());
        assert!(memory.is_empty() && !memory.has_ranges());
        let before = memory.bytes();
        for number in 0..FRAGMENTS_FULL as u32 {
            assert!(!memory.is_full(usize::MAX));
            let (start, end) = ((2 * number).to_be_bytes(), (2 * number + 1).to_be_bytes());
            let range = (&start[..], Some(&end[..]));
            let lsn = Lsn(u64::from(number) + 1);
            memory.delete_range(RegionId(1), range, lsn, Keep::default());
        }
        assert!(memory.is_full(usize::MAX) && !memory.is_crowded());
        assert!(memory.bytes() > before + 8 * FRAGMENTS_FULL && !memory.is_empty());
        assert!(memory.successor().is_empty());
    }
}
