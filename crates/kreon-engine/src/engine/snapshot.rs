//! Handles of open snapshots.

use std::sync::Arc;

use kreon_base::{Bug, Lsn};

use super::core::Core;
use super::gaps::Moment;

/// An open snapshot: sees every write before its position and none after. Old versions are kept while
/// it is open; that costs space, not memory.
pub struct OpenSnapshot {
    core: Arc<Core>,
    moment: Moment,
}

impl OpenSnapshot {
    /// Opens a snapshot of this moment. In a forked child it is of nothing: reads through it are `Closed`.
    pub fn new(core: &Arc<Core>) -> Self {
        let moment = match core.home.is_this() {
            true => core.snapshots.open(&core.gate, || core.parts.log.tail()),
            false => Moment::default(),
        };
        Self {
            core: Arc::clone(core),
            moment,
        }
    }

    /// Its position.
    pub fn lsn(&self) -> Lsn {
        if Bug::SnapshotSeesNextWrite.is_planted() {
            return Lsn(self.moment.at.0 + 1);
        }
        self.moment.at
    }

    /// Its position and its closing of the gate.
    pub(super) fn moment(&self) -> Moment {
        self.moment
    }
}

impl Drop for OpenSnapshot {
    fn drop(&mut self) {
        if self.core.home.is_this() {
            self.core.snapshots.close(self.moment.at);
        }
    }
}
