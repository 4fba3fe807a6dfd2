//! Numbers and sizes of cells.

kreon_base::id!(
    /// Number of a cell: its byte offset on the volume divided by [`BLOCK_BYTES`].
    CellNo(u64), "cell"
);

/// Size of a block of the cache and unit of the size of a cell: the sector that no power cut tears.
pub const BLOCK_BYTES: usize = 512;

/// Size of the largest cell: the largest class of slots.
pub const CELL_BYTES_MAX: usize = 256 << 10;

/// Blocks of a cell of `cell_bytes`; `None` if no cell has that size.
pub(super) fn blocks_of(cell_bytes: usize) -> Option<usize> {
    let whole = cell_bytes.is_multiple_of(BLOCK_BYTES);
    (whole && (1..=CELL_BYTES_MAX).contains(&cell_bytes)).then_some(cell_bytes / BLOCK_BYTES)
}
