//! Visibility: which versions a reader at an LSN sees, with writers, batches and snapshots beside it.
//!
//! - [`gate`]: writers enter it; it is closed for a moment without writers
//! - [`pending_batches`]: batches that are not wholly in L0, which gets pass over
//! - [`snapshots`]: open snapshots, whose versions must be kept
//! - [`open_snapshot`]: the handle of one snapshot
//! - [`read_point`]: the position and the time of a read

mod gate;
mod open_snapshot;
mod pending_batches;
mod read_point;
mod snapshots;

use std::sync::Arc;

use kreon_base::Timestamp;

use crate::state::Storage;

pub use gate::Gate;
pub use open_snapshot::OpenSnapshot;
pub use pending_batches::{BatchVisibility, KeySet, PendingBatches, mark};
pub use read_point::ReadPoint;
pub use snapshots::{Moment, Snapshots};

/// Gate, pending batches and snapshots. Order of locks: the gate, then those of snapshots and batches.
pub struct Visibility {
    storage: Arc<Storage>,
    /// Entered by writers, closed for a moment without writers.
    pub gate: Gate,
    /// Batches that are not wholly in L0.
    pub batches: PendingBatches,
    /// Open snapshots.
    pub snapshots: Snapshots,
}

impl Visibility {
    /// Of a store that was just opened: no writer, no snapshot.
    pub fn new(storage: &Arc<Storage>) -> Self {
        Self {
            storage: Arc::clone(storage),
            gate: Gate::default(),
            batches: PendingBatches::default(),
            snapshots: Snapshots::default(),
        }
    }

    /// Values that end by this time have ended for all open snapshots and for all who read from now on.
    pub fn horizon(&self) -> Timestamp {
        self.snapshots.horizon(&self.storage.options.clock)
    }
}
