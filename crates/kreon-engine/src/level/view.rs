//! Views: the consistent state of a reader, and the lifetime of retired pages.
//!
//! A reader takes the current view with one load and no lock. Pages and segments that a spill replaced stay queued in
//! [`Views`] until every view from before the spill is dropped; only then may they be reused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arc_swap::ArcSwap;
use kreon_base::{Lsn, PAGE_BYTES, PageNo, SEGMENT_BYTES, SegmentId, planted};
use kreon_sync::{AtomicU64, Mutex, Ordering};

use super::{Levels, Memory};

/// The number of a view; later views have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ViewSequence(u64);

/// A frozen L0: it takes no more writes and holds every record before `end` that is in no level.
pub struct Frozen {
    /// Keys and deleted ranges.
    pub l0: Arc<Memory>,
    /// All writes before this LSN are in it or in the levels, later ones in neither.
    pub end: Lsn,
    /// Moved records before this LSN are in it or in the levels, or dead.
    pub moved_end: Lsn,
}

/// The state of a reader. The first visible version of a key wins, in the order L0' (`active`), L0 (`frozen`), levels.
pub struct View {
    /// L0', which takes the writes.
    pub active: Arc<Memory>,
    /// L0, which is being spilled.
    pub frozen: Option<Arc<Frozen>>,
    /// The levels on the device.
    pub levels: Arc<Levels>,
    sequence: ViewSequence,
    alive: Arc<Alive>,
}

impl View {
    /// L0' and L0.
    pub fn l0s(&self) -> impl Iterator<Item = &Arc<Memory>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|frozen| &frozen.l0))
    }

    /// Its number. While the current view has this number, no page or segment that this view reaches is reused.
    pub fn sequence(&self) -> ViewSequence {
        self.sequence
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.alive.lock().leave(self.sequence);
    }
}

/// The views not yet dropped, and what else keeps their pages, counted by view.
#[derive(Default)]
struct Kept(BTreeMap<ViewSequence, usize>);

type Alive = Mutex<Kept>;

impl Kept {
    fn enter(&mut self, sequence: ViewSequence) {
        *self.0.entry(sequence).or_default() += 1;
    }

    fn leave(&mut self, sequence: ViewSequence) {
        if let Some(count) = self.0.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&sequence);
            }
        }
    }

    fn oldest(&self) -> Option<ViewSequence> {
        self.0.first_key_value().map(|(sequence, _)| *sequence)
    }
}

/// Keeps the pages and segments that a view reaches on the volume, and none of its memory.
pub struct PagesKept {
    sequence: ViewSequence,
    alive: Arc<Alive>,
    _keeper: Arc<()>,
}

impl Drop for PagesKept {
    fn drop(&mut self) {
        self.alive.lock().leave(self.sequence);
    }
}

/// Pages and segments that one change of view made unreachable.
#[derive(Default)]
pub struct Retired {
    /// Pages of trees and catalogues.
    pub pages: Vec<PageNo>,
    /// Log segments without a live byte.
    pub segments: Vec<SegmentId>,
    /// The last view that reaches them.
    reachable_from: ViewSequence,
}

/// The current view, and the queue of retired pages and segments.
pub struct Views {
    current: ArcSwap<View>,
    /// The number of `current`, or of the one that replaces it now.
    sequence: AtomicU64,
    alive: Arc<Alive>,
    /// Serialises changes; holds the number of the next view.
    next: Mutex<u64>,
    retired: Mutex<VecDeque<Retired>>,
    /// Each [`PagesKept`] has a clone.
    keeper: Arc<()>,
}

impl Views {
    /// The first view: `active` as L0' above `levels`, no frozen L0.
    pub fn new(active: Arc<Memory>, levels: Arc<Levels>) -> Self {
        let sequence = ViewSequence(0);
        let alive = Arc::new(Alive::default());
        alive.lock().enter(sequence);
        let first = View {
            active,
            frozen: None,
            levels,
            sequence,
            alive: Arc::clone(&alive),
        };
        Self {
            current: ArcSwap::from_pointee(first),
            sequence: AtomicU64::new(sequence.0),
            alive,
            next: Mutex::new(1),
            retired: Mutex::default(),
            keeper: Arc::default(),
        }
    }

    /// The current view for one call, without a change of its reference count.
    pub fn load(&self) -> arc_swap::Guard<Arc<View>> {
        self.current.load()
    }

    /// Whether the view with this number is the current one. Who asks after it has pinned a frame may use what was there
    /// for that view: pages and segments are reused only after the view has changed, and a frame with the bytes of such
    /// a reuse is pinned only by those who see the change.
    #[inline]
    pub fn is_current(&self, sequence: ViewSequence) -> bool {
        self.sequence.load(Ordering::Acquire) == sequence.0
    }

    /// The current view, to keep.
    pub fn load_full(&self) -> Arc<View> {
        self.current.load_full()
    }

    /// Keeps what the current view reaches on the volume, for as long as the answer lives. L0' and L0 are not kept.
    pub fn keep_pages(&self) -> PagesKept {
        let view = self.current.load_full();
        self.alive.lock().enter(view.sequence);
        PagesKept {
            sequence: view.sequence,
            alive: Arc::clone(&self.alive),
            _keeper: Arc::clone(&self.keeper),
        }
    }

    /// Replaces the current view by the (active, frozen, levels) that `change` returns for it.
    pub fn change(
        &self,
        change: impl FnOnce(&View) -> (Arc<Memory>, Option<Arc<Frozen>>, Arc<Levels>),
    ) {
        let mut next = self.next.lock();
        let old = self.current.load_full();
        let (active, frozen, levels) = change(&old);
        let sequence = ViewSequence(*next);
        debug_assert!(
            old.sequence < sequence,
            "a view is newer than the one before"
        );
        *next += 1;
        self.alive.lock().enter(sequence);
        self.sequence.store(sequence.0, Ordering::Release);
        self.current.store(Arc::new(View {
            active,
            frozen,
            levels,
            sequence,
            alive: Arc::clone(&self.alive),
        }));
    }

    /// Queues pages and segments that the current view no longer reaches. Call after [`Self::change`].
    pub fn retire(&self, pages: Vec<PageNo>, segments: Vec<SegmentId>) {
        let next = self.next.lock();
        let reachable_from = ViewSequence(next.saturating_sub(2));
        let mut retired = self.retired.lock();
        let last = retired.back().map(|last| last.reachable_from);
        debug_assert!(
            last <= Some(reachable_from),
            "what is retired later is free later"
        );
        retired.push_back(Retired {
            pages,
            segments,
            reachable_from,
        });
    }

    /// Removes from the queue what no view reaches any more, oldest first.
    pub fn reclaim(&self) -> Vec<Retired> {
        let oldest = self.alive.lock().oldest();
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

    /// Bytes on the volume of all queued pages and segments, while some are kept by [`keep_pages`](Self::keep_pages); else 0.
    pub fn kept_bytes(&self) -> u64 {
        if Arc::strong_count(&self.keeper) == 1 {
            return 0;
        }
        let (pages, segments) = self.waiting();
        pages * PAGE_BYTES as u64 + segments * SEGMENT_BYTES
    }

    /// Numbers of queued pages and segments.
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
    fn kept_pages_wait_though_no_reader_has_the_view() {
        let views = views();
        let (one, other) = (views.keep_pages(), views.keep_pages());
        step(&views);
        views.retire(vec![PageNo(4)], vec![SegmentId(3)]);
        drop(one);
        assert!(views.reclaim().is_empty());
        drop(other);
        assert_eq!(views.reclaim().len(), 1);
    }

    #[test]
    fn without_readers_pages_return_at_once() {
        let views = views();
        step(&views);
        views.retire(vec![PageNo(7)], vec![]);
        assert_eq!(views.reclaim().len(), 1);
    }
}
