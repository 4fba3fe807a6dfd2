//! The free frames.
//!
//! A free frame is in exactly one list. The lists together have room for all frames.

use std::sync::atomic::Ordering::Relaxed;

use crate::shared::{FreeCount, ListMutex};
use crate::well::{FreeFrame, thread_number};

/// Free frames in several lists, each with its own lock, so that threads seldom contend.
pub(crate) struct FramePool {
    lists: Box<[ListMutex<Vec<FreeFrame>>]>,
    /// Capacity of a list.
    list_max: usize,
    /// Frames in all lists. A hint, as it changes outside the locks' order.
    free: FreeCount,
}

/// Memory of the lists for each frame.
pub(crate) const POOL_BYTES_PER_FRAME: usize = size_of::<FreeFrame>();

impl FramePool {
    /// A pool of all `count` frames, in `lists` lists.
    pub(super) fn new(
        mut frames: impl Iterator<Item = FreeFrame>,
        count: usize,
        lists: usize,
    ) -> Self {
        let list_max = count.div_ceil(lists);
        let mut free = 0;
        // In runs: the frames of a list are neighbours in memory.
        let lists = (0..lists).map(|_| {
            let mut list = Vec::with_capacity(list_max);
            list.extend(frames.by_ref().take(list_max));
            free += list.len();
            ListMutex::new(list)
        });
        let lists: Box<[_]> = lists.collect();
        assert_eq!(free, count, "every frame starts in a list");
        Self {
            lists,
            list_max,
            free: FreeCount::new(free),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.free.load(Relaxed)
    }

    /// How many lists there are.
    #[cfg(feature = "lock-times")]
    pub(crate) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Takes up to `wanted` frames, from this thread's own list first.
    pub(crate) fn take(&self, wanted: usize, taken: &mut Vec<FreeFrame>) {
        let goal = taken.len() + wanted;
        let own = thread_number();
        for i in 0..self.lists.len() {
            if taken.len() >= goal || self.len() == 0 {
                break;
            }
            let mut list = self.list(own + i).lock();
            let count = list.len().min(goal - taken.len());
            if count == 0 {
                continue;
            }
            let rest = list.len() - count;
            taken.extend(list.drain(rest..));
            self.free.fetch_sub(count, Relaxed);
        }
    }

    /// Gives a frame back, to this thread's own list if that has room.
    pub(crate) fn put(&self, frame: FreeFrame) {
        self.put_all([frame]);
    }

    /// Makes frames available again: to this thread's own list as many as that has room for.
    pub(crate) fn put_all(&self, frames: impl IntoIterator<Item = FreeFrame>) {
        let mut frames = frames.into_iter().peekable();
        let own = thread_number();
        let mut i = own;
        while frames.peek().is_some() {
            let mut list = self.list(i).lock();
            debug_assert!(
                i < own + 2 * self.lists.len(),
                "a frame more than there are"
            );
            // Some list has room, because these frames are in none.
            let (before, room) = (list.len(), self.list_max - list.len());
            if room > 0 {
                list.extend(frames.by_ref().take(room));
                self.free.fetch_add(list.len() - before, Relaxed);
            }
            i += 1;
        }
    }

    fn list(&self, i: usize) -> &ListMutex<Vec<FreeFrame>> {
        &self.lists[i % self.lists.len()]
    }
}
