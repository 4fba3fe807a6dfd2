//! The cache of a partition.

use super::blocks::{Blocks, SLABS_MAX};
use super::cached::Cached;
use super::cell::{BLOCK_BYTES, CellNo, blocks_of};
use super::clock::Hand;
use super::slab::{BlockNo, SLAB_BLOCKS, SLAB_BYTES};
use super::stats::CacheStats;
use super::table::{Table, hash};

/// A cell takes at most this part of the blocks.
const CELL_SHARE: usize = 4;
/// At most this part of the blocks is left free for the sake of cells in one piece.
const SPARE_SHARE: usize = 64;

/// Contents of cells in memory, evicted by CLOCK.
///
/// **What it costs.** Besides its 512 bytes a block costs 16 bytes of description, 6 of table and 1 of bits and lists,
/// so the smallest cell 23 bytes and larger ones as many for each block (4.5 %). All of that is allocated for the limit
/// at [`Cache::new`] and stays: nothing grows later. The blocks come and go in slabs of 64 KiB. The headers of the memory
/// allocator are not counted.
pub struct Cache {
    pub(super) blocks: Blocks,
    pub(super) table: Table,
    hand: Hand,
    /// Limit at [`Cache::new`].
    made_for_bytes: usize,
    limit_bytes: usize,
    /// Slabs that may be allocated under the limit.
    slabs_limit: usize,
    stats: CacheStats,
}

impl Cache {
    /// An empty cache with a limit over everything it allocates. A limit below 68 KiB is a cache that holds nothing; one
    /// above 1 TiB takes no more than 1 TiB of blocks. Blocks are allocated as cells come in.
    pub fn new(memory_bytes: usize) -> Cache {
        let a_slab = SLAB_BYTES + Blocks::place_bytes() + Table::bytes_for(1);
        let slabs_max = (memory_bytes.saturating_sub(size_of::<Cache>()) / a_slab).min(SLABS_MAX);
        Cache {
            blocks: Blocks::new(slabs_max),
            table: Table::new(slabs_max),
            hand: Hand::default(),
            made_for_bytes: memory_bytes,
            limit_bytes: memory_bytes,
            slabs_limit: slabs_max,
            stats: CacheStats::default(),
        }
    }

    /// The content of a cell, and marks it as used. It reads the table, one description and the
    /// marks of a slab, each at a random place.
    pub fn get(&mut self, cell: CellNo) -> Option<Cached<'_>> {
        let Some((_, head)) = self.find(cell) else {
            self.stats.misses += 1;
            return None;
        };
        self.stats.hits += 1;
        self.mark_used(head);
        Some(Cached::new(&self.blocks, head))
    }

    /// Adds a cell or replaces its content, and marks it as used; the size may differ. Others are evicted to make
    /// room. `false`, and then the cell is not in the cache, if it takes more than a quarter of the blocks, or if no cell
    /// has that size (whole blocks, 512 bytes to 256 KiB). A content of the same size always fits.
    pub fn put(&mut self, cell: CellNo, bytes: &[u8]) -> bool {
        self.replace(cell, bytes, true)
    }

    /// [`Cache::put`] for a cell that a scan has read: without the mark, so that it leaves at the next pass of the
    /// clock unless somebody asks for it before. A cell that has the mark keeps it.
    pub fn put_scanned(&mut self, cell: CellNo, bytes: &[u8]) -> bool {
        self.replace(cell, bytes, false)
    }

    /// Changes a part of a cell from byte `at` on, and marks it as used. `false` if the cell is not in the cache, or no
    /// longer: a part that passes its end removes it.
    pub fn write(&mut self, cell: CellNo, at: usize, bytes: &[u8]) -> bool {
        let Some((_, head)) = self.find(cell) else {
            return false;
        };
        self.mark_used(head);
        let written = self.blocks.overwrite(head, at, bytes);
        if !written {
            self.remove(cell);
        }
        written
    }

    /// Drops a cell.
    pub fn remove(&mut self, cell: CellNo) {
        self.forget(cell);
    }

    /// Bytes allocated now. At most the limit, unless that is lower than what is allocated for good.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Cache>() + self.blocks.memory_bytes() + self.table.memory_bytes()
    }

    /// The limit in force.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Sets the limit, at most to that of [`Cache::new`]. Under a lower one slabs are given back at once, and the cells
    /// in them evicted, used or not, where the clock would look next.
    /// Returns the bytes allocated then.
    pub fn set_limit(&mut self, memory_bytes: usize) -> usize {
        self.limit_bytes = memory_bytes.min(self.made_for_bytes);
        let fixed_bytes = self.memory_bytes() - self.blocks.allocated() * SLAB_BYTES;
        let slabs = self.limit_bytes.saturating_sub(fixed_bytes) / SLAB_BYTES;
        self.slabs_limit = slabs.min(self.blocks.slabs().len());
        self.shrink();
        self.memory_bytes()
    }

    /// Counters and contents.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            bytes: (self.blocks.taken() * BLOCK_BYTES) as u64,
            ..self.stats
        }
    }

    /// Slot in the table and first block of a cell.
    pub(super) fn find(&self, cell: CellNo) -> Option<(usize, BlockNo)> {
        self.table
            .find(hash(cell), |block| self.blocks.run(block).cell == cell)
    }

    fn replace(&mut self, cell: CellNo, bytes: &[u8], used: bool) -> bool {
        let wanted = blocks_of(bytes.len()).filter(|&blocks| blocks <= self.cell_blocks_max());
        if let Some((_, head)) = self.find(cell)
            && blocks_of(bytes.len()) == Some(self.blocks.count(head))
        {
            if used {
                self.mark_used(head);
            }
            return self.blocks.overwrite(head, 0, bytes);
        }
        let was_used = self.forget(cell);
        let taken = wanted
            .filter(|&blocks| self.make_room(blocks))
            .and_then(|blocks| self.blocks.take(cell, blocks));
        let Some(head) = taken else {
            return false;
        };
        self.blocks.overwrite(head, 0, bytes);
        self.table.insert(hash(cell), head);
        self.stats.cells += 1;
        if used || was_used {
            self.mark_used(head);
        }
        true
    }

    /// Blocks of the largest cell that is taken in.
    fn cell_blocks_max(&self) -> usize {
        self.slabs_limit * SLAB_BLOCKS / CELL_SHARE
    }

    /// Evicts until `blocks` are free; `false` if there are not as many.
    ///
    /// It goes on until they are free side by side, for what the hand evicts in a row lies close together, or until the
    /// blocks too many are a 64th of all.
    fn make_room(&mut self, blocks: usize) -> bool {
        let slabs = self.slabs_limit.max(self.blocks.allocated());
        if blocks > slabs * SLAB_BLOCKS {
            return false;
        }
        loop {
            let free = self.blocks.free();
            let enough = blocks + self.blocks.allocated() * SLAB_BLOCKS / SPARE_SHARE;
            if free >= enough || free >= blocks && self.blocks.room_for(blocks).is_some() {
                return true;
            }
            if self.blocks.allocated() < self.slabs_limit && self.blocks.grow() {
                continue;
            }
            let Some(victim) = self.hand.next_victim(self.blocks.slabs_mut()) else {
                return free >= blocks;
            };
            self.evict(self.blocks.run(victim).cell);
        }
    }

    fn evict(&mut self, cell: CellNo) {
        self.forget(cell);
        self.stats.evictions += 1;
    }

    /// Drops a cell if it is there, and says whether it was marked as used.
    fn forget(&mut self, cell: CellNo) -> bool {
        let Some((slot, head)) = self.find(cell) else {
            return false;
        };
        let used = self.blocks.slabs()[head.slab()].used & (1 << head.bit()) != 0;
        self.table
            .remove(slot, |block| hash(self.blocks.run(block).cell));
        self.blocks.release(head);
        self.stats.cells -= 1;
        used
    }

    /// Gives slabs back until the limit holds.
    fn shrink(&mut self) {
        while self.blocks.allocated() > self.slabs_limit {
            let Some(slab) = self.blocks.unused_slab().or_else(|| self.slab_at_hand()) else {
                return;
            };
            let owners: Vec<CellNo> = self.blocks.runs_of(slab).map(|run| run.cell).collect();
            for cell in owners {
                // A cell with two runs in the slab is gone after the first.
                if self.find(cell).is_some() {
                    self.evict(cell);
                }
            }
            self.blocks.give_back(slab);
        }
    }

    /// The first slab from the hand on.
    fn slab_at_hand(&self) -> Option<usize> {
        let slabs = self.blocks.slabs();
        let mut around = (self.hand.slab()..slabs.len()).chain(0..self.hand.slab());
        around.find(|&slab| slabs[slab].is_allocated())
    }

    fn mark_used(&mut self, head: BlockNo) {
        self.blocks.slabs_mut()[head.slab()].used |= 1 << head.bit();
    }
}
