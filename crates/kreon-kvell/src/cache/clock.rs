//! CLOCK: the choice of the cell to evict.

use super::slab::{BlockNo, SLAB_BLOCKS, Slab};

/// The hand of the clock. It passes over the blocks in order of their numbers, clears reference bits, and stops behind
/// the first cell that has none. Since it goes by place and not by age, what it evicts in a row lies side by
/// side, which leaves room for larger cells.
///
/// Reference bits are bits of a `u128` for each slab, so the hand crosses a slab whose cells are all in use in one step:
/// a whole turn over a GiB takes 16 Ki steps.
#[derive(Default)]
pub(super) struct Hand {
    slab: usize,
    /// Next block to look at, 0 to 127.
    bit: usize,
}

impl Hand {
    /// The slab where the hand stands.
    pub(super) fn slab(&self) -> usize {
        self.slab
    }

    /// First block of the next cell to evict; `None` if there is no cell. The caller evicts it.
    pub(super) fn next_victim(&mut self, slabs: &mut [Slab]) -> Option<BlockNo> {
        // After one turn no reference bit is left, the next one finds what there is. Both begin within a slab.
        for _ in 0..=2 * slabs.len() {
            let slab = slabs.get_mut(self.slab)?;
            let ahead = u128::MAX << self.bit;
            let victims = slab.heads & !slab.used & ahead;
            if victims != 0 {
                let bit = victims.trailing_zeros() as usize;
                slab.used &= !ahead | (u128::MAX << bit);
                let found = BlockNo::at(self.slab, bit);
                self.pass(bit, slabs.len());
                return Some(found);
            }
            slab.used &= !ahead;
            self.pass(SLAB_BLOCKS - 1, slabs.len());
        }
        None
    }

    /// Puts the hand behind block `bit` of its slab.
    fn pass(&mut self, bit: usize, slabs: usize) {
        self.bit = bit + 1;
        if self.bit == SLAB_BLOCKS {
            self.bit = 0;
            self.slab = if self.slab + 1 >= slabs {
                0
            } else {
                self.slab + 1
            };
        }
    }
}
