//! The keys of a partition in memory, in order, with the place of each item on the device (`KVell 5.2`, in-memory B
//! tree index).
//!
//! An [`Index`] holds the first N bytes of every key. A key of up to N bytes is *whole*: its bytes name one item. The
//! longer keys with equal first N bytes are a *tie group*: the index knows where their items are, and only the items
//! tell which is which. With N = 8 this is the index of the paper.
//!
//! It is a B+-tree for one thread at a time, made for few bytes a key: a node (2 KiB; 4 KiB if N is over 512) keeps the
//! common prefix of its keys once, then 4 bytes of every key for the binary search, the rests of the keys and the
//! places of 6 bytes; a full node gives to its neighbour before it is split; nodes lie in chunks without holes.
//!
//! - `location`: the place of an item
//! - `key`: what entries are ordered by
//! - `node`: the bytes of a node, and the search in it
//! - `edit`: changes of one node
//! - `gather`: entries of neighbouring nodes in a row, dealt out again
//! - `nodes`: the memory of all nodes
//! - `tree`: the index and its lookups
//! - `insert`, `remove`: changes of the tree
//! - `build`: an index of entries that come in order
//! - `runs`: entries in order
//! - `check`: the invariants, for tests

mod build;
mod edit;
mod gather;
mod insert;
mod key;
mod location;
mod node;
mod nodes;
mod remove;
mod runs;
mod tree;

#[cfg(test)]
mod check;
#[cfg(test)]
mod tests;

pub use build::IndexBuilder;
pub use location::Location;
pub use runs::{Direction, End, Entry, Run, Spot};
pub use tree::{Found, Index, KEY_BYTES_LIMIT};
