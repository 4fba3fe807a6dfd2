//! Free frames.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::well::{FreeFrame, thread_number};

/// Free frames in several lists, so that threads seldom meet.
pub(crate) struct Pool {
    lists: Box<[Mutex<Vec<FreeFrame>>]>,
    /// Most that a list takes: together they have room for every frame.
    list_max: usize,
    /// Frames in all lists. A hint for those who take; they look for themselves.
    free: AtomicUsize,
}

/// Bytes that the lists need for each frame.
pub(crate) const POOL_BYTES_PER_FRAME: usize = size_of::<FreeFrame>();

impl Pool {
    /// A pool of all the frames.
    pub(crate) fn new(
        mut frames: impl Iterator<Item = FreeFrame>,
        count: usize,
        lists: usize,
    ) -> Self {
        let list_max = count.div_ceil(lists);
        let mut free = 0;
        // Dealt in runs: a list's frames are neighbours in memory.
        let lists = (0..lists).map(|_| {
            let mut list = Vec::with_capacity(list_max);
            list.extend(frames.by_ref().take(list_max));
            free += list.len();
            Mutex::new(list)
        });
        Self {
            lists: lists.collect(),
            list_max,
            free: AtomicUsize::new(free),
        }
    }

    /// Frames that are free just now.
    pub(crate) fn len(&self) -> usize {
        self.free.load(Relaxed)
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
            let rest = list.len() - count;
            taken.extend(list.drain(rest..));
            self.free.fetch_sub(count, Relaxed);
        }
    }

    /// Gives a frame back, to this thread's own list if that has room.
    pub(crate) fn put(&self, frame: FreeFrame) {
        self.put_near(thread_number(), frame);
    }

    fn put_near(&self, own: usize, frame: FreeFrame) {
        let mut i = own;
        loop {
            let mut list = self.list(i).lock();
            // There is room somewhere: this frame is in none of the lists.
            if list.len() < self.list_max {
                list.push(frame);
                self.free.fetch_add(1, Relaxed);
                return;
            }
            i += 1;
        }
    }

    fn list(&self, i: usize) -> &Mutex<Vec<FreeFrame>> {
        &self.lists[i % self.lists.len()]
    }
}
