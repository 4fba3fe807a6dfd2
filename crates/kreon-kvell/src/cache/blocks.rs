//! All blocks of a cache, and the chains of runs that hold the cells.

use super::cell::{BLOCK_BYTES, CellNo};
use super::run::{NO_RUN, Run};
use super::slab::{BlockNo, SLAB_BLOCKS, SLAB_BYTES, Slab};

/// The numbers of blocks have 31 bits: the table keeps one bit of the hash at least.
pub(super) const SLABS_MAX: usize = (1 << 31) / SLAB_BLOCKS - 1;

/// Slabs whose free blocks are looked through for a place without gaps.
const LOOKED_THROUGH_MAX: usize = 8;

/// So many blocks are looked for in gaps first.
const GAP_BLOCKS: usize = 4;

/// Slabs, each allocated or absent.
pub(super) struct Blocks {
    slabs: Box<[Slab]>,
    /// One for each block of each slab. They lie together and not in the slabs, because a search reads one at random:
    /// this way they share pages of the processor's address cache, and need no look at the slab.
    pub(super) runs: Box<[Run]>,
    /// Slabs with free blocks, those that gained theirs last at the end.
    pub(super) open: Vec<u32>,
    /// Slabs that are not allocated.
    pub(super) absent: Vec<u32>,
    /// Free blocks in all slabs.
    free: usize,
    /// The slab where blocks were freed last.
    freed_in: u32,
}

impl Blocks {
    /// Places for `slabs_max` slabs, none of them allocated.
    pub(super) fn new(slabs_max: usize) -> Blocks {
        let mut absent = Vec::with_capacity(slabs_max);
        absent.extend((0..slabs_max as u32).rev());
        let slabs = (0..slabs_max).map(|_| Slab::absent()).collect();
        let runs = vec![NO_RUN; slabs_max * SLAB_BLOCKS].into_boxed_slice();
        Blocks {
            slabs,
            runs,
            open: Vec::with_capacity(slabs_max),
            absent,
            free: 0,
            freed_in: 0,
        }
    }

    /// What the place of a slab costs, allocated or not.
    pub(super) const fn place_bytes() -> usize {
        size_of::<Slab>() + SLAB_BLOCKS * size_of::<Run>() + 2 * size_of::<u32>()
    }

    /// Bytes of all slabs and their places.
    pub(super) fn memory_bytes(&self) -> usize {
        let lists = (self.open.capacity() + self.absent.capacity()) * size_of::<u32>();
        size_of_val(&*self.slabs) + size_of_val(&*self.runs) + lists + self.allocated() * SLAB_BYTES
    }

    /// Slabs that are allocated.
    pub(super) fn allocated(&self) -> usize {
        self.slabs.len() - self.absent.len()
    }

    /// Blocks without an owner.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Blocks with an owner.
    pub(super) fn taken(&self) -> usize {
        self.allocated() * SLAB_BLOCKS - self.free
    }

    pub(super) fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// For reference bits; all else changes through methods.
    pub(super) fn slabs_mut(&mut self) -> &mut [Slab] {
        &mut self.slabs
    }

    /// Allocates a slab; `false` if there is no place for one.
    pub(super) fn grow(&mut self) -> bool {
        let Some(number) = self.absent.pop() else {
            return false;
        };
        self.slabs[number as usize] = Slab::allocated();
        self.free += SLAB_BLOCKS;
        self.open(number as usize);
        true
    }

    /// Frees the memory of a slab without taken blocks; others stay.
    pub(super) fn give_back(&mut self, number: usize) {
        if self.slabs[number].free != u128::MAX {
            return;
        }
        self.close(number);
        self.slabs[number] = Slab::absent();
        self.free -= SLAB_BLOCKS;
        self.absent.push(number as u32);
    }

    /// An allocated slab with all blocks free. It looks through all slabs with free blocks.
    pub(super) fn unused_slab(&self) -> Option<usize> {
        self.open
            .iter()
            .map(|&number| number as usize)
            .find(|&number| self.slabs[number].free == u128::MAX)
    }

    /// Takes `count` blocks for `cell`, side by side if [`Blocks::room_for`] finds such a place. `None` if fewer are free,
    /// and for 0.
    pub(super) fn take(&mut self, cell: CellNo, count: usize) -> Option<BlockNo> {
        if count > self.free || count == 0 {
            return None;
        }
        let head = match self.room_for(count) {
            Some((slab, start)) => self.take_run(slab, start, count, cell),
            None => self.gather(cell, count)?,
        };
        self.slabs[head.slab()].heads |= 1 << head.bit();
        Some(head)
    }

    /// Frees all blocks of a cell.
    pub(super) fn release(&mut self, head: BlockNo) {
        let mut next = Some(head);
        while let Some(block) = next {
            let run = *self.run(block);
            let blocks = usize::from(run.blocks);
            let was_full = self.slabs[block.slab()].free == 0;
            self.slabs[block.slab()].release(block.bit(), blocks);
            if was_full {
                self.open(block.slab());
            }
            self.freed_in = block.slab() as u32;
            self.free += blocks;
            next = run.next;
        }
    }

    /// The run that begins at `block`.
    pub(super) fn run(&self, block: BlockNo) -> &Run {
        &self.runs[block.index()]
    }

    pub(super) fn run_mut(&mut self, block: BlockNo) -> &mut Run {
        &mut self.runs[block.index()]
    }

    /// Content of the run that begins at `block`.
    pub(super) fn bytes(&self, block: BlockNo) -> &[u8] {
        self.slabs[block.slab()].bytes(block.bit(), self.run(block).blocks)
    }

    /// The runs in a slab, in order. None crosses its end, so a block behind free ones or behind a run begins one.
    pub(super) fn runs_of(&self, slab: usize) -> impl Iterator<Item = &Run> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = self.slabs[slab].taken_from(at)?;
            let run = self.run(BlockNo::at(slab, first));
            at = first + usize::from(run.blocks);
            Some(run)
        })
    }

    /// Blocks of the cell with that first block.
    pub(super) fn count(&self, head: BlockNo) -> usize {
        let chain = std::iter::successors(Some(head), |&block| self.run(block).next);
        chain.map(|block| usize::from(self.run(block).blocks)).sum()
    }

    /// Overwrites the content of a cell from byte `at` on. `false`, without a change, if it ends before the last of
    /// `bytes`.
    pub(super) fn overwrite(&mut self, head: BlockNo, at: usize, mut bytes: &[u8]) -> bool {
        let cell_bytes = self.count(head) * BLOCK_BYTES;
        if at > cell_bytes || bytes.len() > cell_bytes - at {
            return false;
        }
        let mut skipped = at;
        let mut next = Some(head);
        while let Some(block) = next.filter(|_| !bytes.is_empty()) {
            let run = self.runs[block.index()];
            next = run.next;
            let blocks = self.slabs[block.slab()].bytes_mut(block.bit(), run.blocks);
            let run_bytes = blocks.len();
            let Some(target) = blocks.get_mut(skipped..) else {
                skipped -= run_bytes;
                continue;
            };
            skipped = 0;
            let (now, later) = bytes.split_at(bytes.len().min(target.len()));
            target[..now.len()].copy_from_slice(now);
            bytes = later;
        }
        true
    }

    /// A slab with `count` free blocks side by side, and the first of them. It looks where blocks were freed last, and in
    /// a few other slabs; few blocks come from slabs that nobody looks at otherwise, where gaps between cells pile up.
    pub(super) fn room_for(&self, count: usize) -> Option<(usize, usize)> {
        let place = |&slab: &u32| {
            Some((
                slab as usize,
                self.slabs.get(slab as usize)?.room_for(count)?,
            ))
        };
        let in_gaps = || self.open.iter().take(LOOKED_THROUGH_MAX).find_map(place);
        let gap = if count <= GAP_BLOCKS { in_gaps() } else { None };
        let opened_last = || self.open.iter().rev().take(LOOKED_THROUGH_MAX);
        gap.or_else(|| place(&self.freed_in))
            .or_else(|| opened_last().find_map(place))
    }

    /// Takes `count` blocks wherever they are free, in pieces as large as there are. There must be as many.
    fn gather(&mut self, cell: CellNo, count: usize) -> Option<BlockNo> {
        let (mut head, mut last) = (None, None);
        let mut missing = count;
        let mut piece = count.min(SLAB_BLOCKS);
        while missing > 0 {
            piece = piece.min(missing);
            let Some((slab, start)) = self.room_for(piece) else {
                if piece == 1 {
                    return None;
                }
                piece = piece.div_ceil(2);
                continue;
            };
            let block = self.take_run(slab, start, piece, cell);
            match last {
                Some(last) => self.run_mut(last).next = Some(block),
                None => head = Some(block),
            }
            last = Some(block);
            missing -= piece;
        }
        head
    }

    fn take_run(&mut self, slab: usize, start: usize, blocks: usize, cell: CellNo) -> BlockNo {
        self.slabs[slab].take(start, blocks);
        let first = BlockNo::at(slab, start);
        *self.run_mut(first) = Run {
            cell,
            next: None,
            blocks: blocks as u8,
        };
        self.free -= blocks;
        if self.slabs[slab].free == 0 {
            self.close(slab);
        }
        first
    }

    /// Notes that a slab has free blocks.
    fn open(&mut self, slab: usize) {
        self.slabs[slab].open_at = self.open.len() as u32;
        self.open.push(slab as u32);
    }

    /// Notes that a slab has no free blocks any more.
    fn close(&mut self, slab: usize) {
        let at = self.slabs[slab].open_at as usize;
        self.open.swap_remove(at);
        if let Some(&moved) = self.open.get(at) {
            self.slabs[moved as usize].open_at = at as u32;
        }
    }
}
