//! Salvage (repair): copies the readable data of a damaged store into a new store.
//!
//! The source is never written. Only data that verifies is copied; uncertain data is counted and reported, never
//! presented as current.
//!
//! Two facts decide what is current. A stretch of the log without holes up to the end has the newest write of every key
//! in it, whatever the trees hold. And a page that the bitmap of the last checkpoint marks as used belongs to the trees
//! of that checkpoint.
//!
//! - [`source`]: reads the volume, tolerating errors
//! - [`report`], [`losses`]: the report for the user
//! - [`log_map`], [`log_runs`], [`log_walk`]: the log across damage
//! - [`records`]: log records that leaves point at
//! - [`found`]: a scan of the volume without pointers
//! - [`survey`]: identity, catalogue and log of the damaged store
//! - [`target`]: the new store
//! - [`checkpoint_trees`]: the trees of the last checkpoint, from [`tree_reach`] (pages below readable index nodes),
//!   [`trees`] (leaves along pointers) and [`orphans`] (leaves without a readable index node)
//! - [`stale`]: older values, if the user asks for them
//! - [`doubts`]: signs that the store held more than is visible
//! - [`run`]: the whole salvage

mod checkpoint_trees;
mod doubts;
mod erasing;
mod found;
mod log_map;
mod log_runs;
mod log_walk;
mod losses;
mod orphans;
mod records;
mod report;
mod run;
mod source;
mod stale;
mod survey;
mod target;
mod tree_reach;
mod trees;

pub use report::{
    DamagedPage, LogHole, LostRange, PageRole, SalvageOptions, SalvageProgress, SalvageReport,
    SalvagedRegion,
};
pub use survey::Survey;
