//! Ranges that may be kept as single records, without the pages around them.
//!
//! A record is read from its pages if they are resident, else from the record cache, else from the device. While frames
//! are plenty its pages become resident; when they are scarce the record is kept alone.

use kreon_base::{PAGE_BYTES, PageNo, Result, SEGMENT_BYTES};

use super::byte_range::{ByteRange, FinalBytes, touched};
use super::bytes::{FRAMED_BYTES_MAX, with_copy, with_pages};
use super::read_buffer::ReadBuffer;
use super::reader::PageReader;
use crate::record_cache::{RecordCache, can_be_kept};
use crate::well::PageState;

/// Whether [`with_bytes`] of this range would need no read from the device at this moment.
pub(crate) fn has_bytes(reader: &PageReader, offset_bytes: u64, len_bytes: usize) -> bool {
    let (first, count) = touched(offset_bytes, len_bytes);
    reader.table().are_resident(first, count) || has_record(reader, offset_bytes, len_bytes)
}

/// Lends the bytes of `range`. [`Mapping::with_bytes`](crate::Mapping::with_bytes) has the details.
pub(crate) fn with_bytes<R>(
    reader: &PageReader,
    range: ByteRange,
    scratch: &mut Vec<u8>,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    let (offset, len) = (range.offset_bytes, range.len_bytes);
    reader.table().check_range(offset, len)?;
    if len == 0 {
        return Ok(use_bytes(&[]));
    }
    if let Some(records) = cache_for(reader, offset, len) {
        return with_record(reader, records, range, scratch, use_bytes);
    }
    if reader.mapped.is_some() {
        return with_copy(reader, range, scratch, use_bytes);
    }
    with_pages(reader, range, scratch, use_bytes)
}

/// Lends a record that may be kept alone.
fn with_record<R>(
    reader: &PageReader,
    records: &RecordCache,
    range: ByteRange,
    scratch: &mut Vec<u8>,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    let (offset_bytes, len_bytes) = (range.offset_bytes, range.len_bytes);
    let (first, pages) = touched(offset_bytes, len_bytes);
    if reader.table().are_resident(first, pages) {
        return with_pages(reader, range, scratch, use_bytes);
    }
    scratch.clear();
    if records.get(reader.table().space(), offset_bytes, len_bytes, scratch) {
        return Ok(use_bytes(scratch));
    }
    if !keeps_alone(reader, first, pages) {
        return with_pages(reader, range, scratch, use_bytes);
    }
    let generation = records.generation(offset_bytes);
    reader.counters.misses.add(range.priority, 1);
    // Whole blocks, not pages: reads of two pages are half as many a second.
    let block_bytes = u64::from(reader.device.block_bytes());
    let within = (offset_bytes % block_bytes) as usize;
    let start = offset_bytes - within as u64;
    let span = (within + len_bytes).next_multiple_of(block_bytes as usize);
    let mut memory = ReadBuffer::new(span);
    let read = &mut memory[..span];
    reader.device.read_at(start, read)?;
    let pages_read = &reader.counters.pages_read;
    pages_read.add(span.div_ceil(PAGE_BYTES) as u64);
    let bytes = &read[within..within + len_bytes];
    let frames = &reader.frames;
    frames.keep_record(offset_bytes, generation, bytes);
    Ok(use_bytes(bytes))
}

/// The record cache, if it may keep such a record.
fn cache_for(reader: &PageReader, offset_bytes: u64, len_bytes: usize) -> Option<&RecordCache> {
    let records = reader.frames.records();
    records.filter(|_| can_be_kept(offset_bytes, len_bytes))
}

/// Whether the record cache has the record.
fn has_record(reader: &PageReader, offset_bytes: u64, len_bytes: usize) -> bool {
    let space = reader.table().space();
    cache_for(reader, offset_bytes, len_bytes)
        .is_some_and(|records| records.has(space, offset_bytes, len_bytes))
}

/// Appends a record to `into` if the record cache has it.
pub(super) fn copy_record(
    reader: &PageReader,
    offset_bytes: u64,
    len_bytes: usize,
    into: &mut Vec<u8>,
) -> bool {
    let space = reader.table().space();
    cache_for(reader, offset_bytes, len_bytes)
        .is_some_and(|records| records.get(space, offset_bytes, len_bytes, into))
}

/// Whether a record on these pages is kept alone if it is read now: frames are scarce, and none of the pages is resident
/// or being loaded.
fn keeps_alone(reader: &PageReader, first: PageNo, pages: u32) -> bool {
    let is_absent = |page| reader.table().space().state(PageNo(page)) == PageState::Absent;
    let keeps_pages = reader.modes.prefers_pages() && reader.frames.are_plenty();
    !keeps_pages && (first.0..first.0 + u64::from(pages)).all(is_absent)
}

/// The record cache, if these bytes are kept alone when they are read now.
pub(crate) fn is_kept_alone<'a>(
    reader: &'a PageReader,
    bytes: &FinalBytes,
) -> Option<&'a RecordCache> {
    let records = cache_for(reader, bytes.offset_bytes, bytes.len_bytes)?;
    let (first, pages) = bytes.pages();
    keeps_alone(reader, first, pages).then_some(records)
}

/// Whether the surroundings of a record are read along with it: not if the record itself is read past the frames.
pub(super) fn widens(reader: &PageReader, bytes: &FinalBytes) -> bool {
    bytes.len_bytes <= FRAMED_BYTES_MAX
        && reader.modes.prefers_pages()
        && reader.mapped.is_none()
        && reader.frames.are_plenty()
        && !has_record(reader, bytes.offset_bytes, bytes.len_bytes)
}

/// The pages of a record and, while frames are plenty, those around it that one transfer reads along: the first, and how
/// many.
pub(crate) fn widened(reader: &PageReader, bytes: &FinalBytes) -> (PageNo, u32) {
    const WINDOW_PAGES: u64 = 16;
    const { assert!((SEGMENT_BYTES / PAGE_BYTES as u64).is_multiple_of(WINDOW_PAGES)) };
    let (first, count) = bytes.pages();
    if !widens(reader, bytes) {
        return (first, count);
    }
    let end = first.0 + u64::from(count);
    // A page that is final only in part must not become resident, unless it has the record that is asked for.
    let final_end = (bytes.final_end_bytes / PAGE_BYTES as u64).max(end);
    let start = first.0 - first.0 % WINDOW_PAGES;
    let end = end.next_multiple_of(WINDOW_PAGES).min(final_end);
    debug_assert!(start <= first.0 && end >= first.0 + u64::from(count));
    (PageNo(start), (end - start) as u32)
}
