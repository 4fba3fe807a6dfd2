//! A locked shard: every transition of one of its pages happens here, together with all that is counted.
//!
//! Hits take no lock; they only read the page array.

use kreon_base::{PageNo, Priority};

use super::counts::PageCounts;
use super::descriptors::Descriptors;
use super::shard::{Book, Shard};
use super::stripes::{StripeBudget, stripe_of};
use crate::shared::ShardGuard;
use crate::well::{FrameSpace, FreeFrame, PageState, PageWrite, Pinned, RetiredFrame};

/// The state of all pages. Changes to a page are made through the [lock](Locked) of its shard.
pub(super) struct PageStates {
    pub space: FrameSpace,
    pub descriptors: Descriptors,
    pub counts: PageCounts,
    pub stripe_budget: StripeBudget,
    pub shards: Box<[Shard]>,
    /// False: all pages get the last priority.
    pub by_priority: bool,
}

/// One shard, locked.
pub(crate) struct Locked<'a> {
    states: &'a PageStates,
    shard: &'a Shard,
    book: ShardGuard<'a, Book>,
}

/// How [`Locked::begin_load`] went.
pub(crate) enum LoadStart {
    /// The page is being loaded into the frame.
    Begun,
    /// The page is resident or being loaded by another.
    NotAbsent,
    /// The page array has no room for the page's stripe.
    NoRoom,
}

/// How [`Locked::remove`] went.
pub(crate) enum Removal {
    /// The page has no frame; the loader, if there was one, will not publish it.
    Absent,
    /// It had this frame.
    Retired(RetiredFrame),
    /// It is being written: [wait](Locked::wait).
    Writing,
}

impl PageStates {
    /// Locks shard `i`, modulo their number.
    pub(super) fn lock(&self, i: usize) -> Locked<'_> {
        let shard = &self.shards[i % self.shards.len()];
        Locked {
            states: self,
            shard,
            book: shard.lock(),
        }
    }

    /// The number of the shard of a stripe.
    pub(super) fn shard_of(&self, stripe: u64) -> usize {
        (stripe % self.shards.len() as u64) as usize
    }
}

impl<'a> Locked<'a> {
    /// Whether this is the shard of `page`.
    pub(crate) fn holds(&self, page: PageNo) -> bool {
        let i = self.states.shard_of(stripe_of(page));
        std::ptr::eq(self.shard, &self.states.shards[i])
    }

    /// Sleeps, unlocked, until a load or a write in this shard has ended. May wake without a reason.
    pub(crate) fn wait(&mut self) {
        self.shard.wait(&mut self.book);
    }

    /// What is kept of the pages of this shard.
    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    /// Gives up the memory of a stripe without frames. False if it has some.
    pub(crate) fn release_stripe(&mut self, stripe: u64) -> bool {
        let is_empty = self.book.close_stripe(stripe);
        if is_empty {
            // No reader can set the second-chance bit in the stripe any more, which would bring the memory back:
            // it would hold a pin, and a pinned frame is still attached.
            self.states.space.release_stripe(stripe);
            self.states.stripe_budget.release();
        }
        is_empty
    }

    /// Absent -> loading into `frame`.
    pub(crate) fn begin_load(&mut self, page: PageNo, frame: &FreeFrame) -> LoadStart {
        debug_assert!(self.holds(page));
        if self.states.space.state(page) != PageState::Absent {
            return LoadStart::NotAbsent;
        }
        if !self.attach(page) {
            return LoadStart::NoRoom;
        }
        if !self.states.space.begin_load(page, frame) {
            self.detach(page);
            return LoadStart::NotAbsent;
        }
        LoadStart::Begun
    }

    /// Loading by `frame` -> resident. The frame comes back if the load was cancelled; it stays attached to the page
    /// until the load is [abandoned](Self::abandon_load).
    pub(crate) fn end_load(
        &mut self,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Result<Option<Pinned<'a>>, FreeFrame> {
        debug_assert!(self.holds(page));
        let pinned = self.states.space.end_load(page, frame)?;
        self.enqueue(page, priority);
        self.shard.notify();
        Ok(pinned)
    }

    /// Loading by `frame` -> absent, unless the load was cancelled before.
    pub(crate) fn abandon_load(&mut self, page: PageNo, frame: &FreeFrame) {
        self.states.space.abandon_load(page, frame);
        self.detach(page);
        self.shard.notify();
    }

    /// Whatever the page is -> resident and dirty, after the end of a write of it that is under way. A frame that it
    /// had before goes to `retired`. Its new frame comes back if the page array has no room.
    pub(crate) fn replace(
        &mut self,
        page: PageNo,
        priority: Priority,
        mut frame: FreeFrame,
        retired: &mut Vec<RetiredFrame>,
    ) -> Result<(), FreeFrame> {
        loop {
            self.clear(page, retired);
            if !self.attach(page) {
                return Err(frame);
            }
            match self.states.space.publish_dirty(page, frame) {
                Ok(()) => break,
                Err(unused) => {
                    debug_assert!(false, "{page} is absent and its shard locked");
                    self.detach(page);
                    frame = unused;
                }
            }
        }
        self.enqueue(page, priority);
        self.book.add_dirty(stripe_of(page));
        self.states.counts.add_dirty();
        Ok(())
    }

    /// Whatever the page is, but not dirty -> resident and clean, with bytes that the device has. A frame that it had
    /// before goes to `retired`. Its new frame comes back if the page array has no room.
    pub(crate) fn admit(
        &mut self,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
        retired: &mut Vec<RetiredFrame>,
    ) -> Result<(), FreeFrame> {
        self.clear(page, retired);
        if !self.attach(page) {
            return Err(frame);
        }
        self.states
            .space
            .publish_clean(page, frame)
            .inspect_err(|_| self.detach(page))?;
        self.enqueue(page, priority);
        Ok(())
    }

    /// Whatever the page is -> absent, after the end of a write of it that is under way. A frame that it had goes to
    /// `retired`.
    pub(crate) fn clear(&mut self, page: PageNo, retired: &mut Vec<RetiredFrame>) {
        loop {
            match self.remove(page) {
                Removal::Absent => return,
                Removal::Retired(frame) => {
                    retired.push(frame);
                    return;
                }
                Removal::Writing => self.wait(),
            }
        }
    }

    /// Takes the page's frame away, dirty or not. The frame stays attached to the stripe until it is free.
    pub(crate) fn remove(&mut self, page: PageNo) -> Removal {
        debug_assert!(self.holds(page));
        match self.states.space.state(page) {
            PageState::Absent => Removal::Absent,
            PageState::Loading => {
                self.states.space.cancel_load(page);
                self.shard.notify();
                Removal::Absent
            }
            PageState::Resident { writing: true, .. } => Removal::Writing,
            PageState::Resident { frame, dirty, .. } => match self.states.space.retire(page) {
                Some(retired) => {
                    self.dequeue(page, frame);
                    if dirty {
                        self.count_clean(page);
                    }
                    Removal::Retired(retired)
                }
                None => Removal::Writing,
            },
        }
    }

    /// Resident and dirty -> being written. `None` if the page is not dirty, or being written already.
    pub(crate) fn begin_write(&self, page: PageNo) -> Option<PageWrite<'a>> {
        debug_assert!(self.holds(page));
        self.states.space.begin_write(page)
    }

    /// A write of a page has ended: the page is clean if the device took it, else as dirty as before.
    pub(crate) fn end_write(&mut self, writing: PageWrite<'_>, taken: bool) {
        let page = writing.page();
        debug_assert!(self.holds(page));
        writing.finish(taken);
        if taken {
            self.count_clean(page);
            if let PageState::Resident { frame, .. } = self.states.space.state(page) {
                let priority = self.states.descriptors.priority(frame);
                self.states.counts.add_written(priority);
            }
        }
        self.shard.notify();
    }

    /// Moves a resident page's frame to the end of its queue.
    pub(crate) fn requeue(&mut self, frame: u32) {
        self.book.requeue(&self.states.descriptors, frame);
    }

    pub(crate) fn clear_referenced(&self, page: PageNo) {
        self.states.space.clear_referenced(page);
    }

    /// Adds a frame to the page's stripe. False if the page array has no room for the stripe.
    fn attach(&mut self, page: PageNo) -> bool {
        let stripe = stripe_of(page);
        if self.book.attach(stripe) {
            return true;
        }
        let has_room = self.states.stripe_budget.claim();
        if has_room {
            self.book.open_stripe(stripe);
        }
        has_room
    }

    /// Removes a frame, which is free or about to be, from the page's stripe.
    pub(crate) fn detach(&mut self, page: PageNo) {
        debug_assert!(self.holds(page));
        self.book.detach(stripe_of(page));
    }

    fn enqueue(&mut self, page: PageNo, priority: Priority) {
        let PageState::Resident { frame, .. } = self.states.space.state(page) else {
            debug_assert!(false, "{page} was just published and its shard locked");
            return;
        };
        let priority = match self.states.by_priority {
            true => priority,
            false => Priority(u8::MAX),
        };
        self.states.descriptors.set(frame, page, priority);
        self.states.counts.add_resident(priority);
        self.book.enqueue(&self.states.descriptors, frame);
    }

    fn dequeue(&mut self, page: PageNo, frame: u32) {
        let descriptors = &self.states.descriptors;
        debug_assert_eq!(
            descriptors.page(frame),
            page,
            "frame {frame} is of another page"
        );
        self.states
            .counts
            .remove_resident(descriptors.priority(frame));
        self.book.dequeue(descriptors, frame);
    }

    fn count_clean(&mut self, page: PageNo) {
        self.book.remove_dirty(stripe_of(page));
        self.states.counts.remove_dirty();
    }
}
