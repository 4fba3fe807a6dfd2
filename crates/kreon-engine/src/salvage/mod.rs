//! Salvage: what can still be read of a damaged store, into a new one.
//!
//! Nothing is written to the source. What is salvaged is what verifies; what cannot be vouched for is
//! counted and told, never passed off as current.
//!
//! Two facts decide what is current. The log behind a place without holes tells the newest write of
//! every key that it names, whatever trees say. And a page that the bitmap of the last checkpoint marks
//! as in use is part of the trees of that checkpoint.
//!
//! - [`source`]: the volume, read with tolerance
//! - [`report`], [`losses`]: what is told in the end
//! - [`log_map`], [`log_runs`], [`log_walk`]: the log in pieces
//! - [`records`]: values that leaves point at
//! - [`found`]: what stands on the volume, without any pointer
//! - [`survey`]: where to start from
//! - [`target`]: the new store
//! - [`checkpoint_trees`]: trees in their order, from [`tree_reach`], [`trees`] and [`orphans`]: what readable index nodes
//!   lead to, leaves along pointers, and those that no whole index node leads to
//! - [`stale`]: older values where they are asked for
//! - [`doubts`]: signs that there was more than what can be seen
//! - [`run`]: all of it in order

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
