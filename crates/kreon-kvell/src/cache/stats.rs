//! What a cache tells of itself.

/// What the cache did since it was made, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Calls of [`Cache::get`](super::Cache::get) that found the cell.
    pub hits: u64,
    /// Calls of [`Cache::get`](super::Cache::get) that did not.
    pub misses: u64,
    /// Cells that made room for others or left with memory that was given back.
    pub evictions: u64,
    /// Cells in memory.
    pub cells: u64,
    /// Bytes of these cells.
    pub bytes: u64,
}
