//! The tree: nodes that change in place in frames of their own until a commit makes them pages.
//!
//! - `counters`: what is counted; `charges`: how live bytes of the log change; `gate`: writers, and the freeze that they wait for
//! - `node`: open nodes, their latches; `generation`: the tree in one epoch; `past`: those that ended
//! - `parts`: what all work stands on
//! - `find`: the way of readers to a leaf; `reach`: the way of writers
//! - `known`: keys that are read ahead of a change; `misses`: whether writes look ahead
//! - `touch`: the first change of a node in an epoch; `change`: changes of a leaf
//! - `split`, `merge`: nodes that are full, or nearly empty
//! - `writing`: a write and a lookup, from the key to the record; `scan`: pairs in order; `snapshot`: a state
//! - `publish`: frozen nodes become pages; `verify`: whether a state is whole
//! - `tree`: the face of it all

mod change;
mod charges;
mod counters;
mod find;
mod gate;
mod generation;
mod known;
mod merge;
mod misses;
mod node;
mod parts;
mod past;
mod publish;
mod reach;
mod scan;
mod snapshot;
mod split;
#[cfg(test)]
mod tests;
mod touch;
#[expect(clippy::module_inception, reason = "the file is the tree itself")]
mod tree;
mod verify;
mod writing;

pub use counters::TreeStats;
pub use parts::TreeHome;
pub(crate) use scan::Cursor;
pub use scan::{Direction, Scan, ScanRange};
pub(crate) use snapshot::{Frozen, Held};
pub use snapshot::{Snapshot, TREE_KEY_BYTES_MAX};
pub use tree::{Publication, Tree, TreeRoot};
pub use verify::Verified;
pub(crate) use writing::Written;
