//! How many pages are resident, by priority, and how many are dirty.

use std::sync::atomic::Ordering::Relaxed;

use kreon_base::Priority;

use crate::counters::ClassCounters;
use crate::shared::{DirtyCount, ResidentCount};

/// Number of eviction priorities.
pub(crate) const PRIORITIES: usize = 256;

/// Counts over all shards. A count changes under the lock of the page's shard; read without a lock, it is a hint.
pub(crate) struct PageCounts {
    resident: Box<[ResidentCount; PRIORITIES]>,
    /// Pages being written are still dirty.
    dirty: DirtyCount,
    /// Dirty pages that were written, since the mapping was made.
    written: ClassCounters,
}

impl PageCounts {
    pub(super) fn new() -> Self {
        Self {
            resident: Box::new([const { ResidentCount::new(0) }; _]),
            dirty: DirtyCount::new(0),
            written: ClassCounters::default(),
        }
    }

    /// A page of this priority became resident.
    pub(super) fn add_resident(&self, priority: Priority) {
        self.of(priority).fetch_add(1, Relaxed);
    }

    /// A page of this priority lost its frame.
    pub(super) fn remove_resident(&self, priority: Priority) {
        let before = self.of(priority).fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a page leaves that was not counted");
    }

    /// A page became dirty.
    pub(super) fn add_dirty(&self) {
        self.dirty.fetch_add(1, Relaxed);
    }

    /// A dirty page became clean, or was discarded.
    pub(super) fn remove_dirty(&self) {
        let before = self.dirty.fetch_sub(1, Relaxed);
        debug_assert!(
            before > 0,
            "a page becomes clean that was not counted as dirty"
        );
    }

    /// A page of this priority was written.
    pub(super) fn add_written(&self, priority: Priority) {
        self.written.add(priority, 1);
    }

    pub(crate) fn resident_of(&self, priority: Priority) -> usize {
        self.of(priority).load(Relaxed)
    }

    /// Resident pages of all priorities with a lower number.
    pub(crate) fn resident_below(&self, priority: Priority) -> usize {
        let counts = self.resident.iter().take(usize::from(priority.0));
        counts.map(|count| count.load(Relaxed)).sum()
    }

    /// Resident pages of each priority that has any, from the lowest on.
    pub(crate) fn resident_by_priority(&self) -> impl Iterator<Item = (Priority, u64)> {
        let priorities = (0..PRIORITIES).map(|number| Priority(number as u8));
        let counts = priorities.map(|priority| (priority, self.resident_of(priority) as u64));
        counts.filter(|(_, pages)| *pages > 0)
    }

    pub(crate) fn resident(&self) -> usize {
        let counts = self.resident.iter();
        counts.map(|count| count.load(Relaxed)).sum()
    }

    /// Dirty pages, those being written included.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty.load(Relaxed)
    }

    pub(crate) fn written(&self) -> &ClassCounters {
        &self.written
    }

    fn of(&self, priority: Priority) -> &ResidentCount {
        &self.resident[usize::from(priority.0)]
    }
}
