//! 128 blocks that are allocated and given back at once, with one bit per block for each of its states.

use std::num::NonZeroU32;

use super::cell::BLOCK_BYTES;

/// Blocks of a slab: as many as a `u128` has bits.
pub(super) const SLAB_BLOCKS: usize = 128;
/// What an allocated slab costs besides its place.
pub(super) const SLAB_BYTES: usize = SLAB_BLOCKS * BLOCK_BYTES;

/// Number of a block of the cache, from 1, so that `Option<BlockNo>` takes four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockNo(NonZeroU32);

impl BlockNo {
    /// Block `bit` of slab `slab`. The number fits: `Blocks` has at most `SLABS_MAX` slabs.
    pub(super) fn at(slab: usize, bit: usize) -> BlockNo {
        let index = (slab * SLAB_BLOCKS + bit) as u32;
        BlockNo(NonZeroU32::MIN.saturating_add(index))
    }

    /// The block with that number; `None` for 0.
    pub(super) fn from_number(number: u32) -> Option<BlockNo> {
        NonZeroU32::new(number).map(BlockNo)
    }

    /// The number, at least 1.
    pub(super) fn number(self) -> u32 {
        self.0.get()
    }

    /// The number counted from 0.
    pub(super) fn index(self) -> usize {
        (self.number() - 1) as usize
    }

    pub(super) fn slab(self) -> usize {
        self.index() / SLAB_BLOCKS
    }

    pub(super) fn bit(self) -> usize {
        self.index() % SLAB_BLOCKS
    }
}

/// A slab, or the place of one that is not allocated. Bit i of each set stands for block i; `used` is a subset
/// of `heads`, which shares no bit with `free`.
pub(super) struct Slab {
    /// 64 KiB, or nothing.
    bytes: Box<[u8]>,
    /// Blocks without an owner; none in a slab that is not allocated.
    pub(super) free: u128,
    /// First blocks of cells.
    pub(super) heads: u128,
    /// First blocks of cells with the reference bit of CLOCK.
    pub(super) used: u128,
    /// Place in the list of slabs with free blocks; it counts only while there are free blocks.
    pub(super) open_at: u32,
}

impl Slab {
    /// A place without memory.
    pub(super) fn absent() -> Slab {
        Slab {
            bytes: Box::default(),
            free: 0,
            heads: 0,
            used: 0,
            open_at: 0,
        }
    }

    /// A slab with all blocks free.
    pub(super) fn allocated() -> Slab {
        Slab {
            bytes: vec![0; SLAB_BYTES].into_boxed_slice(),
            free: u128::MAX,
            ..Slab::absent()
        }
    }

    pub(super) fn is_allocated(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Content of `blocks` blocks from block `bit` on.
    pub(super) fn bytes(&self, bit: usize, blocks: u8) -> &[u8] {
        &self.bytes[bit * BLOCK_BYTES..][..usize::from(blocks) * BLOCK_BYTES]
    }

    pub(super) fn bytes_mut(&mut self, bit: usize, blocks: u8) -> &mut [u8] {
        &mut self.bytes[bit * BLOCK_BYTES..][..usize::from(blocks) * BLOCK_BYTES]
    }

    /// First of `blocks` neighbouring free blocks, the lowest there are.
    pub(super) fn room_for(&self, blocks: usize) -> Option<usize> {
        if !(1..=SLAB_BLOCKS).contains(&blocks) {
            return None;
        }
        // Bit i of `starts` says that the `length` blocks from i on are free.
        let (mut starts, mut length) = (self.free, 1);
        while length < blocks && starts != 0 {
            let step = length.min(blocks - length);
            starts &= starts >> step;
            length += step;
        }
        (starts != 0).then_some(starts.trailing_zeros() as usize)
    }

    /// Makes free blocks those of a run.
    pub(super) fn take(&mut self, start: usize, blocks: usize) {
        debug_assert_eq!(
            self.free & bits(start, blocks),
            bits(start, blocks),
            "blocks with an owner"
        );
        self.free &= !bits(start, blocks);
    }

    /// Frees the blocks of a run, and the marks of its cell.
    pub(super) fn release(&mut self, start: usize, blocks: usize) {
        self.free |= bits(start, blocks);
        let others = !(1 << start);
        self.heads &= others;
        self.used &= others;
    }

    /// The first block from `start` on that has an owner.
    pub(super) fn taken_from(&self, start: usize) -> Option<usize> {
        let ahead = if self.is_allocated() { !self.free } else { 0 };
        let ahead = ahead
            .checked_shr(start as u32)
            .filter(|&ahead| ahead != 0)?;
        Some(start + ahead.trailing_zeros() as usize)
    }
}

/// The set of the blocks `start..start + blocks`, of 1 to 128.
fn bits(start: usize, blocks: usize) -> u128 {
    (u128::MAX >> (SLAB_BLOCKS - blocks)) << start
}
