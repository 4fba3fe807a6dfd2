//! Writing dirty pages to the device: sorted by page number, neighbours merged into transfers of up
//! to 1 MiB, several of them in flight.
//!
//! Gaps between dirty pages are not filled with clean ones, though that would merge more: a clean page
//! may be part of a durable state, which must never be written again.

use std::sync::atomic::Ordering::Relaxed;

use kreon_base::{PageNo, Result};
use kreon_device::Write;
use parking_lot::Mutex;

use crate::mapping::Mapping;
use crate::options::Writeback;
use crate::prefetch::TRANSFER_PAGES_MAX;
use crate::shard::stripe_of;
use crate::well::{PageState, Writing};

/// Most pages in one call to the device: 8 MiB.
const BATCH_PAGES_MAX: usize = 8 * TRANSFER_PAGES_MAX;

/// Dirty stripes that a writeback looks at to fill its batch, per shard.
const STRIPES_AHEAD: usize = 16;

/// When the threads that make pages fresh must write some back.
pub(crate) struct DirtyLimits {
    /// Over this, one of them writes a batch, while the others go on.
    start: usize,
    /// Over this, all of them wait for that.
    stop: usize,
    /// Most pages in a batch: with few frames, less than what they hold.
    batch: usize,
    /// The stripe where the next batch starts. Held by who is writing.
    position: Mutex<u64>,
}

impl DirtyLimits {
    pub(crate) fn new(frames: usize, share_percent: u8) -> Self {
        let start = frames * usize::from(share_percent) / 100;
        Self {
            start,
            stop: (start + frames) / 2,
            batch: (frames / 8).clamp(1, BATCH_PAGES_MAX),
            position: Mutex::new(0),
        }
    }
}

/// A number that says nothing about where the page is.
const fn scattered(page: PageNo) -> u64 {
    page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

/// Pages that are being written, sorted. Those still in it when it is dropped stay dirty.
struct Batch<'a> {
    mapping: &'a Mapping,
    writing: Vec<Writing<'a>>,
}

impl Batch<'_> {
    fn end(&mut self, taken: bool) {
        for writing in self.writing.drain(..) {
            self.mapping
                .pages
                .lock(writing.page())
                .end_write(writing, taken);
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Mapping {
    /// Brings every page that was made fresh before the call to the device: written, not flushed.
    /// Other threads may go on making pages fresh (the non-blocking `msync` of `Kreon 3.3.1`); of
    /// theirs, some are written along.
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty, and a later call tries again.
    pub fn sync(&self) -> Result<()> {
        let stripes = self.dirty_stripes(0, usize::MAX);
        let mut elsewhere = Vec::new();
        let mut next = 0;
        while next < stripes.len() {
            let (batch, done) = self.gather(&stripes[next..], BATCH_PAGES_MAX, &mut elsewhere);
            next += done;
            self.write(batch)?;
        }
        // Pages that others were writing: if one of them fails, the page is dirty again, and ours.
        for page in elsewhere {
            if let Some(batch) = self.gather_one(page) {
                self.write(batch)?;
            }
        }
        Ok(())
    }

    /// Brings those of the pages that are dirty to the device, neighbours together: written, not flushed.
    /// Sorts them. For whoever makes many pages and does not want them all to wait for a [`sync`](Self::sync).
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty.
    pub fn write_back(&self, pages: &mut [PageNo]) -> Result<()> {
        pages.sort_unstable();
        let mut batch = Batch {
            mapping: self,
            writing: Vec::with_capacity(pages.len()),
        };
        for in_stripe in pages.chunk_by(|page, next| stripe_of(*page) == stripe_of(*next)) {
            let Some(first) = in_stripe.first() else {
                continue;
            };
            let _locked = self.pages.lock(*first);
            let begun = |page: &PageNo| match self.pages.space.state(*page) {
                PageState::Resident {
                    dirty: true,
                    writing: false,
                    ..
                } => self.pages.space.begin_write(*page),
                _ => None,
            };
            batch.writing.extend(in_stripe.iter().filter_map(begun));
        }
        self.write(batch).map(|_| ())
    }

    /// Writes up to about `pages_max` dirty pages of some stripes, sorted. Returns how many.
    pub(crate) fn write_stripes(&self, stripes: &[u64], pages_max: usize) -> Result<usize> {
        let pages_max = pages_max.min(self.dirty_limits.batch);
        let (batch, _) = self.gather(stripes, pages_max, &mut Vec::new());
        self.write(batch)
    }

    /// Writes back some dirty pages if there are too many.
    pub(crate) fn write_back_excess(&self) -> Result<()> {
        let limits = &self.dirty_limits;
        let dirty = || self.pages.dirty.load(Relaxed);
        if dirty() <= limits.start {
            return Ok(());
        }
        let held = if dirty() > limits.stop {
            Some(limits.position.lock())
        } else {
            limits.position.try_lock()
        };
        let Some(mut position) = held else {
            return Ok(());
        };
        if dirty() <= limits.start {
            return Ok(());
        }
        let mut stripes = self.dirty_stripes(*position, STRIPES_AHEAD);
        if stripes.is_empty() {
            // Around to the start of the volume.
            stripes = self.dirty_stripes(0, STRIPES_AHEAD);
        }
        let (batch, done) = self.gather(&stripes, limits.batch, &mut Vec::new());
        *position = match stripes.get(done) {
            Some(&unfinished) => unfinished,
            None => stripes.last().map_or(0, |last| last + 1),
        };
        self.write(batch).map(|_| ())
    }

    /// Stripes from `first` on that have dirty pages, sorted, up to `max` of each shard.
    fn dirty_stripes(&self, first: u64, max: usize) -> Vec<u64> {
        let mut stripes = Vec::new();
        for i in 0..self.pages.shards.len() {
            let mut locked = self.pages.lock_shard(i);
            let dirty = &locked.book().dirty;
            stripes.extend(dirty.range(first..).map(|(&stripe, _)| stripe).take(max));
        }
        stripes.sort_unstable();
        stripes
    }

    /// Marks up to `pages_max` dirty pages of sorted stripes as being written. Also returns how many
    /// stripes have been done with, and adds pages that others are writing to `elsewhere`.
    fn gather(
        &self,
        stripes: &[u64],
        pages_max: usize,
        elsewhere: &mut Vec<PageNo>,
    ) -> (Batch<'_>, usize) {
        let mut batch = Batch {
            mapping: self,
            writing: Vec::new(),
        };
        for (i, &stripe) in stripes.iter().enumerate() {
            let _locked = self.pages.lock_stripe(stripe);
            for (page, state) in self.pages.space.stripe(stripe) {
                match state {
                    PageState::Resident { writing: true, .. } => elsewhere.push(page),
                    PageState::Resident { dirty: true, .. } => {
                        if batch.writing.len() >= pages_max {
                            return (batch, i);
                        }
                        batch.writing.extend(self.pages.space.begin_write(page));
                    }
                    _ => {}
                }
            }
        }
        (batch, stripes.len())
    }

    /// The page, to be written, if it is dirty once nobody else is writing it.
    fn gather_one(&self, page: PageNo) -> Option<Batch<'_>> {
        let mut locked = self.pages.lock(page);
        while let PageState::Resident { writing: true, .. } = self.pages.space.state(page) {
            locked.wait();
        }
        let writing = self.pages.space.begin_write(page)?;
        Some(Batch {
            mapping: self,
            writing: vec![writing],
        })
    }

    /// Writes a batch. Returns how many pages it had.
    fn write(&self, mut batch: Batch<'_>) -> Result<usize> {
        let mut writes: Vec<Write<'_>> = Vec::new();
        if self.modes.writeback == Writeback::Unsorted {
            batch
                .writing
                .sort_unstable_by_key(|writing| scattered(writing.page()));
        }
        let is_merging = self.modes.writeback == Writeback::Merged;
        let mut next = None;
        for writing in &batch.writing {
            let page = writing.page();
            let bytes = writing.bytes().as_slice();
            match writes.last_mut() {
                Some(run)
                    if is_merging
                        && next == Some(page)
                        && run.buffers.len() < TRANSFER_PAGES_MAX =>
                {
                    run.buffers.push(bytes);
                }
                _ => writes.push(Write::new(page.offset_bytes(), bytes)),
            }
            next = Some(PageNo(page.0 + 1));
        }
        if writes.is_empty() {
            return Ok(0);
        }
        let written = writes
            .chunks(self.modes.depth_max.max(1))
            .try_for_each(|some| self.device.write(some));
        let (pages, transfers) = (batch.writing.len(), writes.len());
        drop(writes);
        batch.end(written.is_ok());
        if let Err(error) = written {
            self.counters.write_errors.add(1);
            tracing::warn!(%error, pages, "writeback failed, the pages stay dirty");
            return Err(error);
        }
        self.counters.pages_written.add(pages as u64);
        self.counters.writes.add(transfers as u64);
        Ok(pages)
    }
}
