//! The cache of a partition: contents of cells in memory, evicted by CLOCK.
//!
//! A *cell* is the unit of transfer of a partition: a sector with its slots, a page with its slots, or one larger slot.
//! The memory is cut into blocks of 512 bytes, so that a cell of 1 KiB takes 1 KiB and not a page (KVell 5.2 caches
//! pages). The partition is the only user of its cache at a time: no locks, no atomics.
//!
//! - `cell`: the number of a cell, the sizes of cells and blocks
//! - `slab`: 128 blocks, allocated and given back at once
//! - `table`: from the number of a cell to its first block; its size is fixed
//! - `clock`: the choice of the cell to evict
//! - `run`: blocks side by side, of one cell
//! - `blocks`: all slabs; chains of blocks are taken and released here
//! - `cached`: the content of a cell as its reader sees it
//! - `stats`: what it tells of itself
//! - `cells`: the cache itself

mod blocks;
mod cached;
mod cell;
mod cells;
mod clock;
mod run;
mod slab;
mod stats;
mod table;
#[cfg(test)]
mod tests;

pub use cached::{Cached, Chunks};
pub use cell::{BLOCK_BYTES, CELL_BYTES_MAX, CellNo};
pub use cells::Cache;
pub use stats::CacheStats;
