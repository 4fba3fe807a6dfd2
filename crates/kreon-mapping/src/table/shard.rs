//! What is kept of the pages of a shard: eviction queues, frames by stripe, dirty pages by stripe.
//!
//! A stripe has an entry in `stripes` exactly while its part of the page array may have memory, and one in `dirty`
//! exactly while it has dirty pages.

use std::collections::BTreeMap;

use kreon_base::Priority;

use super::counts::PRIORITIES;
use super::descriptors::{Descriptors, FrameQueue};
use crate::shared::{Condvar, ShardGuard, ShardMutex};

/// Every n-th stripe, where n is the number of shards.
pub(super) struct Shard {
    book: ShardMutex<Book>,
    /// Notified when a load or a write of a page of the shard has ended.
    changed: Condvar,
}

/// What is kept of the pages of a shard.
pub(crate) struct Book {
    /// Frames of resident pages by priority, in the order in which they were filled.
    queues: Box<[FrameQueue; PRIORITIES]>,
    /// Frames attached to each stripe: resident, loading, or retired and not free yet.
    stripes: BTreeMap<u64, u32>,
    /// Dirty pages of each stripe; pages being written are still dirty.
    dirty: BTreeMap<u64, u32>,
}

/// Memory of a shard without pages.
pub(crate) const SHARD_BYTES: usize = size_of::<Shard>() + size_of::<[FrameQueue; PRIORITIES]>();

impl Shard {
    pub(super) fn new() -> Self {
        Self {
            book: ShardMutex::new(Book {
                queues: Box::new([const { FrameQueue::EMPTY }; PRIORITIES]),
                stripes: BTreeMap::new(),
                dirty: BTreeMap::new(),
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> ShardGuard<'_, Book> {
        self.book.lock()
    }

    /// Sleeps, unlocked, until a load or a write has ended. May wake without a reason.
    pub(super) fn wait(&self, book: &mut ShardGuard<'_, Book>) {
        self.changed.wait(book);
    }

    /// Wakes the threads that [wait](Self::wait).
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }
}

impl Book {
    /// Frames attached to a stripe; `None` if the stripe has no memory.
    pub(crate) fn frames_of(&self, stripe: u64) -> Option<u32> {
        self.stripes.get(&stripe).copied()
    }

    /// The first stripe from `from` on that has memory, and its frames.
    pub(crate) fn next_stripe(&self, from: u64) -> Option<(u64, u32)> {
        let next = self.stripes.range(from..).next();
        next.map(|(&stripe, &frames)| (stripe, frames))
    }

    /// Stripes from `from` on that have dirty pages, in order.
    pub(crate) fn dirty_stripes(&self, from: u64) -> impl Iterator<Item = u64> {
        self.dirty.range(from..).map(|(&stripe, _)| stripe)
    }

    /// Adds a frame to a stripe that has memory. False if it has none.
    pub(super) fn attach(&mut self, stripe: u64) -> bool {
        let frames = self.stripes.get_mut(&stripe);
        let has_memory = frames.is_some();
        if let Some(frames) = frames {
            *frames += 1;
        }
        has_memory
    }

    /// A stripe gets memory, for its first frame.
    pub(super) fn open_stripe(&mut self, stripe: u64) {
        let before = self.stripes.insert(stripe, 1);
        debug_assert!(before.is_none(), "stripe {stripe} had memory before");
    }

    /// Removes a frame from a stripe. The stripe keeps its memory until it is needed elsewhere.
    pub(super) fn detach(&mut self, stripe: u64) {
        let frames = self.stripes.get_mut(&stripe);
        debug_assert!(
            frames.is_some(),
            "stripe {stripe} has a frame but no memory"
        );
        if let Some(frames) = frames {
            debug_assert!(
                *frames > 0,
                "stripe {stripe} loses a frame that it does not have"
            );
            *frames -= 1;
        }
    }

    /// Removes a stripe that has memory and no frames. False if it is not one.
    pub(super) fn close_stripe(&mut self, stripe: u64) -> bool {
        let is_empty = self.frames_of(stripe) == Some(0);
        if is_empty {
            debug_assert!(
                !self.dirty.contains_key(&stripe),
                "stripe {stripe} has dirty pages"
            );
            self.stripes.remove(&stripe);
        }
        is_empty
    }

    /// Counts a dirty page of a stripe.
    pub(super) fn add_dirty(&mut self, stripe: u64) {
        *self.dirty.entry(stripe).or_insert(0) += 1;
    }

    /// A dirty page of a stripe became clean, or was discarded.
    pub(super) fn remove_dirty(&mut self, stripe: u64) {
        let dirty = self.dirty.get_mut(&stripe);
        debug_assert!(dirty.is_some(), "stripe {stripe} has no dirty page");
        if let Some(dirty) = dirty {
            *dirty -= 1;
            if *dirty == 0 {
                self.dirty.remove(&stripe);
            }
        }
    }

    /// The oldest frame of a priority.
    pub(crate) fn oldest(&self, priority: Priority) -> Option<u32> {
        self.queues[usize::from(priority.0)].first()
    }

    /// Appends a frame to the queue of the priority in its descriptor.
    pub(super) fn enqueue(&mut self, descriptors: &Descriptors, frame: u32) {
        self.queue_of(descriptors, frame).push(descriptors, frame);
    }

    pub(super) fn dequeue(&mut self, descriptors: &Descriptors, frame: u32) {
        self.queue_of(descriptors, frame).unlink(descriptors, frame);
    }

    pub(super) fn requeue(&mut self, descriptors: &Descriptors, frame: u32) {
        self.queue_of(descriptors, frame)
            .requeue(descriptors, frame);
    }

    fn queue_of(&mut self, descriptors: &Descriptors, frame: u32) -> &mut FrameQueue {
        &mut self.queues[usize::from(descriptors.priority(frame).0)]
    }
}
