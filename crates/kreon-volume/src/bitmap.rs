//! The durable form of the table of segments: one bitmap block a group, in buddy pairs.
//!
//! A checkpoint writes the copy that the last one did not write, and the catalogue says which copy of
//! each group counts. A checkpoint that does not complete therefore leaves the last durable state intact.

use kreon_base::{Epoch, Error, LogId, PageBytes, PageNo, Result, planted};
use kreon_device::Device;
use kreon_format::{
    BitmapBlock, GROUP_HEAD_PAGES, GROUP_SEGMENTS, GroupPointer, LOG_SEQUENCE_MAX,
    MOVED_SEQUENCE_MIN, SegmentKind, SegmentRecord, StoreId, bitmap_page, group_first_segment,
};

use super::page_io::read_pages;
use super::segment::{Segment, Usage};
use super::segments::Segments;

pub fn encode_changed(
    segments: &mut Segments,
    store: StoreId,
    epoch: Epoch,
) -> Vec<(PageNo, Box<PageBytes>)> {
    let mut pages = Vec::new();
    for (number, last) in segments.dirty_groups() {
        let block = block(segments, number, epoch);
        let copy = match last {
            Some(pointer) => 1 - (pointer.copy & 1),
            None => 0,
        };
        planted!(BitmapInPlace => let copy = last.map_or(0, |pointer| pointer.copy));
        let (bytes, pointer) = block.encode(store, copy);
        segments.set_encoded(number, pointer);
        pages.push((bitmap_page(number, copy), bytes));
    }
    pages
}

fn block(segments: &Segments, group: u32, epoch: Epoch) -> BitmapBlock {
    let mut records = [SegmentRecord::default(); GROUP_SEGMENTS];
    for (record, segment) in records.iter_mut().zip(segments.of_group(group)) {
        *record = segment.to_record();
    }
    BitmapBlock {
        group,
        epoch,
        segments: records,
    }
}

/// Reads the durable state: `count` segments, blocks as `pointers` say.
///
/// # Errors
/// `Corruption` if a block does not verify.
pub fn load(
    device: &dyn Device,
    store: StoreId,
    count: u32,
    pointers: &[GroupPointer],
) -> Result<Segments> {
    let groups = (count as usize).div_ceil(GROUP_SEGMENTS);
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
    let bytes = read_pages(device, &pages)?;
    let mut segments = Segments::default();
    for ((number, pointer), bytes) in numbered.into_iter().zip(bytes.pages()) {
        let block = BitmapBlock::decode_pointed(bytes, store, number, pointer)?;
        check_block(&block)?;
        let first = group_first_segment(number).0;
        let known = (count - first).min(GROUP_SEGMENTS as u32) as usize;
        let records = block.segments.iter().take(known).enumerate();
        let loaded = records.map(|(at, record)| Segment::from_record(record, at == 0));
        segments.add_recorded(*pointer, loaded);
    }
    Ok(segments)
}

/// Checks what allocation relies on: heads of groups are in use, and sequences of logs can still grow.
fn check_block(block: &BitmapBlock) -> Result<()> {
    let group = block.group;
    let damaged = |what| Error::corruption(format!("bitmap block of group {group}: {what}"));
    let head = Segment::from_record(&block.segments[0], true);
    if head.usage() != Usage::Tree || !(0..GROUP_HEAD_PAGES).all(|page| head.is_live(page)) {
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
