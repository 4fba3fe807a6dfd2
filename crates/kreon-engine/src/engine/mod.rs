//! An open store: what its handles do, and what goes on behind them.
//!
//! - [`open`], [`threads`]: opening and closing, background threads; [`forked`]: a store in a forked child
//! - [`write`], [`deleted_range`], [`gate`], [`units`], [`pressure`], [`pace`]: the write path
//! - [`read`], [`multi_get`], [`get_task`]: gets; [`value_reader`]: a value a part at a time; [`resident`]: nodes that are in memory; [`covering`]: deleted ranges as readers meet them
//! - [`scan`], [`scan_pair`], [`merge_scan`], [`scan_source`], [`batch`], [`snapshot`], [`snapshots`]: scans and snapshots;
//!   [`gaps`]: the dead entries that they need not pass
//! - [`ingest`]: bulk loads, which become a level without going through L0
//! - [`levels`]: merges of a region's trees
//! - [`collect`]: garbage collection of the log
//! - [`replayed`]: what a replay found, into L0
//! - [`reorganise`]: values that are scanned are laid together
//! - [`upkeep`], [`drop_region`]: spills and what they free
//! - [`images`]: checkpoints of L0
//! - `region`, [`make_region`]: regions
//! - [`stats`], [`memory_stats`], [`page_stats`], [`verify`], [`verify_durable`], [`verify_records`], [`page_set`]: inspection
//! - [`progress`]: how far long work has come

mod batch;
mod collect;
mod core;
mod covering;
mod deleted_range;
mod drop_region;
mod durable;
mod forked;
mod gaps;
mod gate;
mod get_task;
mod images;
mod ingest;
mod levels;
mod make_region;
mod memory_stats;
mod merge_scan;
#[cfg(all(test, shuttle))]
mod models;
mod multi_get;
mod open;
mod pace;
mod page_set;
mod page_stats;
mod prepare;
mod pressure;
mod progress;
mod read;
mod region;
mod reorganise;
mod replayed;
mod resident;
mod scan;
mod scan_memory;
mod scan_pair;
mod scan_source;
mod signal;
mod snapshot;
mod snapshots;
mod stats;
mod threads;
mod units;
mod upkeep;
mod value_reader;
mod verify;
mod verify_durable;
mod verify_records;
mod write;

pub use collect::CollectionStats;
pub use deleted_range::DeletedRange;
pub use durable::Durable;
pub use get_task::GetTask;
pub use ingest::Pairs;
pub use memory_stats::MemoryStats;
pub use open::Engine;
pub use page_stats::{PageClassStats, PageStats};
pub use progress::Progress;
pub use region::{RegionState, check_name};
pub use reorganise::ReorganisationStats;
pub use scan::{KeyBounds, Scan, prefix_bounds};
pub use scan_pair::TakePair;
pub use snapshot::OpenSnapshot;
pub use stats::{GetStats, ImageStats, LevelStats, Stats};
pub use value_reader::ValueReader;
pub use verify::VerifyReport;
pub use write::Operation;

#[cfg(test)]
mod tests;
