//! The traits for reading nodes and for writing fresh ones. The store implements both with its mapping,
//! tests with pages in memory.

use kreon_base::{Epoch, LogOffset, PageBytes, PageNo, RegionId, Result};
use kreon_format::{PagePointer, StoreId};

/// The outcome of a filter lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// The leaf does not hold the key and is not read.
    Excluded,
    /// The leaf may hold the key.
    Passed,
    /// A false positive: the leaf was read and does not hold the key.
    InVain,
}

/// Reads nodes of one tree, and whole long keys from the log. `level` is a node's height: 0 is a leaf.
pub trait NodeSource {
    /// Calls `use_node` with the node at `pointer`. Its bytes have passed
    /// [`check_node`](kreon_format::check_node).
    fn read_node<R>(
        &self,
        pointer: &PagePointer,
        level: u8,
        use_node: impl FnOnce(&PageBytes) -> Result<R>,
    ) -> Result<R>;

    /// Loads nodes of one level together. A hint: nodes that cannot be loaded or kept are read again later.
    fn prefetch(&self, pointers: &[PagePointer], level: u8) -> Result<()>;

    /// Whether the node can be read without I/O now. A get asks the filter of a leaf only if not: a search
    /// in a resident leaf costs no more than its filter.
    fn is_resident(&self, _pointer: &PagePointer) -> bool {
        true
    }

    /// Reports the outcome of a filter lookup for a leaf that was not resident.
    fn filtered(&self, _leaf: &PagePointer, _answer: Filtering) {}

    /// Replaces the content of `key` by the whole key, of `key_bytes`, from the record at `offset`.
    fn read_key(&self, offset: LogOffset, key_bytes: u32, key: &mut Vec<u8>) -> Result<()>;
}

/// Allocates pages for the fresh nodes of one tree and writes them.
pub trait NodeSink {
    /// Allocates a page; consecutive calls give consecutive pages as far as free space allows. The sink
    /// remembers the pages, so that a failed merge leaks none.
    fn allocate(&mut self) -> Result<PageNo>;

    /// Writes a sealed node to a page from [`allocate`](Self::allocate).
    fn write(&mut self, page: PageNo, level: u8, bytes: &PageBytes) -> Result<()>;

    /// The store that the nodes belong to.
    fn store(&self) -> StoreId;

    /// The epoch that will make them durable.
    fn epoch(&self) -> Epoch;

    /// The region whose tree they are part of.
    fn region(&self) -> RegionId;
}
