//! Handles of open snapshots.

use std::sync::Arc;

use kreon_base::{Bug, Lsn};

use super::core::Core;

/// An open snapshot: sees every write before its position and none after. Old versions are kept while
/// it is open; that costs space, not memory.
pub struct OpenSnapshot {
    core: Arc<Core>,
    lsn: Lsn,
}

impl OpenSnapshot {
    /// Opens a snapshot of this moment. In a forked child it is of nothing: reads through it are `Closed`.
    pub fn new(core: &Arc<Core>) -> Self {
        let lsn = match core.home.is_this() {
            true => core.snapshots.open(&core.gate, || core.parts.log.tail()),
            false => Lsn(0),
        };
        Self {
            core: Arc::clone(core),
            lsn,
        }
    }

    /// Its position.
    pub fn lsn(&self) -> Lsn {
        if Bug::SnapshotSeesNextWrite.is_planted() {
            return Lsn(self.lsn.0 + 1);
        }
        self.lsn
    }
}

impl Drop for OpenSnapshot {
    fn drop(&mut self) {
        if self.core.home.is_this() {
            self.core.snapshots.close(self.lsn);
        }
    }
}
