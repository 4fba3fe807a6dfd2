//! The state behind the space plan.

use std::sync::Arc;

use kreon_base::Lsn;
use kreon_sync::{AtomicU64, Mutex, Ordering};

use super::excess::Excess;
use super::garbage::UnspilledGarbage;
use super::plan::Plan;
use super::snapshot::SpaceSnapshot;
use crate::state::Storage;
use crate::throttle::Throttle;
use kreon_sync::Wakeup;

/// The space plan of a store, and what it is computed from. Takes no locks but its own, the ledger's and the allocator's.
pub struct Space {
    pub(super) storage: Arc<Storage>,
    pub(super) throttle: Arc<Throttle>,
    /// Wakes the thread that collects.
    pub(super) collection_wanted: Arc<Wakeup>,
    /// The LSN from which on writers ask whether L0' must be frozen.
    pub(super) freeze_at: AtomicU64,
    pub(super) garbage: Mutex<UnspilledGarbage>,
    /// The tail of the log when it was last asked whether the store is quiet.
    pub(super) looked_at: AtomicU64,
    pub(super) snapshot: SpaceSnapshot,
    pub(super) excess: Excess,
}

impl Space {
    /// Of a store that was just opened: nothing is planned, and L0' begins nowhere.
    pub fn new(
        storage: &Arc<Storage>,
        throttle: &Arc<Throttle>,
        collection_wanted: &Arc<Wakeup>,
    ) -> Self {
        Self {
            storage: Arc::clone(storage),
            throttle: Arc::clone(throttle),
            collection_wanted: Arc::clone(collection_wanted),
            freeze_at: AtomicU64::new(u64::MAX),
            garbage: Mutex::default(),
            looked_at: AtomicU64::new(0),
            snapshot: SpaceSnapshot::default(),
            excess: Excess::default(),
        }
    }

    /// L0' begins at `end` and may hide `bytes_max` of garbage. Called with the gate closed, or before any write.
    pub fn frozen_at(&self, end: Lsn, bytes_max: u64) {
        *self.garbage.lock() = UnspilledGarbage::since(end);
        self.snapshot.frozen_at(end);
        self.freeze_at(end, bytes_max);
    }

    /// Writers ask again when the log has grown by `bytes` from `end`.
    pub(super) fn freeze_at(&self, end: Lsn, bytes: u64) {
        let at = end.0.saturating_add(bytes);
        self.freeze_at.store(at, Ordering::Relaxed);
    }

    /// Whether the log has come so far that L0' may have to be frozen.
    pub fn is_freeze_due(&self, tail: Lsn) -> bool {
        tail.0 >= self.freeze_at.load(Ordering::Relaxed)
    }

    /// The current space plan.
    pub fn plan(&self) -> Plan {
        self.snapshot.plan()
    }

    /// The space that reorganisation may take beyond the plan.
    pub fn excess(&self) -> &Excess {
        &self.excess
    }

    /// Whether the log has not grown since the last call.
    pub fn is_quiet(&self) -> bool {
        let tail = self.storage.log.tail();
        self.looked_at.swap(tail.0, Ordering::Relaxed) == tail.0
    }
}
