//! Background work: each job is a subsystem of its own, and the scheduler runs them.
//!
//! - [`scheduler`]: which thread runs which job: threads of the store, writers, or the caller of `background`
//! - [`spill`]: L0 into the levels; [`l0_images`]: images of L0 for a quick opening
//! - [`merge`](mod@merge): levels into each other; [`ingest`]: bulk loads
//! - [`gc`]: moves live records out of log segments with dead ones; [`reorganise`]: lays values of scans together
//! - [`compact`](mod@compact): makes regions and log as small as possible; [`log_stock`]: segments written ahead for the log
//! - [`make_region`], [`drop_region`]: creation and drop of regions
//! - [`counts`]: counts of spills and merges

pub mod compact;
mod counts;
pub mod drop_region;
pub mod gc;
pub mod ingest;
mod l0_images;
mod log_stock;
pub mod make_region;
mod merge;
mod reorganise;
mod scheduler;
mod spill;

use std::sync::Arc;

use crate::read::{Reader, ScatteredValues};
use crate::regions::Regions;
use crate::space::Space;
use crate::state::Storage;
use crate::throttle::Throttle;
use crate::tree_locks::TreeLocks;
use crate::versions::Versions;
use crate::visibility::Visibility;
use gc::{CollectsOn, Gc};
use kreon_sync::Wakeup;
use log_stock::LogStock;
use merge::Merger;
use reorganise::Reorganiser;
use spill::{Spiller, SpillsOn};

pub use gc::CollectionStats;
pub use ingest::Pairs;
pub use l0_images::{ImageStats, L0Images};
pub use reorganise::ReorganisationStats;

/// The subsystems that the jobs work on.
pub struct Ground<'a> {
    /// Volume, log, levels.
    pub storage: &'a Arc<Storage>,
    /// Gate, pending batches and snapshots.
    pub visibility: &'a Arc<Visibility>,
    /// Changes of the levels.
    pub versions: &'a Arc<Versions>,
    /// The space plan and its accounting.
    pub space: &'a Arc<Space>,
    /// Slows writers down.
    pub throttle: &'a Arc<Throttle>,
    /// Trees that loads, compactions and merges build on.
    pub tree_locks: &'a Arc<TreeLocks>,
    /// Regions that exist.
    pub regions: &'a Arc<Regions>,
    /// Reads values for reorganisation.
    pub reader: &'a Arc<Reader>,
    /// Values that scans found scattered.
    pub scattered: &'a Arc<ScatteredValues>,
    /// Wakes the thread that collects.
    pub collection_wanted: &'a Arc<Wakeup>,
}

/// All background jobs of a store.
pub struct Maintenance {
    storage: Arc<Storage>,
    versions: Arc<Versions>,
    scattered: Arc<ScatteredValues>,
    merge_wanted: Arc<Wakeup>,
    collection_wanted: Arc<Wakeup>,
    /// Spills L0.
    pub spiller: Arc<Spiller>,
    /// Merges levels.
    pub merger: Arc<Merger>,
    /// Collects garbage of the log.
    pub gc: Arc<Gc>,
    /// Lays values together that scans read.
    pub reorganiser: Reorganiser,
    /// Images of L0.
    pub l0_images: L0Images,
    /// Segments written ahead.
    pub log_stock: LogStock,
}

impl Maintenance {
    /// Makes the jobs; none runs yet.
    pub fn new(on: &Ground<'_>) -> Self {
        let merge_wanted = Arc::default();
        let spiller = Arc::new(Spiller::new(&SpillsOn {
            storage: on.storage,
            visibility: on.visibility,
            versions: on.versions,
            space: on.space,
            throttle: on.throttle,
            tree_locks: on.tree_locks,
            merge_wanted: &merge_wanted,
        }));
        let stored = (on.storage, on.visibility);
        let merger = Merger::new(stored, on.versions, on.tree_locks, &spiller);
        let collects_on = CollectsOn {
            storage: on.storage,
            visibility: on.visibility,
            versions: on.versions,
            space: on.space,
            throttle: on.throttle,
            tree_locks: on.tree_locks,
            regions: on.regions,
            spiller: &spiller,
        };
        let gc = Arc::new(Gc::new(&collects_on));
        let reorganiser = Reorganiser::new(
            (on.storage, on.space),
            (on.reader, on.scattered),
            on.versions,
            (&spiller, &gc),
        );
        Self {
            storage: Arc::clone(on.storage),
            versions: Arc::clone(on.versions),
            scattered: Arc::clone(on.scattered),
            merge_wanted,
            collection_wanted: Arc::clone(on.collection_wanted),
            l0_images: L0Images::new(on.storage, on.visibility),
            log_stock: LogStock::new(on.storage),
            merger: Arc::new(merger),
            spiller,
            gc,
            reorganiser,
        }
    }
}
