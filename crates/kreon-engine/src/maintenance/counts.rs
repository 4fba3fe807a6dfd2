//! Counts of spills or merges, and of their pages.

use kreon_sync::{AtomicU64, Ordering};

/// Ends of one kind of work since the store was opened, and its pages.
#[derive(Default)]
pub struct PageCounts {
    done: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
}

impl PageCounts {
    /// Work ended that took apart and wrote so many pages.
    pub fn count(&self, read: usize, written: usize) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        self.written.fetch_add(written as u64, Ordering::Relaxed);
    }

    /// How often.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Pages taken apart, and written.
    pub fn pages(&self) -> (u64, u64) {
        (
            self.read.load(Ordering::Relaxed),
            self.written.load(Ordering::Relaxed),
        )
    }
}
