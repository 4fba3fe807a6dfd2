//! Background work: each job is a subsystem of its own, and the scheduler runs them.
//!
//! - [`scheduler`]: which thread runs which job: threads of the store, writers, or the caller of `background`
//! - [`spill`]: L0 into the levels; [`l0_images`]: images of L0 for a quick opening
//! - [`merge`](mod@merge): levels into each other; [`ingest`]: bulk loads
//! - [`gc`]: moves live records out of log segments with dead ones; [`reorganise`]: lays values of scans together
//! - [`compact`](mod@compact): makes regions and log as small as possible; [`log_stock`]: segments written ahead for the log
//! - [`make_region`], [`drop_region`]: creation and drop of regions
//! - [`ground`]: the subsystems below; [`counts`]: counts of spills and merges

pub mod compact;
mod counts;
pub mod drop_region;
pub mod gc;
mod ground;
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
use gc::Gc;
use kreon_sync::Wakeup;
use log_stock::LogStock;
use merge::Merger;
use reorganise::{IdleReorganiser, Reorganiser};
use spill::Spiller;

pub use gc::CollectionStats;
pub use ground::Ground;
pub use ingest::Pairs;
pub use l0_images::{ImageStats, L0Images};
pub use reorganise::{IdleStats, ReorganisationStats};

/// All background jobs of a store.
pub struct Maintenance {
    on: Ground,
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
    /// Lays values together while nobody writes.
    pub idle: IdleReorganiser,
    /// Images of L0.
    pub l0_images: L0Images,
    /// Segments written ahead.
    pub log_stock: LogStock,
}

impl Maintenance {
    /// Makes the jobs; none runs yet.
    pub fn new(
        on: &Ground,
        (reader, scattered): (&Arc<Reader>, &Arc<ScatteredValues>),
        collection_wanted: &Arc<Wakeup>,
    ) -> Self {
        let merge_wanted = Arc::default();
        let spiller = Arc::new(Spiller::new(on, &merge_wanted));
        let gc = Arc::new(Gc::new(on, &spiller));
        Self {
            on: on.clone(),
            scattered: Arc::clone(scattered),
            merge_wanted,
            collection_wanted: Arc::clone(collection_wanted),
            l0_images: L0Images::new(on),
            log_stock: LogStock {
                storage: Arc::clone(&on.storage),
            },
            merger: Arc::new(Merger::new(on, &spiller)),
            reorganiser: Reorganiser::new(on, (reader, scattered), (&spiller, &gc)),
            idle: IdleReorganiser::new(on, scattered, (&spiller, &gc)),
            spiller,
            gc,
        }
    }

    /// What was laid together so far.
    pub fn reorganisation_stats(&self) -> ReorganisationStats {
        ReorganisationStats {
            idle: self.idle.stats(),
            ..self.reorganiser.stats()
        }
    }
}
