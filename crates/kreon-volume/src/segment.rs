//! One segment: its use, its pages, and the blocks that the file system has for it.
//!
//! Always true:
//! - `live` is what the next checkpoint records: the pages that its trees and catalogue reach. Pages of a running spill
//!   are `used` but not `live`, so a crash forgets them; pages that a spill replaced are no longer `live`, but stay
//!   `used` until no reader reaches them (`Kreon 3.4`).
//! - A page is handed out only while its `used` bit is clear; a segment only while it is *available*: free, without a
//!   used page, and not withheld.
//! - A withheld segment is durable as free and belongs to nobody: readers may still reach its records, or it is being
//!   written ahead of the log.

use kreon_base::{LogId, PAGE_BYTES, SEGMENT_BYTES, SEGMENT_PAGES};
use kreon_format::{GROUP_HEAD_PAGES, MOVED_SEQUENCE_MIN, SegmentKind, SegmentRecord};

use super::page_bits::PageBits;

/// What a segment is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// Nothing.
    #[default]
    Free,
    /// Pages of level trees and of the catalogue.
    Tree,
    /// Records of a log; `sequence` counts the segments of that log.
    Log {
        /// The log.
        log: LogId,
        /// Place of the segment in the log.
        sequence: u64,
    },
}

/// The state of one segment. By default it is free and has no blocks.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    usage: Usage,
    used: PageBits,
    live: PageBits,
    /// Bytes of the records in it that level trees point at.
    live_bytes: u32,
    is_withheld: bool,
    /// The file system has blocks for all of it, so that a write to it cannot run out of space.
    pub is_backed: bool,
    /// If it is not backed: bytes from its start that may have blocks.
    pub front_bytes: u32,
    /// All of it was written since it was backed.
    pub was_written: bool,
}

impl Segment {
    /// The first segment of a new group, which is backed: its head is in use.
    pub fn group_head() -> Self {
        let mut segment = Self {
            usage: Usage::Tree,
            is_backed: true,
            ..Self::default()
        };
        for page in 0..GROUP_HEAD_PAGES {
            segment.used.insert(page);
            segment.live.insert(page);
        }
        segment
    }

    /// The segment as a bitmap block records it; `is_first`: of its group.
    pub fn from_record(record: &SegmentRecord, is_first: bool) -> Self {
        let mut segment = Self {
            live_bytes: record.live_bytes,
            ..Self::default()
        };
        match record.kind {
            // It may have been a spare one.
            SegmentKind::Free => segment.front_bytes = SEGMENT_BYTES as u32,
            SegmentKind::Tree => {
                let live = PageBits(record.pages);
                segment.usage = Usage::Tree;
                (segment.live, segment.used, segment.is_backed) = (live, live, true);
            }
            SegmentKind::Log => {
                segment.usage = Usage::Log {
                    log: record.log,
                    sequence: record.sequence,
                };
                segment.used = PageBits::ALL;
                // The end of a segment of moved records may have been given back.
                segment.is_backed = record.sequence < MOVED_SEQUENCE_MIN;
                segment.front_bytes = SEGMENT_BYTES as u32;
            }
        }
        if is_first {
            // The blocks behind a group's head may have been given back if nothing else is in use there.
            segment.is_backed = segment.unused_pages() < SEGMENT_PAGES - GROUP_HEAD_PAGES;
        }
        segment
    }

    /// What a bitmap block records of the segment.
    pub fn to_record(&self) -> SegmentRecord {
        let mut record = SegmentRecord {
            live_bytes: self.live_bytes,
            ..Default::default()
        };
        match self.usage {
            Usage::Tree if !self.live.is_empty() => {
                record.kind = SegmentKind::Tree;
                record.pages = self.live.0;
            }
            Usage::Free | Usage::Tree => {}
            Usage::Log { log, sequence } => {
                record.kind = SegmentKind::Log;
                record.log = log;
                record.sequence = sequence;
                record.pages = PageBits::ALL.0;
            }
        }
        record
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Whether it can be handed out.
    pub fn is_available(&self) -> bool {
        self.usage == Usage::Free && !self.is_withheld
    }

    /// Whether its unused pages can be handed out.
    pub fn offers_pages(&self) -> bool {
        self.usage == Usage::Tree && self.is_backed
    }

    pub fn unused_pages(&self) -> u64 {
        self.used.gaps()
    }

    /// Length of the longest run of unused pages.
    pub fn longest_run(&self) -> u64 {
        self.used.longest_gap().1
    }

    pub fn first_unused_page(&self) -> u64 {
        self.used.first_gap()
    }

    pub fn has_used_pages(&self) -> bool {
        !self.used.is_empty()
    }

    /// Of a group's first segment: whether no page behind the head is in use.
    pub fn is_head_alone(&self) -> bool {
        self.usage == Usage::Tree && self.unused_pages() == SEGMENT_PAGES - GROUP_HEAD_PAGES
    }

    pub fn is_used(&self, page: u64) -> bool {
        self.used.contains(page)
    }

    pub fn is_live(&self, page: u64) -> bool {
        self.live.contains(page)
    }

    pub fn live_bytes(&self) -> u32 {
        self.live_bytes
    }

    /// No flush of it has to make blocks of the file system durable.
    pub fn is_written(&self) -> bool {
        self.is_backed && self.was_written
    }

    /// Bytes of the device that it has blocks for, as far as is known.
    pub fn taken_bytes(&self) -> u64 {
        match (self.is_backed, self.usage) {
            (true, _) => SEGMENT_BYTES,
            (false, Usage::Tree) => GROUP_HEAD_PAGES * PAGE_BYTES as u64,
            // Blocks that an earlier run may have left there are given back by later trims.
            (false, Usage::Free) => 0,
            (false, Usage::Log { .. }) => u64::from(self.front_bytes),
        }
    }

    /// Puts an available segment to use.
    pub fn take(&mut self, usage: Usage) {
        assert!(
            self.is_available() && self.used.is_empty(),
            "a segment is handed out that is not available: {:?}",
            self.usage
        );
        self.usage = usage;
        if let Usage::Log { .. } = usage {
            self.used = PageBits::ALL;
        }
    }

    /// Takes up to `wanted` pages out of the longest run of unused ones: (first, count).
    pub fn take_run(&mut self, wanted: u64) -> (u64, u64) {
        let (first, gap) = self.used.longest_gap();
        let count = gap.min(wanted);
        for page in first..first + count {
            self.take_page(page);
        }
        (first, count)
    }

    pub fn take_page(&mut self, page: u64) {
        debug_assert_eq!(self.usage, Usage::Tree);
        debug_assert!(
            !self.used.contains(page) && !self.live.contains(page),
            "page {page} is handed out twice"
        );
        self.used.insert(page);
    }

    /// Makes the page part of the next checkpoint.
    pub fn keep_page(&mut self, page: u64) {
        debug_assert!(self.used.contains(page), "page {page} is kept and free");
        self.live.insert(page);
    }

    /// Takes the page out of the next checkpoint; readers may still reach it.
    pub fn drop_page(&mut self, page: u64) {
        self.live.remove(page);
    }

    /// Makes a page unused that no reader reaches any more.
    pub fn release_page(&mut self, page: u64) {
        self.used.remove(page);
        self.live.remove(page);
    }

    /// Frees a tree segment without a used page; whether it was one.
    pub fn free_if_unused(&mut self) -> bool {
        let is_unused = self.used.is_empty();
        if is_unused {
            self.usage = Usage::Free;
        }
        is_unused
    }

    pub fn set_live_bytes(&mut self, bytes: u32) {
        debug_assert!(matches!(self.usage, Usage::Log { .. }));
        self.live_bytes = bytes;
    }

    /// A log leaves the segment, which stays withheld until [`Self::readmit`]; `is_filled`: all of it was written.
    pub fn retire(&mut self, is_filled: bool) {
        assert!(
            matches!(self.usage, Usage::Log { .. }),
            "a segment is retired that no log has: {:?}",
            self.usage
        );
        (self.usage, self.is_withheld) = (Usage::Free, true);
        self.was_written |= is_filled;
    }

    /// Withholds an available segment.
    pub fn withhold(&mut self) {
        assert!(
            self.is_available(),
            "a segment is withheld that is not available: {:?}",
            self.usage
        );
        self.is_withheld = true;
    }

    /// Makes a withheld segment available.
    pub fn readmit(&mut self) {
        assert!(
            self.usage == Usage::Free && self.is_withheld,
            "a segment becomes available that was not withheld: {:?}",
            self.usage
        );
        self.is_withheld = false;
        self.used = PageBits::default();
    }

    /// Makes a log segment available at once: no record of it was ever reached.
    pub fn give_up(&mut self) {
        self.retire(false);
        self.readmit();
    }

    /// It is not backed; up to `bytes` from its start may have blocks.
    pub fn set_front_only(&mut self, bytes: u32) {
        (self.is_backed, self.front_bytes) = (false, bytes);
    }
}
