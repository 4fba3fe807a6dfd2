//! Handles of open snapshots.

use std::sync::Arc;

use kreon_base::{Lsn, planted};

use super::{Moment, ReadPoint, Visibility};

/// An open snapshot: sees every write before its position and none after. Old versions are kept while
/// it is open; that costs space, not memory.
pub struct OpenSnapshot {
    visibility: Arc<Visibility>,
    moment: Moment,
}

impl OpenSnapshot {
    /// Opens a snapshot of this moment. In a forked child it is of nothing: reads through it are `Closed`.
    pub fn new(visibility: &Arc<Visibility>) -> Self {
        let (storage, snapshots) = (&visibility.storage, &visibility.snapshots);
        let moment = match storage.lifecycle.is_home() {
            true => {
                let clock = &storage.options.clock;
                snapshots.open(&visibility.gate, clock, || storage.log.tail())
            }
            false => Moment::default(),
        };
        Self {
            visibility: Arc::clone(visibility),
            moment,
        }
    }

    /// Its position.
    pub fn lsn(&self) -> Lsn {
        planted!(SnapshotSeesNextWrite => return Lsn(self.moment.at.0 + 1));
        self.moment.at
    }

    /// Where reads through it look from.
    pub fn point(&self) -> ReadPoint<'static> {
        ReadPoint::at(self.lsn(), self.moment.time)
    }

    /// Its position, its time and its closing of the gate.
    pub fn moment(&self) -> Moment {
        self.moment
    }
}

impl Drop for OpenSnapshot {
    fn drop(&mut self) {
        if self.visibility.storage.lifecycle.is_home() {
            self.visibility.snapshots.close(self.moment.at);
        }
    }
}
