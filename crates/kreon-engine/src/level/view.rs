//! Views: what a reader sees, and how long it keeps old pages alive.
//!
//! A reader takes the current view with one load and no lock. Pages and segments that a spill replaced
//! wait in [`Views`] until every view from before the spill is gone; only then are they handed out
//! again (invariant 1 for readers).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arc_swap::ArcSwap;
use kreon_base::{Lsn, PageNo, SegmentId, planted};
use kreon_sync::Mutex;

use super::{Levels, Memory};

/// Counts views; a later view has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ViewSequence(u64);

/// An L0 that takes no more writes. It holds every record before `end` that no level holds.
pub struct Frozen {
    /// Keys and deleted ranges.
    pub l0: Arc<Memory>,
    /// All writes before this position are in it or in the levels; none behind.
    pub end: Lsn,
    /// Moved records before this position are in it or in the levels, or nothing points at them.
    pub moved_end: Lsn,
}

/// What a reader sees. L0' (`active`) first, then L0 (`frozen`), then the levels: the first that has a
/// visible version of a key wins.
pub struct View {
    /// Takes the writes.
    pub active: Arc<Memory>,
    /// Is being spilled.
    pub frozen: Option<Arc<Frozen>>,
    /// The device levels.
    pub levels: Arc<Levels>,
    sequence: ViewSequence,
    registry: Arc<Registry>,
}

impl View {
    /// Its number. As long as the current view has it, nothing that this view reaches is handed out again.
    pub fn sequence(&self) -> ViewSequence {
        self.sequence
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut alive = self.registry.alive.lock();
        alive.remove(&self.sequence);
    }
}

#[derive(Default)]
struct Registry {
    /// Views that somebody still holds.
    alive: Mutex<BTreeMap<ViewSequence, ()>>,
}

/// What became unreachable with one change of view.
#[derive(Default)]
pub struct Retired {
    /// Pages of trees and catalogues.
    pub pages: Vec<PageNo>,
    /// Log segments without a live byte.
    pub segments: Vec<SegmentId>,
    /// A reader may reach these through views up to this one.
    reachable_from: ViewSequence,
}

/// The current view, and what waits for older ones to go.
pub struct Views {
    current: ArcSwap<View>,
    registry: Arc<Registry>,
    /// Serialises changes; holds the number of the next view.
    next: Mutex<u64>,
    retired: Mutex<VecDeque<Retired>>,
}

impl Views {
    /// Starts with an empty L0 over `levels`.
    pub fn new(active: Arc<Memory>, levels: Arc<Levels>) -> Self {
        let registry = Arc::new(Registry::default());
        let first = View {
            active,
            frozen: None,
            levels,
            sequence: ViewSequence(0),
            registry: Arc::clone(&registry),
        };
        registry.alive.lock().insert(first.sequence, ());
        Self {
            current: ArcSwap::from_pointee(first),
            registry,
            next: Mutex::new(1),
            retired: Mutex::default(),
        }
    }

    /// The current view, for the time of one call: no reference count is touched.
    pub fn load(&self) -> arc_swap::Guard<Arc<View>> {
        self.current.load()
    }

    /// The current view, to keep.
    pub fn load_full(&self) -> Arc<View> {
        self.current.load_full()
    }

    /// Replaces the view by what `change` makes of the current one, as (active, frozen, levels).
    pub fn change(
        &self,
        change: impl FnOnce(&View) -> (Arc<Memory>, Option<Arc<Frozen>>, Arc<Levels>),
    ) {
        let mut next = self.next.lock();
        let old = self.current.load_full();
        let (active, frozen, levels) = change(&old);
        let sequence = ViewSequence(*next);
        *next += 1;
        self.registry.alive.lock().insert(sequence, ());
        let registry = Arc::clone(&self.registry);
        self.current.store(Arc::new(View {
            active,
            frozen,
            levels,
            sequence,
            registry,
        }));
    }

    /// Hands over what no view from now on reaches. Call after [`Self::change`].
    pub fn retire(&self, pages: Vec<PageNo>, segments: Vec<SegmentId>) {
        let next = self.next.lock();
        let reachable_from = ViewSequence(next.saturating_sub(2));
        self.retired.lock().push_back(Retired {
            pages,
            segments,
            reachable_from,
        });
    }

    /// Takes back what no reader can reach any more, oldest first.
    pub fn reclaim(&self) -> Vec<Retired> {
        let oldest = self.registry.alive.lock().keys().next().copied();
        planted!(ReusedUnderReaders => let oldest = None);
        let mut retired = self.retired.lock();
        let mut free = Vec::new();
        while let Some(first) = retired.front()
            && oldest.is_none_or(|oldest| oldest > first.reachable_from)
        {
            free.extend(retired.pop_front());
        }
        free
    }

    /// Pages and segments that wait for readers.
    pub fn waiting(&self) -> (u64, u64) {
        let retired = self.retired.lock();
        retired.iter().fold((0, 0), |(pages, segments), r| {
            (
                pages + r.pages.len() as u64,
                segments + r.segments.len() as u64,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use kreon_l0::L0;

    use super::*;

    fn views() -> Views {
        Views::new(
            Arc::new(Memory::new(L0::new())),
            Arc::new(Levels::default()),
        )
    }

    fn step(views: &Views) {
        views.change(|view| (Arc::clone(&view.active), None, Arc::clone(&view.levels)));
    }

    #[test]
    fn retired_pages_wait_for_the_readers_of_every_older_view() {
        let views = views();
        let oldest = views.load_full();
        step(&views);
        views.retire(vec![PageNo(1)], vec![]);
        let older = views.load_full();
        step(&views);
        views.retire(vec![PageNo(2)], vec![SegmentId(3)]);
        assert!(views.reclaim().is_empty());
        drop(older);
        assert!(
            views.reclaim().is_empty(),
            "the oldest view still reaches page 2"
        );
        drop(oldest);
        let free: Vec<_> = views.reclaim().into_iter().flat_map(|r| r.pages).collect();
        assert_eq!(free, [PageNo(1), PageNo(2)]);
        assert_eq!(views.waiting(), (0, 0));
    }

    #[test]
    fn without_readers_pages_return_at_once() {
        let views = views();
        step(&views);
        views.retire(vec![PageNo(7)], vec![]);
        assert_eq!(views.reclaim().len(), 1);
    }
}
