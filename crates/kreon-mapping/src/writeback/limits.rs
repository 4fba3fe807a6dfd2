//! How many pages may be dirty before threads that make pages fresh must write some back.

use parking_lot::{Mutex, MutexGuard};

use crate::transfer::TRANSFER_PAGES_MAX;

/// Most pages in one call to the device: 8 MiB.
pub(super) const BATCH_PAGES_MAX: usize = 8 * TRANSFER_PAGES_MAX;

/// Two limits on the number of dirty pages, and the place where the next writeback goes on.
pub(super) struct DirtyLimits {
    /// Over this, one thread writes a batch, while the others go on.
    start: usize,
    /// Over this, all threads wait for that.
    stop: usize,
    /// Most pages in a batch: an eighth of the frames, at most 8 MiB.
    batch_pages: usize,
    /// The stripe where the next batch starts. Locked by the thread that writes.
    position: Mutex<u64>,
}

impl DirtyLimits {
    pub(super) fn new(frames: usize, share_percent: u8) -> Self {
        let start = frames * usize::from(share_percent) / 100;
        let limits = Self {
            start,
            stop: (start + frames) / 2,
            batch_pages: (frames / 8).clamp(1, BATCH_PAGES_MAX),
            position: Mutex::new(0),
        };
        assert!(limits.start <= limits.stop && limits.stop <= frames);
        limits
    }

    /// Most pages in a batch.
    pub(super) fn batch_pages(&self) -> usize {
        self.batch_pages
    }

    /// Whether this number of dirty pages is over the first limit.
    pub(super) fn is_over(&self, dirty: usize) -> bool {
        dirty > self.start
    }

    /// The right to write a batch: waited for over the second limit, else taken if it is free.
    pub(super) fn turn(&self, dirty: usize) -> Option<MutexGuard<'_, u64>> {
        if dirty > self.stop {
            return Some(self.position.lock());
        }
        self.position.try_lock()
    }
}
