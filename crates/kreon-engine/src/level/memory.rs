//! An in-memory level: the index of keys, and the deleted ranges beside it.
//!
//! LSNs order both: a key has the value of its newest version, unless a newer range deletion covers it. Without
//! deleted ranges the check costs a reader one load.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use kreon_base::{Lsn, RegionId};
use kreon_l0::{Keep, L0};
use kreon_sync::{AtomicUsize, Mutex, Ordering};

use crate::keys::{L0Key, split};
use crate::ranges::{Deletion, Ranges};

/// Fragments of a full level: each range deletion copies all fragments of its region.
const FRAGMENTS_FULL: usize = 1024;

/// Most fragments: from here on range deletions wait for the running spill.
const FRAGMENTS_MAX: usize = 4 * FRAGMENTS_FULL;

/// An in-memory level. Dereferences to its index of keys.
pub struct Memory {
    index: L0,
    ranges: ArcSwap<Ranges>,
    /// Bytes of `ranges`; 0: no deleted ranges.
    range_bytes: AtomicUsize,
    fragments: AtomicUsize,
    /// Serialises changes of `ranges`.
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

    /// An empty level that takes over the memory of this one when it is dropped.
    pub fn successor(&self) -> Self {
        Self::new(self.index.successor())
    }

    /// Memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.range_bytes.load(Ordering::Relaxed)
    }

    /// Whether it has no entries and no deleted ranges.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty() && !self.has_ranges()
    }

    /// Whether it should be spilled; `bytes` is the size of a full level.
    pub fn is_full(&self, bytes: usize) -> bool {
        self.bytes() >= bytes || self.fragments.load(Ordering::Relaxed) >= FRAGMENTS_FULL
    }

    /// Whether writers must wait before another range deletion.
    pub fn is_crowded(&self) -> bool {
        self.fragments.load(Ordering::Relaxed) >= FRAGMENTS_MAX
    }

    /// Number of fragments of its deleted ranges.
    pub fn fragments(&self) -> usize {
        self.fragments.load(Ordering::Relaxed)
    }

    /// Whether it has deleted ranges.
    pub fn has_ranges(&self) -> bool {
        self.range_bytes.load(Ordering::Acquire) > 0
    }

    /// The current deleted ranges.
    pub fn ranges(&self) -> Guard<Arc<Ranges>> {
        self.ranges.load()
    }

    /// Marks those of `keys` of which it has a version, or that a deleted range covers. The cache misses of the lookups
    /// overlap.
    pub fn mark_known(&self, keys: &[L0Key], known: &mut [bool]) {
        let approached: Vec<_> = keys
            .iter()
            .map(|key| self.approach(key.as_slice()))
            .collect();
        for ((approached, key), known) in approached.into_iter().zip(keys).zip(known) {
            *known |= approached.get(Lsn::MAX, |_| true, |_| ()).is_some() || self.covers(key);
        }
    }

    /// Whether it has deleted a range that the key is in.
    pub fn covers(&self, l0_key: &L0Key) -> bool {
        self.has_ranges()
            && split(l0_key.as_slice()).is_some_and(|(region, key)| {
                let ranges = self.ranges();
                let of_region = ranges.of(region);
                of_region.is_some_and(|ranges| !ranges.covering(key).is_empty())
            })
    }

    /// Deletes the keys of `region` from `range.0` up to, not including, `range.1` (none: unbounded), as the write at
    /// `lsn`. Calls may come in any order of LSNs, like inserts.
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
        // After `ranges`: a reader that sees these bytes must find the ranges.
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
