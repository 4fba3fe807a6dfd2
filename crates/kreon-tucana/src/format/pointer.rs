//! Pointers to nodes.

use kreon_base::{Epoch, PageNo};

/// Where a node is, and which content of that page it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodePointer {
    /// Its page, 48 bits.
    pub page: PageNo,
    /// The epoch that wrote it, 48 bits.
    pub epoch: Epoch,
}
