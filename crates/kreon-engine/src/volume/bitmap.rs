//! The allocator's durable form: one bitmap block a group, in buddy pairs.
//!
//! A checkpoint writes the copy that the last one did not write, and the catalogue says which copy of
//! each group counts. So a checkpoint that does not complete leaves the truth of the last one alone.

use std::sync::Arc;

use kreon_base::{
    Bug, Epoch, Error, LogId, PageBytes, PageNo, Result, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId,
};
use kreon_device::Device;
use kreon_format::{
    BitmapBlock, GROUP_HEAD_PAGES, GROUP_SEGMENTS, GroupPointer, LOG_SEQUENCE_MAX,
    MOVED_SEQUENCE_MIN, SegmentKind, SegmentRecord, StoreId, bitmap_page, group_first_segment,
};

use super::allocator::{Allocator, Group, Segment, Usage};
use super::page_bits::PageBits;
use super::page_io::read_pages;

impl Allocator {
    /// Encodes the blocks of all groups that changed, as epoch `epoch`, with the pages they go to.
    pub fn encode_changed(
        &mut self,
        store: StoreId,
        epoch: Epoch,
    ) -> Vec<(PageNo, Box<PageBytes>)> {
        let mut pages = Vec::new();
        for number in 0..self.groups.len() {
            if !self.groups[number].dirty {
                continue;
            }
            let block = self.block(number as u32, epoch);
            let copy = match self.groups[number].pointer {
                Some(pointer) if Bug::BitmapInPlace.is_planted() => pointer.copy,
                Some(pointer) => 1 - (pointer.copy & 1),
                None => 0,
            };
            let (bytes, pointer) = block.encode(store, copy);
            self.groups[number] = Group {
                pointer: Some(pointer),
                dirty: false,
            };
            pages.push((bitmap_page(number as u32, copy), bytes));
        }
        pages
    }

    /// Where the blocks of the groups stand, for the catalogue. Complete after
    /// [`Self::encode_changed`].
    pub fn pointers(&self) -> Vec<GroupPointer> {
        self.groups
            .iter()
            .filter_map(|group| group.pointer)
            .collect()
    }

    /// Number of groups.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    fn block(&self, group: u32, epoch: Epoch) -> BitmapBlock {
        let first = group_first_segment(group).0 as usize;
        let mut segments = [SegmentRecord::default(); GROUP_SEGMENTS];
        for (record, segment) in segments.iter_mut().zip(self.segments.iter().skip(first)) {
            *record = segment_record(segment);
        }
        BitmapBlock {
            group,
            epoch,
            segments,
        }
    }

    /// Reads the durable state: `segments` segments, blocks as `pointers` say.
    ///
    /// # Errors
    /// `Corruption` if a block does not verify.
    pub fn load(
        device: Arc<dyn Device>,
        segments_max: u32,
        store: StoreId,
        segments: u32,
        pointers: &[GroupPointer],
    ) -> Result<Self> {
        let groups = (segments as usize).div_ceil(GROUP_SEGMENTS);
        if groups != pointers.len() {
            return Err(Error::corruption(format!(
                "the catalogue knows {} groups, the superblock {groups}",
                pointers.len()
            )));
        }
        let numbered: Vec<_> = (0..).zip(pointers).collect();
        let pages: Vec<_> = numbered
            .iter()
            .map(|(n, p)| bitmap_page(*n, p.copy))
            .collect();
        let bytes = read_pages(device.as_ref(), &pages)?;
        let mut allocator = Self::new(device, segments_max);
        for ((number, pointer), bytes) in numbered.into_iter().zip(bytes.pages()) {
            let block = BitmapBlock::decode_pointed(bytes, store, number, pointer)?;
            let first = group_first_segment(number).0;
            check_block(&block)?;
            let known = (segments - first).min(GROUP_SEGMENTS as u32) as usize;
            allocator
                .segments
                .extend(block.segments.iter().take(known).map(loaded_segment));
            // Where the head of a group stands alone in its segment, the rest may have been given back.
            if let Some(head) = allocator.segments.get_mut(first as usize) {
                head.backed = head.used.gaps() < SEGMENT_PAGES - GROUP_HEAD_PAGES;
            }
            allocator.groups.push(Group {
                pointer: Some(*pointer),
                dirty: false,
            });
        }
        for id in 0..segments {
            allocator.index(SegmentId(id));
        }
        let live = allocator.segments.iter();
        allocator.live_bytes = live.map(|segment| u64::from(segment.live_bytes)).sum();
        Ok(allocator)
    }

    /// Every page of tree segments that the next checkpoint records as in use, group heads left out.
    pub fn live_pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.segments.iter().enumerate().flat_map(|(id, segment)| {
            let head = if id.is_multiple_of(GROUP_SEGMENTS) {
                GROUP_HEAD_PAGES
            } else {
                0
            };
            let pages = if segment.usage == Usage::Tree {
                SEGMENT_PAGES
            } else {
                0
            };
            (head..pages)
                .filter(|page| segment.live.contains(*page))
                .map(move |page| PageNo(id as u64 * SEGMENT_PAGES + page))
        })
    }

    /// The segments that hold something, ascending.
    pub fn taken_segments(&self) -> Vec<SegmentId> {
        let segments = (0..).map(SegmentId).zip(&self.segments);
        let taken = segments.filter(|(_, segment)| segment.usage != Usage::Free);
        taken.map(|(id, _)| id).collect()
    }

    /// The log segments of `log` as (segment, sequence), in the order of the log.
    pub fn log_segments(&self, log: LogId) -> Vec<(SegmentId, u64)> {
        let mut found: Vec<_> = (0..)
            .zip(&self.segments)
            .filter_map(|(id, segment)| match segment.usage {
                Usage::Log { log: l, sequence } if l == log => Some((SegmentId(id), sequence)),
                _ => None,
            })
            .collect();
        found.sort_by_key(|(_, sequence)| *sequence);
        found
    }
}

/// What an allocator relies on: it never hands out the head of a group, and counts on from every
/// sequence.
fn check_block(block: &BitmapBlock) -> Result<()> {
    let group = block.group;
    let damaged = |what| Error::corruption(format!("bitmap block of group {group}: {what}"));
    let head = loaded_segment(&block.segments[0]);
    if head.usage != Usage::Tree || !(0..GROUP_HEAD_PAGES).all(|page| head.live.contains(page)) {
        return Err(damaged("the head of the group is not in use"));
    }
    let out_of_range = |record: &SegmentRecord| {
        record.kind == SegmentKind::Log && record.sequence > LOG_SEQUENCE_MAX
    };
    let is_mixed_up = |record: &SegmentRecord| {
        let is_moved = record.sequence >= MOVED_SEQUENCE_MIN;
        record.kind == SegmentKind::Log && (record.log == LogId(0)) == is_moved
    };
    if block.segments.iter().any(is_mixed_up) {
        return Err(damaged("a log segment has a number of another log"));
    }
    if block.segments.iter().any(out_of_range) {
        return Err(damaged("a log segment has a number above the largest"));
    }
    Ok(())
}

fn segment_record(segment: &Segment) -> SegmentRecord {
    let mut record = SegmentRecord {
        live_bytes: segment.live_bytes,
        ..Default::default()
    };
    match segment.usage {
        Usage::Free => {}
        Usage::Tree => {
            record.kind = SegmentKind::Tree;
            record.pages = segment.live.0;
            if segment.live.is_empty() {
                record.kind = SegmentKind::Free;
            }
        }
        Usage::Log { log, sequence } => {
            record.kind = SegmentKind::Log;
            record.log = log;
            record.sequence = sequence;
            record.pages = PageBits::ALL.0;
        }
    }
    record
}

fn loaded_segment(record: &SegmentRecord) -> Segment {
    let live = PageBits(record.pages);
    let mut segment = Segment {
        live_bytes: record.live_bytes,
        ..Segment::free()
    };
    match record.kind {
        // It may have been a spare one.
        SegmentKind::Free => segment.front_bytes = SEGMENT_BYTES as u32,
        SegmentKind::Tree => {
            segment.usage = Usage::Tree;
            (segment.live, segment.used, segment.backed) = (live, live, true);
        }
        SegmentKind::Log => {
            segment.usage = Usage::Log {
                log: record.log,
                sequence: record.sequence,
            };
            segment.used = PageBits::ALL;
            // The end of a segment of moved records may have been given back.
            segment.backed = record.sequence < MOVED_SEQUENCE_MIN;
            segment.front_bytes = SEGMENT_BYTES as u32;
        }
    }
    segment
}
