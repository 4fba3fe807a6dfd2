//! Statistics and verification of an open store. Changes nothing.
//!
//! - [`stats`]: all figures; [`memory_stats`]: memory by class; [`page_stats`]: pages by kind;
//!   [`json`], [`prometheus`]: all of them for machines
//! - [`sizes`]: sizes for people
//! - [`verify`]: verification of everything; [`verify_durable`]: of the last checkpoint; [`verify_records`]: of log records;
//!   [`pointed`]: what an entry says of its record; [`page_set`]: the pages that were met

mod json;
mod memory_stats;
mod page_set;
mod page_stats;
mod pointed;
mod prometheus;
mod sizes;
mod stats;
mod verify;
mod verify_durable;
mod verify_records;

use std::sync::Arc;

use crate::maintenance::Maintenance;
use crate::read::Reader;
use crate::regions::Regions;
use crate::state::Storage;
use crate::throttle::Throttle;
use crate::versions::Versions;
use crate::visibility::Visibility;

pub use memory_stats::MemoryStats;
pub use page_set::PageSet;
pub use page_stats::{PageClassStats, PageStats};
pub use stats::{GetStats, LevelStats, Stats};
pub use verify::VerifyReport;

/// Computes statistics and verifies the store.
pub struct Inspector {
    /// Volume, log, levels.
    pub storage: Arc<Storage>,
    pub regions: Arc<Regions>,
    /// Gate, pending batches and snapshots.
    pub visibility: Arc<Visibility>,
    pub versions: Arc<Versions>,
    /// Counts spills.
    pub throttle: Arc<Throttle>,
    pub reader: Arc<Reader>,
    pub maintenance: Arc<Maintenance>,
}
