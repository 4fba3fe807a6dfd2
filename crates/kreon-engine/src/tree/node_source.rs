//! Where nodes come from and where fresh ones go. The store does both through its mapping; tests keep
//! pages in memory.

use kreon_base::{Epoch, LogOffset, PageBytes, PageNo, RegionId, Result};
use kreon_format::{PagePointer, StoreId};

/// How the filter of a leaf did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// The leaf does not hold the key, and need not be read.
    Excluded,
    /// The leaf may hold the key.
    Passed,
    /// The leaf was read after that, and did not hold the key.
    InVain,
}

/// Reads nodes of one tree, and the rest of long keys from the log. `level` is a node's height above
/// the leaves: 0 is a leaf.
pub trait NodeSource {
    /// Hands the node that `pointer` names to `use_node`. The bytes have passed
    /// [`check_node`](kreon_format::check_node).
    fn read_node<R>(
        &self,
        pointer: &PagePointer,
        level: u8,
        use_node: impl FnOnce(&PageBytes) -> Result<R>,
    ) -> Result<R>;

    /// Loads nodes of one level, all at once. A hint: those that cannot be loaded or kept are left to
    /// the read that needs them.
    fn prefetch(&self, pointers: &[PagePointer], level: u8) -> Result<()>;

    /// Whether reading the node would do without the device just now. A get asks filters only of leaves
    /// where it would not: a leaf that is there is searched as quickly.
    fn is_resident(&self, _pointer: &PagePointer) -> bool {
        true
    }

    /// Is told how the filter of a leaf that was not resident did.
    fn filtered(&self, _leaf: &PagePointer, _answer: Filtering) {}

    /// Replaces the content of `key` by the whole key, `key_bytes` long, of the record at `offset`.
    fn read_key(&self, offset: LogOffset, key_bytes: u32, key: &mut Vec<u8>) -> Result<()>;
}

/// Takes the fresh nodes of one tree.
pub trait NodeSink {
    /// A free page. Consecutive calls give consecutive pages as far as free space allows. The sink
    /// remembers what it gave, so that a merge that fails leaks nothing.
    fn allocate(&mut self) -> Result<PageNo>;

    /// Writes a whole, sealed node to a page that [`allocate`](Self::allocate) gave.
    fn write(&mut self, page: PageNo, level: u8, bytes: &PageBytes) -> Result<()>;

    /// The store that the nodes belong to.
    fn store(&self) -> StoreId;

    /// The epoch that will make them durable.
    fn epoch(&self) -> Epoch;

    /// The region whose tree they are part of.
    fn region(&self) -> RegionId;
}
