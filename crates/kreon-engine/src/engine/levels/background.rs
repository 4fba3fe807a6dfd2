//! When trees are merged, and by whom: threads of the store, or whoever drives it.
//!
//! Two threads, so that the short merges of the upper levels go on beside a long one further down. Should both be
//! at work for long, the first tree takes spills all the same. It becomes larger than it should be, so
//! spills become dearer and writers are slowed down with them: the number of trees stays what it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::{AtomicU64, Ordering};
use kreon_base::{ErrorKind, RegionId, Result};

use super::shape::TREES_MAX;
use crate::engine::core::Core;
use crate::level::View;

/// How long merges that fail, for lack of space perhaps, are left alone.
#[derive(Default)]
struct MergePause {
    until: Option<Instant>,
    pause: Duration,
}

impl MergePause {
    /// Whether it is time to try again.
    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Twice as long after every failure, up to a minute.
    fn after(&mut self, outcome: &Result<()>) {
        let error = match outcome {
            // The region was dropped meanwhile, or the store closed: no failure.
            Err(error) if error.kind() != ErrorKind::Closed => error,
            _ => {
                *self = Self::default();
                return;
            }
        };
        tracing::warn!(%error, "trees of a region could not be merged");
        let pause = self.pause.max(Duration::from_millis(500)) * 2;
        self.pause = pause.min(Duration::from_secs(60));
        self.until = Some(Instant::now() + self.pause);
    }
}

/// What spills and merges did since the store was opened.
#[derive(Default)]
pub struct MergeWork {
    merges: AtomicU64,
    merge_pages_read: AtomicU64,
    merge_pages_written: AtomicU64,
    spill_pages_read: AtomicU64,
    spill_pages_written: AtomicU64,
}

impl MergeWork {
    /// A merge of levels took apart and wrote so many pages.
    pub fn count_merge(&self, read: usize, written: usize) {
        self.merges.fetch_add(1, Ordering::Relaxed);
        self.merge_pages_read
            .fetch_add(read as u64, Ordering::Relaxed);
        self.merge_pages_written
            .fetch_add(written as u64, Ordering::Relaxed);
    }

    /// A spill took apart and wrote so many pages.
    pub fn count_spill(&self, read: usize, written: usize) {
        self.spill_pages_read
            .fetch_add(read as u64, Ordering::Relaxed);
        self.spill_pages_written
            .fetch_add(written as u64, Ordering::Relaxed);
    }

    /// Merges of levels that ended well.
    pub fn merges(&self) -> u64 {
        self.merges.load(Ordering::Relaxed)
    }

    /// Pages that merges took apart and wrote.
    pub fn merge_pages(&self) -> (u64, u64) {
        let (read, written) = (&self.merge_pages_read, &self.merge_pages_written);
        (
            read.load(Ordering::Relaxed),
            written.load(Ordering::Relaxed),
        )
    }

    /// Pages that spills took apart and wrote.
    pub fn spill_pages(&self) -> (u64, u64) {
        let (read, written) = (&self.spill_pages_read, &self.spill_pages_written);
        (
            read.load(Ordering::Relaxed),
            written.load(Ordering::Relaxed),
        )
    }
}

impl Core {
    /// Merges what is due in any region.
    ///
    /// # Errors
    /// Those of a spill, the first of any region; what was not merged stays as it is.
    pub fn merge_due(&self) -> Result<()> {
        let view = self.parts.views.load_full();
        let due = self.due_regions(&view);
        drop(view);
        let mut outcome = Ok(());
        for region in due {
            outcome = outcome.and(self.merge_region(region));
        }
        outcome
    }

    /// Whether trees of some region should be merged that nobody merges.
    pub fn is_merge_due(&self) -> bool {
        !self.due_regions(&self.parts.views.load()).is_empty()
    }

    fn due_regions(&self, view: &View) -> Vec<RegionId> {
        let is_due = |region: RegionId| {
            let sizes = self.sizes(view, region);
            let scale = self.scale();
            let first = sizes.first().map_or(0, |first| first.bytes);
            let is_first_full = scale.is_too_large_for_spills(first) && sizes.len() < TREES_MAX;
            let is_due = is_first_full || scale.next_merge(&sizes).is_some();
            is_due && self.holds.lets_merge(region)
        };
        let is_large = |bytes| self.scale().is_too_large_for_spills(bytes);
        let mut due = view.levels.tall(is_large);
        due.retain(|region| is_due(*region));
        due
    }

    /// The body of the threads that merge. Not that of spills: a merge may take minutes, and spills go on
    /// beside it.
    pub fn merge_loop(self: &Arc<Self>) {
        const PATIENCE: Duration = Duration::from_millis(200);
        let mut pause = MergePause::default();
        while !self.closed.load(Ordering::Acquire) {
            if pause.is_over() && self.parts.poison.check().is_ok() {
                pause.after(&self.merge_due());
            }
            self.merge_wanted.wait(PATIENCE);
        }
        // The other one, too.
        self.merge_wanted.call();
    }
}
