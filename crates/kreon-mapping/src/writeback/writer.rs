//! The writer: which dirty pages are written when, several transfers in flight.
//!
//! Only dirty pages are written. Gaps between them are not filled with clean pages, though that would merge more: a
//! clean page may be part of a durable state, which must never be written again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Result};
use kreon_device::{AlignedBuf, Device};

use super::batch::DirtyBatch;
use crate::counters::Counter;
use crate::modes::MappingModes;
use crate::shared::WriterMutex;
use crate::table::PageTable;
use crate::transfer::TRANSFER_PAGES_MAX;

/// Most pages in one call to the device: 8 MiB.
const BATCH_PAGES_MAX: usize = 8 * TRANSFER_PAGES_MAX;

/// Dirty stripes of each shard that a writeback looks at to fill its batch.
const STRIPES_AHEAD: usize = 16;

/// What is counted of pages made fresh and written.
#[derive(Default)]
pub(crate) struct WriteCounters {
    pub pages_fresh: Counter,
    pub pages_written: Counter,
    pub writes: Counter,
    pub pages_written_past: Counter,
    pub write_errors: Counter,
}

/// Writes dirty pages to the device.
pub(crate) struct Writer {
    device: Arc<dyn Device>,
    modes: MappingModes,
    /// With more dirty pages, one thread that makes pages fresh writes a batch, while the others go on.
    dirty_start: usize,
    /// With more, each of them writes a batch before it goes on.
    dirty_stop: usize,
    /// Most pages in a batch: an eighth of the frames, at most 8 MiB.
    batch_pages: usize,
    /// Whether a thread writes a batch while there are fewer dirty pages than `dirty_stop`.
    is_ahead: AtomicBool,
    /// The stripe where the next batch starts. Locked while a batch is chosen, so that no two threads choose the same.
    position: WriterMutex<u64>,
    counters: WriteCounters,
}

impl Writer {
    /// A writer for a table of `frames` frames, of which `dirty_share_percent` may be dirty.
    pub(crate) fn new(
        device: Arc<dyn Device>,
        frames: usize,
        dirty_share_percent: u8,
        modes: &MappingModes,
    ) -> Self {
        let dirty_start = frames * usize::from(dirty_share_percent) / 100;
        let dirty_stop = (dirty_start + frames) / 2;
        assert!(dirty_start <= dirty_stop && dirty_stop <= frames);
        Self {
            device,
            modes: *modes,
            dirty_start,
            dirty_stop,
            batch_pages: (frames / 8).clamp(1, BATCH_PAGES_MAX),
            is_ahead: AtomicBool::new(false),
            position: WriterMutex::new(0),
            counters: WriteCounters::default(),
        }
    }

    pub(crate) fn counters(&self) -> &WriteCounters {
        &self.counters
    }

    /// Writes every page that was dirty before the call. Pages that become dirty meanwhile may be written too.
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty.
    pub(crate) fn sync(&self, table: &PageTable) -> Result<()> {
        let stripes = dirty_stripes(table, 0, usize::MAX);
        let mut elsewhere = Vec::new();
        let mut next = 0;
        while next < stripes.len() {
            let rest = &stripes[next..];
            let (batch, done) =
                DirtyBatch::of_stripes(table, rest, BATCH_PAGES_MAX, &mut elsewhere);
            next += done;
            self.write(batch)?;
        }
        // Pages that other threads were writing: one that failed there is dirty again, and written here.
        for page in elsewhere {
            if let Some(batch) = DirtyBatch::of_page(table, page) {
                self.write(batch)?;
            }
        }
        Ok(())
    }

    /// Writes those of the pages that are dirty. Sorts them.
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty.
    pub(crate) fn write_pages(&self, table: &PageTable, pages: &mut [PageNo]) -> Result<()> {
        pages.sort_unstable();
        self.write(DirtyBatch::of_pages(table, pages)).map(|_| ())
    }

    /// Writes up to about `pages_max` dirty pages of sorted stripes. Returns how many.
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty.
    pub(crate) fn write_stripes(
        &self,
        table: &PageTable,
        stripes: &[u64],
        pages_max: usize,
    ) -> Result<usize> {
        let pages_max = pages_max.min(self.batch_pages);
        let (batch, _) = DirtyBatch::of_stripes(table, stripes, pages_max, &mut Vec::new());
        self.write(batch)
    }

    /// Writes a batch of dirty pages if there are too many.
    ///
    /// # Errors
    /// The first of the device. What was not written stays dirty.
    pub(crate) fn write_excess(&self, table: &PageTable) -> Result<()> {
        let dirty = table.counts().dirty();
        if dirty <= self.dirty_start {
            return Ok(());
        }
        if dirty > self.dirty_stop {
            return self.write_next(table);
        }
        if self.is_ahead.swap(true, Relaxed) {
            return Ok(());
        }
        let written = self.write_next(table);
        self.is_ahead.store(false, Relaxed);
        written
    }

    /// Writes the next batch in the order of the volume. If other threads are writing all that is dirty, waits for a page of
    /// theirs.
    fn write_next(&self, table: &PageTable) -> Result<()> {
        let mut elsewhere = Vec::new();
        let batch = self.choose(table, &mut elsewhere);
        if self.write(batch)? > 0 {
            return Ok(());
        }
        let last = elsewhere.last();
        match last.and_then(|page| DirtyBatch::of_page(table, *page)) {
            // It could not be written there.
            Some(batch) => self.write(batch).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The next batch, and pages beside it that other threads are writing.
    fn choose<'a>(&self, table: &'a PageTable, elsewhere: &mut Vec<PageNo>) -> DirtyBatch<'a> {
        let mut position = self.position.lock();
        let mut stripes = dirty_stripes(table, *position, STRIPES_AHEAD);
        if stripes.is_empty() {
            // Past the last dirty page: on from the start of the volume.
            stripes = dirty_stripes(table, 0, STRIPES_AHEAD);
        }
        let (batch, done) = DirtyBatch::of_stripes(table, &stripes, self.batch_pages, elsewhere);
        *position = match stripes.get(done) {
            Some(&unfinished) => unfinished,
            None => stripes.last().map_or(0, |last| last + 1),
        };
        batch
    }

    /// Writes a page that has no frame.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) fn write_past(&self, page: PageNo, bytes: &PageBytes) -> Result<()> {
        let mut buffer = AlignedBuf::new(PAGE_BYTES);
        buffer.copy_from_slice(bytes);
        let written = self.device.write_at(page.offset_bytes(), &buffer);
        self.counters.pages_written_past.add(1);
        if written.is_err() {
            self.counters.write_errors.add(1);
        }
        written
    }

    /// Writes a batch. Returns how many pages it had.
    fn write(&self, mut batch: DirtyBatch<'_>) -> Result<usize> {
        batch.arrange(&self.modes);
        let writes = batch.transfers(&self.modes);
        if writes.is_empty() {
            return Ok(0);
        }
        let written = writes
            .chunks(self.modes.depth_max())
            .try_for_each(|some| self.device.write(some));
        let (pages, transfers) = (batch.len(), writes.len());
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

/// Stripes from `first` on that have dirty pages, sorted, up to `max` of each shard.
fn dirty_stripes(table: &PageTable, first: u64, max: usize) -> Vec<u64> {
    let mut stripes = Vec::new();
    for i in 0..table.shards() {
        let locked = table.lock_shard(i);
        stripes.extend(locked.book().dirty_stripes(first).take(max));
    }
    stripes.sort_unstable();
    stripes
}
