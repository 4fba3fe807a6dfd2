//! Blocks side by side.

use super::cell::CellNo;
use super::slab::BlockNo;

/// Neighbouring blocks of one slab that belong to one cell. A cell is a chain of runs, of a single one where possible.
/// The description stands at the first block of the run; those of the other blocks mean nothing.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// The owner.
    pub(super) cell: CellNo,
    /// First block of the next run of the same cell.
    pub(super) next: Option<BlockNo>,
    /// 1 to 128.
    pub(super) blocks: u8,
}

/// The description of blocks that no cell ever had.
pub(super) const NO_RUN: Run = Run {
    cell: CellNo(0),
    next: None,
    blocks: 0,
};
