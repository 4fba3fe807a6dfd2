//! Reading records that may be kept by themselves, without the pages around them.

use std::sync::atomic::Ordering::Relaxed;

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result, SEGMENT_BYTES};
use kreon_device::AlignedBuf;

use crate::evict::EVICT_BATCH_MAX;
use crate::hot::{Hot, RECORD_BYTES_MAX};
use crate::mapping::Mapping;
use crate::options::KeepRecords;
use crate::shard::PRIORITIES;
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
        if hot.get(space, offset_bytes, len_bytes, scratch) {
            return Ok(use_bytes(scratch));
        }
        let is_absent = |page| space.state(PageNo(page)) == PageState::Absent;
        let keeps_pages = self.modes.records == KeepRecords::Scarce && self.has_plenty_of_frames();
        if keeps_pages || !(first.0..=last.0).all(is_absent) {
            return self.with_pages(offset_bytes, len_bytes, priority, scratch, use_bytes);
        }
        let generation = hot.generation(offset_bytes);
        self.counters.misses.add(priority, 1);
        let mut buffer = AlignedBuf::new(pages * PAGE_BYTES);
        self.device.read_at(first.offset_bytes(), &mut buffer)?;
        self.counters.pages_read.add(pages as u64);
        let within = (offset_bytes % PAGE_BYTES as u64) as usize;
        let bytes = &buffer[within..within + len_bytes];
        hot.keep(
            space,
            (offset_bytes, generation),
            bytes,
            || self.record_frames_max(),
            || self.take_frame(),
        );
        Ok(use_bytes(bytes))
    }

    fn has_plenty_of_frames(&self) -> bool {
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
