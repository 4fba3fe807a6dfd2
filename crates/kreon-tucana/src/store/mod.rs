//! A tree on a volume: its log, its pages, its commits, its opening.
//!
//! - `options`: how a store is opened; `home`: the volume as the parts see it
//! - `standby`: segments that the next opening needs
//! - `log_record`: records as fragments; `log_opening`: how segments become the log's
//! - `log_buffer`: a segment of the log in memory; `segment_table`: all segments; `log_mark`: a position of the log;
//!   `volume_log`: the log
//! - `group_flush`: flushes of the log that writers share; `replay`: the log behind the last commit, `redo`: its records
//!   are applied again
//! - `volume_pages`: pages for nodes
//! - `superblocks`: the four slots; `catalogue`: what a superblock leads to
//! - `durable`: what is durable; `commits`: how a state becomes durable
//! - `collect`: dead records
//! - `opening`: how a store begins, and begins again
//! - `call`: calls for threads
//! - `shared`: writes, commits and collection together; `threads`: who does what is not done by callers
//! - `region_key`: keys of regions as keys of the tree; `region_state`: what handles of a region share; `sweep`: deletion of many keys;
//!   `regions`: names, and how regions come and go
//! - `handle`: what handles of a store share; `verify`: whether all is whole
//! - `store`, `region`, `scan`, `snapshot`: the face of it all; `file`: a store in a file

mod call;
mod catalogue;
mod collect;
mod commits;
mod durable;
mod file;
mod group_flush;
mod handle;
mod home;
mod log_buffer;
mod log_mark;
mod log_opening;
mod log_reads;
mod log_record;
#[cfg(all(test, shuttle))]
mod models;
mod opening;
mod options;
mod redo;
mod region;
mod region_key;
mod region_state;
mod regions;
mod replay;
mod scan;
mod segment_table;
mod shared;
mod snapshot;
mod standby;
#[expect(clippy::module_inception, reason = "the file is the store itself")]
mod store;
mod superblocks;
mod sweep;
#[cfg(test)]
mod tests;
mod threads;
mod verify;
mod volume_log;
mod volume_pages;
mod writes;
mod zeroes;

pub use file::Creation;
pub use options::{Durability, Maintenance, Options, Recovery};
pub use region::Region;
pub use region_key::KEY_BYTES_MAX;
pub use scan::StoreScan;
pub use snapshot::StoreSnapshot;
pub use store::Store;
