//! Changes of the levels. [`install`] makes a change durable, shows it to readers and retires the pages and segments that
//! it made unreachable; [`reclaim`] frees these once no reader has a view that reaches them. Nothing else installs
//! durable levels or frees their pages.
//!
//! - [`freeze`]: L0' becomes L0
//! - [`install`]: new levels, by a checkpoint
//! - [`kept_log`]: gives up log that is kept for the change feed
//! - [`shape`]: the list of a region's trees between merges
//! - [`reclaim`]: frees pages and segments that no reader reaches

mod freeze;
mod install;
mod kept_log;
mod reclaim;
mod shape;

use std::sync::Arc;

use kreon_base::Lsn;
use kreon_sync::{AtomicU64, Ordering, Rank, RankedGuard, RankedMutex};

use crate::regions::Regions;
use crate::space::Space;
use crate::state::Storage;
use crate::tree_locks::TreeLocks;
use crate::visibility::Visibility;

pub use shape::TREES_MAX;

/// Holds the rights to change the levels, to freeze L0' and to reclaim.
pub struct Versions {
    storage: Arc<Storage>,
    regions: Arc<Regions>,
    visibility: Arc<Visibility>,
    space: Arc<Space>,
    tree_locks: Arc<TreeLocks>,
    /// One spill, merge, drop of a region or verification changes or reads all levels at a time.
    changes: RankedMutex<()>,
    /// One change from L0' to L0 at a time.
    freezes: RankedMutex<()>,
    /// One thread reclaims at a time: if it finds nothing, no other is about to free anything.
    reclaiming: RankedMutex<()>,
    /// Moved records before this position of their stream are in L0' or in what came of it, or nothing will ever point
    /// at them. Changes inside the gate, if entries were inserted.
    inserted: AtomicU64,
    segments_freed: AtomicU64,
}

impl Versions {
    /// Of a store that was just opened: nothing was moved yet.
    pub fn new(
        (storage, regions): (&Arc<Storage>, &Arc<Regions>),
        visibility: &Arc<Visibility>,
        space: &Arc<Space>,
        tree_locks: &Arc<TreeLocks>,
    ) -> Self {
        let inserted = storage.moved.lock().end();
        Self {
            storage: Arc::clone(storage),
            regions: Arc::clone(regions),
            visibility: Arc::clone(visibility),
            space: Arc::clone(space),
            tree_locks: Arc::clone(tree_locks),
            changes: RankedMutex::new(Rank::Changes, ()),
            freezes: RankedMutex::new(Rank::Freezes, ()),
            reclaiming: RankedMutex::new(Rank::Reclaiming, ()),
            inserted: AtomicU64::new(inserted.0),
            segments_freed: AtomicU64::new(0),
        }
    }

    /// The right to change the levels, or to read all of them unchanged.
    pub fn lock_changes(&self) -> RankedGuard<'_, ()> {
        self.changes.lock()
    }

    /// The position in the stream of moved records before which every copy was inserted, or never will be.
    pub fn inserted(&self) -> Lsn {
        Lsn(self.inserted.load(Ordering::Acquire))
    }

    /// Moved records before `position` were inserted, or never will be.
    pub fn set_inserted(&self, position: Lsn) {
        self.inserted.store(position.0, Ordering::Release);
    }

    /// Segments of the log that were freed since the store was opened.
    pub fn segments_freed(&self) -> u64 {
        self.segments_freed.load(Ordering::Relaxed)
    }
}
