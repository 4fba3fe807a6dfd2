//! Tucana: a copy-on-write B+-tree whose keys and values stand in a log (A. Papagiannis et al., "Tucana: Design and
//! Implementation of a Fast and Efficient Scale-up Key-value Store", USENIX ATC 2016). Floor 5, beside `kreon-engine`.
//!
//! Every put changes the tree: no level in memory, no spill, no merge of levels. Leaves have 8 bytes of each key behind what
//! all their keys have in common, 4 bytes of its hash and the place of its record; whole keys are in the log only. A node
//! gets a page of its own at its first change in an epoch and changes in place until the epoch ends; then it is sealed and
//! published, and never changes again.
//!
//! - [`mod@format`]: leaves and index nodes as bytes
//! - `log`: what the tree needs of a log, and a log in memory
//! - `page_supply`: what it needs of a volume, and pages counted in memory
//! - `tree`: the tree
//! - `store`: a tree on a volume, with its log, its commits and its opening, and the regions in it
//!
//! What differs from the paper: several writers at once (latches hand over hand, the larger LSN wins) and readers that see
//! the newest writes, where the paper has one writer and shows its writes at the next commit; a deletion removes the entry
//! at once; prefixes behind the common prefix of a leaf's range instead of the first bytes of the key; frames of a managed
//! mapping instead of `mmap`; one tree for all regions, whose numbers precede their keys, where the paper has a tree for each.
//!
//! The log of a store is its own, not that of `kreon-log`, which reads a record only for a caller who knows the lengths of its
//! key and value: leaves do not. It is also the redo log: a durable write waits for a flush of the log alone, which others
//! share, and an opening replays what is behind the last commit. Records that nothing points at any more are collected: the
//! live bytes of every segment of the log are counted, and the live records of the poorest ones are copied.
//!
//! Not built: early publication of nodes that are not changed any more while frames are scarce; reads of the last commit only, as
//! in the paper; keys of more than 1 KiB and records of more than 2 MiB. While nodes or keys were not in memory not long ago, a
//! writer looks for its key before it enters the gate. The first one that misses any, one that has to compare prefixes of other
//! keys, and one whose frame holds a changed page still wait for the device inside. A commit that begins meanwhile waits for it,
//! and with it the other writers.
//! Nodes that are left of segments which hold few of them are not moved together: a small volume that was full of records of a few
//! bytes, whose nodes take as much space as the log, may refuse new data although most of it was deleted.

#![forbid(unsafe_code)]

pub mod format;
mod log;
mod page_supply;
mod store;
mod tree;

pub use kreon_base::{Error, ErrorKind, KeyRange, REGION_NAME_BYTES_MAX, Result};
pub use log::{MemoryLog, Placed, Record, RecordLog};
pub use page_supply::{CountedPages, PageSupply};
pub use store::{
    Creation, Durability, KEY_BYTES_MAX, Maintenance, Options, Recovery, Region, Store, StoreScan,
    StoreSnapshot,
};
pub use tree::{
    Direction, Publication, Scan, ScanRange, Snapshot, TREE_KEY_BYTES_MAX, Tree, TreeHome,
    TreeRoot, TreeStats, Verified,
};
