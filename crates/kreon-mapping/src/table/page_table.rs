//! The page table: from page numbers to frames, and the frames that no page has.
//!
//! A frame is free in the pool, attached to a page, retired, or in the hands of a caller as a token. Order of locks:
//! one shard, then a list of the pool. Limbo is never locked together with another lock.

use kreon_base::{Error, PAGE_BYTES, PageNo, Priority, Result};
use std::task::Waker;

use super::counts::PageCounts;
use super::descriptors::Descriptors;
use super::locked::{Locked, PageStates};
use super::pool::FramePool;
use super::shard::Shard;
use super::stripes::{StripeBudget, stripe_of};
use super::waiters::LoadWaiters;
use crate::options::MappingOptions;
use crate::shared::LimboMutex;
use crate::well::{FrameSpace, PageState, RetiredFrame};

/// How large a page table is.
#[derive(Debug)]
pub(crate) struct TableShape {
    pub frames: usize,
    /// Pages that the volume can have.
    pub pages: u64,
    /// Locks that the state of the pages is spread over.
    pub shards: usize,
    /// Most stripes of the page array with memory.
    pub stripes_max: usize,
}

/// Which page is in which frame, and which frames are free.
pub(crate) struct PageTable {
    states: PageStates,
    pool: FramePool,
    /// Retired frames that readers were still using at the last look.
    limbo: LimboMutex<Vec<RetiredFrame>>,
    /// Tasks that wait for loads of others.
    waiters: LoadWaiters,
    pages: u64,
    frames: usize,
}

impl PageTable {
    /// A table with no page resident.
    pub(crate) fn new(shape: &TableShape, options: &MappingOptions) -> Result<Self> {
        assert!(shape.shards > 0, "a table without shards");
        let frames = shape.frames as u32;
        let (huge_pages, backing) = (options.huge_pages, options.backing);
        let (space, free) = FrameSpace::new(frames, shape.pages, huge_pages, backing)?;
        Ok(Self {
            states: PageStates {
                space,
                descriptors: Descriptors::new(frames),
                counts: PageCounts::new(),
                stripe_budget: StripeBudget::new(shape.stripes_max),
                shards: (0..shape.shards).map(|_| Shard::new()).collect(),
                by_priority: options.modes.evicts_by_priority(),
            },
            pool: FramePool::new(free, shape.frames, options.modes.free_lists(shape.shards)),
            limbo: LimboMutex::default(),
            waiters: LoadWaiters::new(),
            pages: shape.pages,
            frames: shape.frames,
        })
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Frames, free or not.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Refuses pages that the volume can never have.
    pub(crate) fn check_page(&self, page: PageNo) -> Result<()> {
        if page.0 < self.pages {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{page} is outside the volume, which has at most {} pages",
            self.pages
        )))
    }

    /// Refuses ranges that reach over the longest volume.
    pub(crate) fn check_range(&self, offset_bytes: u64, len_bytes: usize) -> Result<()> {
        let volume_bytes = self.pages * PAGE_BYTES as u64;
        match offset_bytes.checked_add(len_bytes as u64) {
            Some(end) if end <= volume_bytes => Ok(()),
            _ => Err(Error::invalid(format!(
                "{len_bytes} bytes at {offset_bytes} are outside the volume, which has at most \
                 {volume_bytes} bytes"
            ))),
        }
    }

    /// The memory of the frames, for holders of free frames.
    #[inline]
    pub(crate) fn space(&self) -> &FrameSpace {
        &self.states.space
    }

    /// Whether the page is resident at this moment.
    #[inline]
    pub(crate) fn is_resident(&self, page: PageNo) -> bool {
        matches!(self.space().state(page), PageState::Resident { .. })
    }

    /// Whether `count` pages from `first` on are resident at this moment.
    #[inline]
    pub(crate) fn are_resident(&self, first: PageNo, count: u32) -> bool {
        (first.0..first.0 + u64::from(count)).all(|page| self.is_resident(PageNo(page)))
    }

    /// The page in the frame of a resident page.
    pub(crate) fn page_in(&self, frame: u32) -> PageNo {
        self.states.descriptors.page(frame)
    }

    /// The priority of the page in the frame of a resident page.
    pub(crate) fn priority_in(&self, frame: u32) -> Priority {
        self.states.descriptors.priority(frame)
    }

    pub(crate) fn counts(&self) -> &PageCounts {
        &self.states.counts
    }

    pub(crate) fn pool(&self) -> &FramePool {
        &self.pool
    }

    pub(crate) fn waiters(&self) -> &LoadWaiters {
        &self.waiters
    }

    /// Stripes of the page array that have memory.
    pub(crate) fn stripes_used(&self) -> usize {
        self.states.stripe_budget.used()
    }

    pub(crate) fn shards(&self) -> usize {
        self.states.shards.len()
    }

    pub(crate) fn lock(&self, page: PageNo) -> Locked<'_> {
        self.lock_stripe(stripe_of(page))
    }

    pub(crate) fn lock_stripe(&self, stripe: u64) -> Locked<'_> {
        self.states.lock(self.states.shard_of(stripe))
    }

    /// Locks shard `i`, modulo their number.
    pub(crate) fn lock_shard(&self, i: usize) -> Locked<'_> {
        self.states.lock(i)
    }

    /// Waits while another is loading the page. The page may be resident or absent then.
    pub(crate) fn wait_loaded(&self, page: PageNo) {
        if self.space().state(page) == PageState::Loading {
            let mut locked = self.lock(page);
            while self.space().state(page) == PageState::Loading {
                locked.wait();
            }
        }
    }

    /// Registers `waker` for the end of the load of `page`. False if the page is not being loaded: then the waker may
    /// never be called.
    pub(crate) fn wait_for_load(&self, page: PageNo, waker: &Waker) -> bool {
        let is_loading = || self.space().state(page) == PageState::Loading;
        self.waiters.wait(page, waker, is_loading)
    }

    /// Frees retired frames and those in limbo. Frames that readers still use go into limbo. Returns how many became
    /// free.
    pub(crate) fn settle(&self, mut retired: Vec<RetiredFrame>) -> usize {
        retired.append(&mut self.limbo.lock());
        if retired.is_empty() {
            return 0;
        }
        let (free, used) = self.space().settle(retired);
        if !used.is_empty() {
            self.limbo.lock().extend(used);
        }
        let count = free.len();
        let mut locked: Option<Locked<'_>> = None;
        for (_, page) in &free {
            if !locked.as_ref().is_some_and(|shard| shard.holds(*page)) {
                // Unlock first: a thread holds one shard at a time.
                drop(locked.take());
                locked = Some(self.lock(*page));
            }
            if let Some(shard) = &mut locked {
                shard.detach(*page);
            }
        }
        drop(locked);
        self.pool.put_all(free.into_iter().map(|(frame, _)| frame));
        count
    }
}
