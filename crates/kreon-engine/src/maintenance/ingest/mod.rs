//! Bulk loads: sorted pairs become a tree of their own, without going through L0.
//!
//! 1. Everything older is spilled. From then on the trees of the region are *locked*: an empty tree is put
//!    on top of them, and spills go into that. So writes beside the load come to stand above it, and older writes
//!    beneath it.
//! 2. Values go to the log as records that replay passes over, and keys into a fresh tree, leaf by leaf,
//!    while the pairs are handed in. Nothing is locked meanwhile. Log segments without live bytes are
//!    kept from the beginning of the load on, because nothing points at its records yet.
//! 3. One checkpoint installs the tree in the levels, hidden from all readers by its `VisibleFrom`. With the gate closed
//!    the tree becomes visible to all but the open snapshots. That is the moment of the load.
//! 4. The tree is merged with others of the region as its size asks for: see [`merge`](super::merge).
//!
//! A load that ends before its checkpoint leaves records in the log that are dead, and pages that no
//! checkpoint ever had.
//!
//! - [`incoming`]: pairs on their way into log and tree
//! - [`load`]: a load from its beginning to its end

mod incoming;
mod load;

pub use incoming::Pairs;
pub use load::Loader;
