//! The state of pages, spread over shards: each page's transitions, with all that is kept about them,
//! happen under the lock of its shard. Hits take no lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kreon_base::{PageNo, Priority};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::records::{Queue, Records};
use crate::stats::ClassCounters;
use crate::stripes::StripeBudget;
use crate::well::{FreeFrame, PageState, Pinned, RetiredFrame, STRIPE_PAGES, Space, Writing};

/// Priorities that there are.
pub(crate) const PRIORITIES: usize = 256;

/// The pages of every so many stripes, and where to wait for a change of one of them.
pub(crate) struct Shard {
    book: Mutex<Book>,
    /// Signalled when a load or a write has ended.
    changed: Condvar,
}

/// What is kept about the pages of a shard.
pub(crate) struct Book {
    /// Resident pages by priority, in the order in which they came.
    queues: Box<[Queue; PRIORITIES]>,
    /// Frames attached to the pages of each stripe: resident, loading, or retired and not free yet.
    pub stripes: BTreeMap<u64, u32>,
    /// Dirty pages of each stripe that has any; pages being written are still dirty.
    pub dirty: BTreeMap<u64, u32>,
}

/// Everything about the pages: the table with the frames, and the books.
pub(crate) struct Pages {
    pub space: Space,
    pub records: Records,
    pub shards: Box<[Shard]>,
    pub stripe_budget: StripeBudget,
    /// Resident pages of each priority, over all shards.
    pub classes: Box<[AtomicUsize; PRIORITIES]>,
    /// Dirty pages, those being written included.
    pub dirty: AtomicUsize,
    /// Dirty pages that were written.
    pub written: ClassCounters,
    /// Off: all pages have the last priority.
    pub by_priority: bool,
}

/// The shard of a page, locked.
pub(crate) struct Locked<'a> {
    pages: &'a Pages,
    shard: &'a Shard,
    book: MutexGuard<'a, Book>,
}

/// How [`Locked::remove`] went.
pub(crate) enum Removal {
    /// The page has no frame now; if it was being loaded, the loader will not publish it.
    Absent,
    /// It had this frame.
    Retired(RetiredFrame),
    /// It is being written: [wait](Locked::wait).
    Writing,
}

/// The stripe of a page.
pub(crate) const fn stripe_of(page: PageNo) -> u64 {
    page.0 / STRIPE_PAGES
}

impl Shard {
    pub(crate) fn new() -> Self {
        Self {
            book: Mutex::new(Book {
                queues: Box::new([const { Queue::EMPTY }; PRIORITIES]),
                stripes: BTreeMap::new(),
                dirty: BTreeMap::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Bytes of a shard with no pages.
    pub(crate) const BYTES: usize = size_of::<Self>() + size_of::<[Queue; PRIORITIES]>();
}

impl Pages {
    /// Locks the shard of a stripe.
    pub(crate) fn lock_stripe(&self, stripe: u64) -> Locked<'_> {
        self.lock_shard((stripe % self.shards.len() as u64) as usize)
    }

    /// Locks the shard of a page.
    pub(crate) fn lock(&self, page: PageNo) -> Locked<'_> {
        self.lock_stripe(stripe_of(page))
    }

    /// Locks shard `i`, modulo their number.
    pub(crate) fn lock_shard(&self, i: usize) -> Locked<'_> {
        let shard = &self.shards[i % self.shards.len()];
        Locked {
            pages: self,
            shard,
            book: shard.book.lock(),
        }
    }

    /// Resident pages.
    pub(crate) fn resident(&self) -> usize {
        self.classes.iter().map(|class| class.load(Relaxed)).sum()
    }

    fn class(&self, frame: u32) -> &AtomicUsize {
        &self.classes[usize::from(self.records.priority(frame).0)]
    }
}

impl<'a> Locked<'a> {
    /// What is kept about the shard's pages.
    pub(crate) fn book(&mut self) -> &mut Book {
        &mut self.book
    }

    /// Whether this is the shard of `page`.
    pub(crate) fn holds(&self, page: PageNo) -> bool {
        let i = stripe_of(page) % self.pages.shards.len() as u64;
        std::ptr::eq(self.shard, &self.pages.shards[i as usize])
    }

    /// Sleeps, unlocked, until a load or a write in this shard has ended; perhaps for nothing.
    pub(crate) fn wait(&mut self) {
        self.shard.changed.wait(&mut self.book);
    }

    /// Counts one more frame for the page's stripe. False if the table has no room for the stripe.
    pub(crate) fn attach(&mut self, page: PageNo) -> bool {
        let stripe = stripe_of(page);
        if let Some(frames) = self.book.stripes.get_mut(&stripe) {
            *frames += 1;
            return true;
        }
        let room = self.pages.stripe_budget.claim();
        if room {
            self.book.stripes.insert(stripe, 1);
        }
        room
    }

    /// Counts one frame less. The stripe keeps its room in the table until somebody wants it.
    pub(crate) fn detach(&mut self, page: PageNo) {
        if let Some(frames) = self.book.stripes.get_mut(&stripe_of(page)) {
            *frames -= 1;
        }
    }

    /// Gives up the room of a stripe without frames. False if it has some.
    pub(crate) fn release_stripe(&mut self, stripe: u64) -> bool {
        let empty = self.book.stripes.get(&stripe) == Some(&0);
        if empty {
            self.book.stripes.remove(&stripe);
            // No reader can set the second-chance bit in the stripe any more, which would bring the
            // memory back: it would hold a pin, and a pinned frame is still counted.
            self.pages.space.release_stripe(stripe);
            self.pages.stripe_budget.give_back();
        }
        empty
    }

    /// An attached page that was loading by `frame` becomes resident. The frame comes back if the
    /// load was cancelled; the page stays attached until the frame is given back.
    pub(crate) fn end_load(
        &mut self,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Result<Option<Pinned<'a>>, FreeFrame> {
        let pinned = self.pages.space.end_load_pinned(page, frame)?;
        self.enqueue(page, priority);
        self.changed();
        Ok(pinned)
    }

    /// An attached page that is absent becomes resident and dirty.
    pub(crate) fn publish_dirty(
        &mut self,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Result<(), FreeFrame> {
        self.pages.space.publish_dirty(page, frame)?;
        self.enqueue(page, priority);
        *self.book.dirty.entry(stripe_of(page)).or_insert(0) += 1;
        self.pages.dirty.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Takes the page's frame away, dirty or not. Its stripe counts the frame until it is free.
    pub(crate) fn remove(&mut self, page: PageNo) -> Removal {
        match self.pages.space.state(page) {
            PageState::Absent => Removal::Absent,
            PageState::Loading => {
                self.pages.space.cancel_load(page);
                self.changed();
                Removal::Absent
            }
            PageState::Resident { writing: true, .. } => Removal::Writing,
            PageState::Resident { frame, dirty, .. } => match self.pages.space.retire(page) {
                Some(retired) => {
                    self.dequeue(frame);
                    if dirty {
                        self.count_clean(page);
                    }
                    Removal::Retired(retired)
                }
                None => Removal::Writing,
            },
        }
    }

    /// A write of the page has ended.
    pub(crate) fn end_write(&mut self, writing: Writing<'_>, taken: bool) {
        let page = writing.page();
        writing.finish(taken);
        if taken {
            self.count_clean(page);
            if let PageState::Resident { frame, .. } = self.pages.space.state(page) {
                self.pages
                    .written
                    .add(self.pages.records.priority(frame), 1);
            }
        }
        self.changed();
    }

    /// Wakes those who wait for a page of this shard.
    pub(crate) fn changed(&self) {
        self.shard.changed.notify_all();
    }

    /// The frame of this priority that has waited longest.
    pub(crate) fn oldest(&self, priority: Priority) -> Option<u32> {
        self.book.queues[usize::from(priority.0)].first()
    }

    /// Lets a frame wait once more.
    pub(crate) fn requeue(&mut self, priority: Priority, frame: u32) {
        self.book.queues[usize::from(priority.0)].requeue(&self.pages.records, frame);
    }

    fn enqueue(&mut self, page: PageNo, priority: Priority) {
        let PageState::Resident { frame, .. } = self.pages.space.state(page) else {
            return;
        };
        let pages = self.pages;
        let priority = match pages.by_priority {
            true => priority,
            false => Priority(u8::MAX),
        };
        pages.records.set(frame, page, priority);
        pages.class(frame).fetch_add(1, Relaxed);
        self.book.queues[usize::from(priority.0)].push(&pages.records, frame);
    }

    fn dequeue(&mut self, frame: u32) {
        let pages = self.pages;
        pages.class(frame).fetch_sub(1, Relaxed);
        let priority = pages.records.priority(frame);
        self.book.queues[usize::from(priority.0)].unlink(&pages.records, frame);
    }

    fn count_clean(&mut self, page: PageNo) {
        let stripe = stripe_of(page);
        if let Some(dirty) = self.book.dirty.get_mut(&stripe) {
            *dirty -= 1;
            if *dirty == 0 {
                self.book.dirty.remove(&stripe);
            }
        }
        self.pages.dirty.fetch_sub(1, Relaxed);
    }
}
