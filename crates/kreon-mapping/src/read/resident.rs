//! Bytes that are resident, without a look at anything but the page array and the frames.

use kreon_base::{PAGE_BYTES, PageNo};

use super::byte_range::{ByteRange, touched};
use super::reader::PageReader;

/// Lends the bytes of `range` if they lie in one page or two and these are resident.
/// [`Mapping::with_resident_bytes`](crate::Mapping::with_resident_bytes) has the details.
#[inline]
pub(crate) fn with_resident_bytes<R>(
    reader: &PageReader,
    range: ByteRange,
    scratch: &mut Vec<u8>,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> Option<R> {
    let within = (range.offset_bytes % PAGE_BYTES as u64) as usize;
    let end = within.checked_add(range.len_bytes)?;
    if end > 2 * PAGE_BYTES {
        return None;
    }
    let first = PageNo::containing(range.offset_bytes);
    let space = reader.table().space();
    let pinned = space.pin(first)?;
    let hits = &reader.counters.hits;
    hits.add(pinned.thread(), range.priority);
    if end <= PAGE_BYTES {
        return Some(use_bytes(pinned.bytes().get(within..end)?));
    }
    let next = space.pin(PageNo(first.0 + 1))?;
    hits.add(next.thread(), range.priority);
    if let Some(bytes) = pinned.joined(&next) {
        return Some(use_bytes(bytes.get(within..end)?));
    }
    scratch.clear();
    scratch.extend_from_slice(pinned.bytes().get(within..)?);
    scratch.extend_from_slice(next.bytes().get(..end - PAGE_BYTES)?);
    Some(use_bytes(scratch))
}

/// Whether all pages of these bytes are resident at this moment.
#[inline]
pub(crate) fn are_resident_bytes(reader: &PageReader, offset_bytes: u64, len_bytes: usize) -> bool {
    let (first, count) = touched(offset_bytes, len_bytes);
    reader.table().are_resident(first, count)
}
