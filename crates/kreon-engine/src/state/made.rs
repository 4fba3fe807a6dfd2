//! Regions that the log has and no checkpoint yet.

use std::sync::Arc;

use kreon_base::{Epoch, Lsn, RegionId, RegionOptions};
use kreon_sync::{AtomicU64, Mutex, Ordering, Rank, RankedGuard, RankedMutex};

/// A region whose making is in the log.
#[derive(Clone, Debug)]
pub struct MadeRegion {
    /// Its number.
    pub id: RegionId,
    /// Its name.
    pub name: Arc<str>,
    /// What it has of its own.
    pub options: RegionOptions,
    /// Behind the record that makes it.
    pub end: Lsn,
}

/// Regions whose creation is in the log and in no checkpoint yet.
pub struct MadeRegions {
    /// The number of the next region.
    next: RankedMutex<RegionId>,
    /// Ascending, by number and place in the log.
    waiting: Mutex<Vec<MadeRegion>>,
    /// A durable epoch that has the last drop of this run; 0: there was none.
    dropped: AtomicU64,
}

impl MadeRegions {
    /// None; the next region gets the number `next`.
    pub fn new(next: RegionId) -> Self {
        Self {
            next: RankedMutex::new(Rank::RegionNumbers, next),
            waiting: Mutex::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// The number of the next region, for the thread that makes it. Held while the record is appended, so that numbers ascend
    /// in the order of the log.
    pub fn turn(&self) -> RankedGuard<'_, RegionId> {
        self.next.lock()
    }

    /// Whether every number was given to a region: no space helps.
    pub fn is_used_up(&self) -> bool {
        self.next.lock().0 == u32::MAX
    }

    /// Adds a region whose record is in the log. Inside the gate that the record was appended in: when a moment without
    /// writers has told where the log ends, every region that was made before is known here.
    pub fn add(&self, region: MadeRegion) {
        self.waiting.lock().push(region);
    }

    /// Shows each in order.
    pub fn each(&self, show: impl FnMut(&MadeRegion)) {
        self.waiting.lock().iter().for_each(show);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// A durable epoch that has the last drop of this run; 0: there was none.
    pub fn dropped(&self) -> Epoch {
        Epoch(self.dropped.load(Ordering::Acquire))
    }

    /// A region was dropped; `epoch` or one before it has that.
    pub fn note_drop(&self, epoch: Epoch) {
        self.dropped.fetch_max(epoch.0, Ordering::AcqRel);
    }

    /// Forgets those before `next`: a durable catalogue knows of them.
    pub fn settle(&self, next: RegionId) {
        let mut waiting = self.waiting.lock();
        let count = waiting.partition_point(|region| region.id < next);
        waiting.drain(..count);
    }
}
