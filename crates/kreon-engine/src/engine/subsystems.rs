//! The subsystems of an open store. Only this file knows all of them; it makes each from those below it.

use std::sync::Arc;

use kreon_base::{Lsn, Result};

use crate::backup::Backups;
use crate::changes::ChangeSource;
use crate::inspect::Inspector;
use crate::maintenance::compact::Compactor;
use crate::maintenance::drop_region::RegionDropper;
use crate::maintenance::ingest::Loader;
use crate::maintenance::make_region::RegionMaker;
use crate::maintenance::{Ground, Maintenance};
use crate::read::{Reader, ScatteredValues};
use crate::regions::{RegionState, Regions};
use crate::space::Space;
use crate::state::Storage;
use crate::throttle::Throttle;
use crate::tree_locks::TreeLocks;
use crate::versions::Versions;
use crate::visibility::Visibility;
use crate::write::Writer;
use kreon_sync::Wakeup;

/// Locks are taken in the order of [`kreon_sync::Rank`].
pub struct Subsystems {
    /// Volume, log, levels.
    pub storage: Arc<Storage>,
    /// Regions by name.
    pub regions: Arc<Regions>,
    /// Gate, pending batches and snapshots.
    pub visibility: Arc<Visibility>,
    /// The space plan and its accounting.
    pub space: Arc<Space>,
    /// Trees that loads, compactions and merges build on.
    #[cfg(test)]
    pub tree_locks: Arc<TreeLocks>,
    /// Values that scans found scattered.
    #[cfg(test)]
    pub scattered: Arc<ScatteredValues>,
    /// Changes of the levels.
    pub versions: Arc<Versions>,
    /// Gets and scans.
    pub reader: Arc<Reader>,
    /// Background work.
    pub maintenance: Arc<Maintenance>,
    /// Puts and deletions.
    pub writer: Writer,
    /// Bulk loads.
    pub loader: Loader,
    /// Compaction of regions and log.
    pub compactor: Compactor,
    /// New regions.
    pub region_maker: RegionMaker,
    /// Drops of regions.
    pub region_dropper: RegionDropper,
    /// Figures and verification.
    pub inspector: Inspector,
    /// Backups into folders.
    pub backups: Backups,
    /// Feeds of changes.
    pub changes: ChangeSource,
}

impl Subsystems {
    /// Makes the subsystems of a storage that was just opened.
    pub fn new(storage: Arc<Storage>) -> Self {
        let regions = Arc::new(Regions::default());
        for (id, entry) in storage.ledger.lock().regions.iter() {
            let (name, options) = (Arc::clone(&entry.name), &entry.options);
            regions.insert(RegionState::new(id, name, options, Lsn(0)));
        }
        let collection_wanted = Arc::new(Wakeup::default());
        let throttle = Arc::new(Throttle::new(&storage.options.events));
        let visibility = Arc::new(Visibility::new(&storage));
        let space = Arc::new(Space::new(&storage, &throttle, &collection_wanted));
        let tree_locks = Arc::new(TreeLocks::default());
        let versions = Arc::new(Versions::new(
            (&storage, &regions),
            &visibility,
            &space,
            &tree_locks,
        ));
        let scattered = Arc::new(ScatteredValues::new(storage.options.credit_bytes()));
        let reader = Reader::new(&storage, &visibility, &tree_locks, &scattered);
        let reader = Arc::new(reader);
        let on = Ground {
            storage,
            visibility,
            versions,
            space,
            throttle,
            tree_locks,
            regions,
        };
        let maintenance = Maintenance::new(&on, (&reader, &scattered), &collection_wanted);
        let maintenance = Arc::new(maintenance);
        let (spiller, merger, gc) = (&maintenance.spiller, &maintenance.merger, &maintenance.gc);
        Self {
            writer: Writer::new(&on, &reader, &maintenance),
            loader: Loader::new(&on, spiller, merger),
            compactor: Compactor::new(&on, (spiller, merger, gc)),
            region_maker: RegionMaker::new(&on, gc),
            region_dropper: RegionDropper::new(&on),
            backups: Backups::new(&on.storage),
            changes: ChangeSource::new(&on.storage, &on.regions),
            inspector: Inspector {
                storage: Arc::clone(&on.storage),
                regions: Arc::clone(&on.regions),
                visibility: Arc::clone(&on.visibility),
                versions: Arc::clone(&on.versions),
                throttle: Arc::clone(&on.throttle),
                reader: Arc::clone(&reader),
                maintenance: Arc::clone(&maintenance),
            },
            storage: on.storage,
            regions: on.regions,
            visibility: on.visibility,
            space: on.space,
            #[cfg(test)]
            tree_locks: on.tree_locks,
            #[cfg(test)]
            scattered,
            versions: on.versions,
            reader,
            maintenance,
        }
    }

    /// See [`ChangeSource::begin`].
    pub fn begin_feed(&self) -> Result<()> {
        self.changes.begin(&self.versions, &self.visibility)
    }
}
