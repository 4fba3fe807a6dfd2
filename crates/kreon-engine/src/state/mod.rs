//! The storage of an open store: what spills, checkpoints and recovery work on.
//!
//! - [`dead_records`]: records that no tree points at any more
//! - [`feed`]: the log that is kept for the change feed
//! - [`ledger`]: what the last checkpoint recorded, and what the next one will
//! - [`lifecycle`]: open, closed, or inherited by a forked child
//! - [`made`]: regions that the log has and no checkpoint yet
//! - [`storage`]: all of it together

pub mod dead_records;
pub mod feed;
pub mod ledger;
pub mod lifecycle;
pub mod made;
pub mod storage;

pub use dead_records::{DeadLines, DeadRecords};
pub use feed::{FeedLog, Held};
pub use ledger::{Ledger, RegionEntry, WrittenChunk, WrittenRegions};
pub use lifecycle::Lifecycle;
pub use made::{MadeRegion, MadeRegions};
pub use storage::Storage;
