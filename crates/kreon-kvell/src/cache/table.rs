//! From the number of a cell to its first block.

use super::cell::CellNo;
use super::slab::{BlockNo, SLAB_BLOCKS};

/// Slots for each slab: at most two thirds are taken, when every cell has one block.
const SLAB_SLOTS: usize = SLAB_BLOCKS * 3 / 2;

/// A hash table with linear probing. All of it is allocated at once, because a growing one stops its thread for the
/// time of a rehash (KVell 6 measures 100 ms).
///
/// A slot has 32 bits: the number of a block, and above it as many bits of the hash as there is room for, so that
/// few probes of other cells look at their descriptions. 0 is an empty slot. The number of the cell itself stands in
/// the description of its first run, hence the functions that methods ask for.
pub(super) struct Table {
    pub(super) slots: Box<[u32]>,
    /// Bits of the largest number of a block; at most 31.
    block_bits: u32,
}

impl Table {
    /// A table for as many cells as `slabs` have blocks.
    pub(super) fn new(slabs: usize) -> Table {
        let blocks = (slabs * SLAB_BLOCKS) as u32;
        // One slot stays empty even without slabs: it ends each search.
        let slots = vec![0; (slabs * SLAB_SLOTS).max(1)].into_boxed_slice();
        Table {
            slots,
            block_bits: u32::BITS - blocks.leading_zeros(),
        }
    }

    /// Bytes of the slots of a table for `slabs`.
    pub(super) const fn bytes_for(slabs: usize) -> usize {
        let slots = slabs * SLAB_SLOTS;
        (if slots == 0 { 1 } else { slots }) * size_of::<u32>()
    }

    /// Bytes of the slots.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }

    /// Slot and first block of the cell that `is_wanted` knows by its first block.
    pub(super) fn find(
        &self,
        hash: u64,
        is_wanted: impl Fn(BlockNo) -> bool,
    ) -> Option<(usize, BlockNo)> {
        let tag = self.tag(hash);
        let mut slot = self.home(hash);
        loop {
            let entry = self.slots[slot];
            let block = self.block(entry)?;
            if entry - block.number() == tag && is_wanted(block) {
                return Some((slot, block));
            }
            slot = self.after(slot);
        }
    }

    /// Adds a cell that is not in the table.
    pub(super) fn insert(&mut self, hash: u64, block: BlockNo) {
        let mut slot = self.home(hash);
        while self.slots[slot] != 0 {
            slot = self.after(slot);
        }
        self.slots[slot] = self.tag(hash) | block.number();
    }

    /// Empties `slot`, and moves later entries of its cluster back: there are no marks of deleted entries, which would
    /// pile up in a table that is never rehashed. `hash_of` gives the hash of a cell by its first block.
    pub(super) fn remove(&mut self, slot: usize, hash_of: impl Fn(BlockNo) -> u64) {
        let mut hole = slot;
        let mut at = slot;
        loop {
            at = self.after(at);
            let Some(block) = self.block(self.slots[at]) else {
                break;
            };
            // It may not move before its home.
            if self.distance(self.home(hash_of(block)), at) >= self.distance(hole, at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole] = 0;
    }

    /// Where the search begins. The high bits of the hash decide it, the low ones are the tag.
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> u64::BITS) as usize
    }

    fn tag(&self, hash: u64) -> u32 {
        (hash as u32) << self.block_bits
    }

    fn block(&self, entry: u32) -> Option<BlockNo> {
        BlockNo::from_number(entry & ((1 << self.block_bits) - 1))
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() {
            0
        } else {
            slot + 1
        }
    }

    /// Steps from slot `from` to slot `to`, around the end.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.slots.len() - from
        }
    }
}

/// The hash of a cell: the last step of MurmurHash3. Cells are multiples of their size, so their numbers have regular
/// gaps.
pub(super) fn hash(cell: CellNo) -> u64 {
    let mut mixed = cell.0;
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}
