//! What the tree persists, as bytes: leaves and index nodes, each one page.
//!
//! A node: checksum (4 bytes) | magic `tN` (2) | format version (1) | height above the leaves (1) | page (6) | epoch (6) |
//! region (4) | count (2) | of a leaf the length of its prefix, of an index node the start of its pivots (2) | zeroes (4)
//! | content. Integers are little endian. The checksum is CRC-32C over the store id, the page number and all bytes behind
//! the checksum. A pointer to a node is its page and its epoch: a page is written at most once between its allocation and
//! its release, so the two prove the content, and nodes can be sealed in any order.
//!
//! - `pointer`: a node's page and epoch; `location`: where a record is in the log
//! - `node`: the header and the seal
//! - `leaf`: entries without keys; `hash`: the hash of a key in them
//! - `index`: children and pivots
//! - `superblock`: the root record; `seal`: the checksum of all pages

mod bytes;
mod hash;
mod index;
mod leaf;
mod location;
mod node;
mod pointer;
mod seal;
mod superblock;

pub use hash::key_hash;
pub(crate) use index::have_room;
pub use index::{CHILDREN_MAX, Index, IndexMut};
pub use leaf::{ENTRIES_MAX, HeadShift, Leaf, LeafEntry, LeafMut, head_of};
pub use location::{EXACT_BYTES_MAX, Location, RECORD_BYTES_MAX};
pub use node::{FORMAT_VERSION, NODE_HEADER_BYTES, NodeHeader, NodeSeal, common_prefix, separator};
pub use pointer::NodePointer;
pub use superblock::{COMMIT_MAX, Superblock, slot_of};
