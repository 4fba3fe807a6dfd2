//! The read path: gets and scans, and the notes of scans for reorganisation and gaps.
//!
//! - [`get`], [`multi_get`], [`get_task`], [`seen`]: gets; [`value_reader`]: a value a part at a time; [`covering`]: deleted
//!   ranges that cover a key
//! - [`scan`], [`scan_pair`], [`merge_scan`], [`scan_source`], [`scan_rest`], [`ahead`], [`batch`], [`key_bounds`]: scans;
//!   [`scan_memory`]: the memory of their read-ahead
//! - [`records`]: reads of many records at once
//! - [`changed`]: whether keys and ranges were changed since a snapshot; [`unmoved`]: gets that can be asked for later
//!   changes without one
//! - [`sweep`]: finds gaps around a deletion, for later scans
//! - [`leaves`], [`charge`], [`credits`], [`scan_queue`], [`scattered`]: excess reads of scans, credited to leaves whose
//!   values are scattered

mod ahead;
mod batch;
mod changed;
mod charge;
mod covering;
mod credits;
mod get;
mod get_task;
mod key_bounds;
mod leaves;
pub mod merge_scan;
mod multi_get;
mod records;
mod scan;
mod scan_memory;
mod scan_pair;
mod scan_queue;
mod scan_rest;
pub mod scan_source;
mod scattered;
mod seen;
mod sweep;
mod unmoved;
mod value_reader;

use std::sync::Arc;

use arc_swap::Guard;
use kreon_base::Lsn;
use kreon_sync::{AtomicU64, Ordering};

use crate::level::View;
use crate::state::Storage;
use crate::tree_locks::TreeLocks;
use crate::visibility::{ReadPoint, Visibility};
use scan_memory::ScanMemory;

pub use changed::{LevelsSeen, changed_in_l0s, newest_in_l0s};
pub use charge::enough;
pub use get_task::GetTask;
pub use key_bounds::{KeyBounds, is_empty, prefix_bounds};
pub use scan::Scan;
pub use scan_memory::ScanShare;
pub use scan_pair::{ShowPair, TakePair};
pub use scan_queue::{RECORD_BYTES_MAX, ScanBuffer};
pub use scattered::{Scattered, ScatteredValues};
pub use seen::Seen;
pub use unmoved::Unmoved;
pub use value_reader::ValueReader;

/// Gets and scans at any LSN. Changes nothing but its own notes.
pub struct Reader {
    storage: Arc<Storage>,
    visibility: Arc<Visibility>,
    tree_locks: Arc<TreeLocks>,
    /// The memory of the read-ahead of scans.
    scan_memory: Arc<ScanMemory>,
    scattered: Arc<ScatteredValues>,
    /// Dead entries that scans passed one by one.
    scanned_dead: AtomicU64,
}

impl Reader {
    /// Of a store that was just opened.
    pub fn new(
        storage: &Arc<Storage>,
        visibility: &Arc<Visibility>,
        tree_locks: &Arc<TreeLocks>,
        scattered: &Arc<ScatteredValues>,
    ) -> Self {
        Self {
            storage: Arc::clone(storage),
            visibility: Arc::clone(visibility),
            tree_locks: Arc::clone(tree_locks),
            scan_memory: ScanMemory::new(storage.split.scan_bytes),
            scattered: Arc::clone(scattered),
            scanned_dead: AtomicU64::new(0),
        }
    }

    /// The current view.
    pub fn view(&self) -> Guard<Arc<View>> {
        self.storage.views.load()
    }

    /// Where a read of now looks from.
    pub fn now(&self) -> ReadPoint<'_> {
        ReadPoint::now(&self.storage.options.clock)
    }

    /// The log's tail.
    pub fn tail(&self) -> Lsn {
        self.storage.log.tail()
    }

    /// The memory of the read-ahead of scans.
    pub fn scan_memory(&self) -> &Arc<ScanMemory> {
        &self.scan_memory
    }

    /// Dead entries that scans passed one by one.
    pub fn scanned_dead(&self) -> u64 {
        self.scanned_dead.load(Ordering::Relaxed)
    }
}
