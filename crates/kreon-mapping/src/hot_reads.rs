//! Reading records that may be kept by themselves, without the pages around them.

use std::sync::atomic::Ordering::Relaxed;

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result, SEGMENT_BYTES};

use crate::evict::EVICT_BATCH_MAX;
use crate::fetch::FinalBytes;
use crate::hot::{Generation, Hot, RECORD_BYTES_MAX};
use crate::mapping::Mapping;
use crate::options::KeepRecords;
use crate::shard::PRIORITIES;
use crate::spare::Spare;
use crate::well::PageState;

/// Frames that records leave to pages of the last priority: one in so many.
const LAST_PAGES_SHARE: usize = 64;

/// As long as one in so many frames is free, log pages are kept whole: that a page is resident costs no
/// lock and no copy to learn.
const FREE_SHARE: usize = 8;

/// The fewest free frames for that; an eviction sets some free at a time.
const FREE_MIN: usize = 4 * EVICT_BATCH_MAX;

/// Frames that records keep when pages are short of them: one in so many.
const RECORDS_SHARE: usize = 32;

/// Whether a range is short, and in one segment, whose pages are discarded together.
pub(crate) fn can_be_kept(offset_bytes: u64, len_bytes: usize) -> bool {
    len_bytes <= RECORD_BYTES_MAX
        && offset_bytes % SEGMENT_BYTES + len_bytes as u64 <= SEGMENT_BYTES
}

impl Mapping {
    /// Whether [`with_record`](Self::with_record) would find the record kept.
    pub(crate) fn has_record(&self, offset_bytes: u64, len_bytes: usize) -> bool {
        self.hot.as_ref().is_some_and(|hot| {
            can_be_kept(offset_bytes, len_bytes)
                && hot.has(&self.pages.space, offset_bytes, len_bytes)
        })
    }

    /// Lends a record to `use_bytes`: from its pages if they are resident, else as it was kept, else
    /// from the device, and keeps it: by its pages while frames are plenty, or if one of them is there.
    pub(crate) fn with_record<R>(
        &self,
        hot: &Hot,
        offset_bytes: u64,
        len_bytes: usize,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let space = &self.pages.space;
        let first = PageNo::containing(offset_bytes);
        let last = PageNo::containing(offset_bytes + len_bytes as u64 - 1);
        let pages = (last.0 - first.0 + 1) as usize;
        if self.are_resident(first, pages as u32) {
            return self.with_pages(offset_bytes, len_bytes, priority, scratch, use_bytes);
        }
        scratch.clear();
        if hot.get(space, offset_bytes, len_bytes, scratch) {
            return Ok(use_bytes(scratch));
        }
        if !self.keeps_record(first, pages as u32) {
            return self.with_pages(offset_bytes, len_bytes, priority, scratch, use_bytes);
        }
        let generation = hot.generation(offset_bytes);
        self.counters.misses.add(priority, 1);
        // Whole blocks, not pages: reads of two pages are half as many a second.
        let block_bytes = u64::from(self.device.block_bytes());
        let within = (offset_bytes % block_bytes) as usize;
        let start = offset_bytes - within as u64;
        let span = (within + len_bytes).next_multiple_of(block_bytes as usize);
        let mut memory = Spare::new(span);
        let read = &mut memory[..span];
        self.device.read_at(start, read)?;
        self.counters
            .pages_read
            .add(span.div_ceil(PAGE_BYTES) as u64);
        let bytes = &read[within..within + len_bytes];
        self.keep(hot, offset_bytes, generation, bytes);
        Ok(use_bytes(bytes))
    }

    /// Whether a record on these pages is to be kept by itself if it is read now: frames are scarce, and none of
    /// the pages is there or on its way.
    fn keeps_record(&self, first: PageNo, pages: u32) -> bool {
        let is_absent = |page| self.pages.space.state(PageNo(page)) == PageState::Absent;
        let keeps_pages = self.modes.records == KeepRecords::Scarce && self.has_plenty_of_frames();
        !keeps_pages && (first.0..first.0 + u64::from(pages)).all(is_absent)
    }

    /// Where a record that is read now is to be kept by itself.
    pub(crate) fn hot_for(&self, bytes: &FinalBytes) -> Option<&Hot> {
        let hot = self.hot.as_ref()?;
        let (first, pages) = bytes.pages();
        let keeps =
            can_be_kept(bytes.offset_bytes, bytes.len_bytes) && self.keeps_record(first, pages);
        keeps.then_some(hot)
    }

    /// Appends a record to `into` if it is kept.
    pub(crate) fn has_kept(&self, offset_bytes: u64, len_bytes: usize, into: &mut Vec<u8>) -> bool {
        self.hot.as_ref().is_some_and(|hot| {
            can_be_kept(offset_bytes, len_bytes)
                && hot.get(&self.pages.space, offset_bytes, len_bytes, into)
        })
    }

    /// Keeps a record that was read after its generation was taken.
    pub(crate) fn keep(&self, hot: &Hot, offset_bytes: u64, generation: Generation, bytes: &[u8]) {
        hot.keep(
            &self.pages.space,
            (offset_bytes, generation),
            bytes,
            || self.record_frames_max(),
            || self.take_frame(),
        );
    }

    /// Whether so many frames are free that log pages are kept whole.
    pub fn has_plenty_of_frames(&self) -> bool {
        self.pool.len() >= (self.plan.frames / FREE_SHARE).max(FREE_MIN)
    }

    /// Frames that records may take now: all but those of pages that matter more, and a few.
    fn record_frames_max(&self) -> usize {
        let classes = &self.pages.classes[..PRIORITIES - 1];
        let more: usize = classes.iter().map(|class| class.load(Relaxed)).sum();
        let left = self.plan.frames / LAST_PAGES_SHARE;
        self.plan.frames.saturating_sub(more + left)
    }

    /// Has records give up frames; `spare`: half of them at most, and none of their share. Returns
    /// how many.
    pub(crate) fn take_from_records(&self, wanted: usize, spare: bool) -> usize {
        let Some(hot) = &self.hot else {
            return 0;
        };
        let takes = match spare {
            true => hot
                .frames()
                .saturating_sub(self.plan.frames / RECORDS_SHARE),
            false => hot.frames(),
        };
        let mut given = 0;
        hot.give_up(&self.pages.space, wanted.min(takes), |frame| {
            self.pool.put(frame);
            given += 1;
        });
        given
    }
}
