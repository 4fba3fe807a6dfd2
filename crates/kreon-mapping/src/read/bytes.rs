//! Ranges of bytes that do not keep to pages: records of the log.
//!
//! Their pages are not checked: bytes of the log carry checksums of their own, which the log verifies.

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::{AlignedBuf, Read};

use super::Mapped;
use super::byte_range::{ByteCopy, ByteRange};
use super::prefetch::prefetch;
use super::reader::PageReader;
use crate::options::PageRequest;
use crate::transfer::TRANSFER_PAGES_MAX;

/// Longest range that is brought into frames. Longer values would evict more valuable pages, and gain least from being
/// resident.
pub(super) const FRAMED_BYTES_MAX: usize = 64 << 10;

/// Memory through which longer ranges are read, in bytes: two transfers.
const WINDOW_BYTES: u64 = (2 * TRANSFER_PAGES_MAX * PAGE_BYTES) as u64;

fn unchecked(_: &PageBytes) -> Result<()> {
    Ok(())
}

/// A request for a page of the log.
pub(super) fn unchecked_page(page: PageNo, priority: Priority) -> PageRequest<'static> {
    PageRequest {
        page,
        priority,
        check: &unchecked,
    }
}

/// Copies bytes of the volume. [`Mapping::read_bytes`](crate::Mapping::read_bytes) has the details.
pub(crate) fn read_bytes(reader: &PageReader, mut copy: ByteCopy<'_>) -> Result<()> {
    let len_bytes = copy.into.len();
    reader.table().check_range(copy.offset_bytes, len_bytes)?;
    if len_bytes == 0 {
        return Ok(());
    }
    if let Some(mapped) = &reader.mapped {
        return copy_mapped(reader, mapped, copy);
    }
    if len_bytes > FRAMED_BYTES_MAX {
        return read_long(reader, copy);
    }
    let (pages, priority) = (copy.pages(), copy.priority);
    let count = (pages.end - pages.start) as u32;
    if count > 1 && !reader.table().are_resident(PageNo(pages.start), count) {
        let requests: Vec<_> = pages
            .clone()
            .map(|page| unchecked_page(PageNo(page), priority))
            .collect();
        prefetch(reader, &requests)?;
    }
    for page in pages {
        let mut part = copy.part(page);
        let request = unchecked_page(PageNo(page), priority);
        reader.read(request, |bytes| part.fill(bytes))?;
    }
    Ok(())
}

/// Lends bytes through their pages: from the frame where they lie within one page, else as a copy in `scratch`.
///
/// # Errors
/// As [`read_bytes`].
pub(super) fn with_pages<R>(
    reader: &PageReader,
    range: ByteRange,
    scratch: &mut Vec<u8>,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    let within = (range.offset_bytes % PAGE_BYTES as u64) as usize;
    if range.len_bytes > PAGE_BYTES - within {
        return with_copy(reader, range, scratch, use_bytes);
    }
    let request = unchecked_page(PageNo::containing(range.offset_bytes), range.priority);
    reader.read(request, |bytes| {
        use_bytes(&bytes[within..within + range.len_bytes])
    })
}

/// Lends bytes as a copy in `scratch`.
///
/// # Errors
/// As [`read_bytes`].
pub(super) fn with_copy<R>(
    reader: &PageReader,
    range: ByteRange,
    scratch: &mut Vec<u8>,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    scratch.clear();
    scratch.resize(range.len_bytes, 0);
    let copy = ByteCopy {
        offset_bytes: range.offset_bytes,
        priority: range.priority,
        into: scratch,
    };
    read_bytes(reader, copy)?;
    Ok(use_bytes(scratch))
}

/// Copies bytes from frames where their pages are resident, else from the kernel's mapping.
fn copy_mapped(reader: &PageReader, mapped: &Mapped, mut copy: ByteCopy<'_>) -> Result<()> {
    let priority = copy.priority;
    for page in copy.pages() {
        let mut part = copy.part(page);
        let from_frame = reader.read_resident(PageNo(page), priority, |bytes| part.fill(bytes));
        let offset = PageNo(page).offset_bytes() + part.within as u64;
        if from_frame.is_some() || mapped.copy(offset, priority, part.into) {
            continue;
        }
        let request = unchecked_page(PageNo(page), priority);
        reader.read_past(request, |bytes| part.fill(bytes))?;
    }
    Ok(())
}

/// Reads a long range window by window.
fn read_long(reader: &PageReader, copy: ByteCopy<'_>) -> Result<()> {
    // A range that is not aligned touches one page more than its length needs.
    let touched_bytes = copy.into.len().next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
    let mut window = AlignedBuf::new(touched_bytes.min(WINDOW_BYTES as usize));
    let (mut offset_bytes, priority) = (copy.offset_bytes, copy.priority);
    let mut rest = copy.into;
    while !rest.is_empty() {
        // Windows end on page boundaries.
        let window_end = (offset_bytes / WINDOW_BYTES + 1) * WINDOW_BYTES;
        let len = (window_end - offset_bytes).min(rest.len() as u64) as usize;
        let (into, later) = rest.split_at_mut(len);
        let part = ByteCopy {
            offset_bytes,
            priority,
            into,
        };
        read_window(reader, part, &mut window)?;
        offset_bytes += len as u64;
        rest = later;
    }
    Ok(())
}

/// Copies from frames where pages are resident, else from the device, all at once.
fn read_window(reader: &PageReader, mut copy: ByteCopy<'_>, window: &mut AlignedBuf) -> Result<()> {
    let (pages, priority) = (copy.pages(), copy.priority);
    let mut absent = Vec::new();
    for page in pages.clone() {
        let mut part = copy.part(page);
        let copied = reader.read_resident(PageNo(page), priority, |bytes| part.fill(bytes));
        if copied.is_none() {
            absent.push(page);
        }
    }
    read_runs(reader, pages.start, &absent, priority, window)?;
    for page in absent {
        let start = (page - pages.start) as usize * PAGE_BYTES;
        copy.part(page).fill(&window[start..]);
    }
    Ok(())
}

/// Reads sorted pages to their places in a window that starts with page `first`.
fn read_runs(
    reader: &PageReader,
    first: u64,
    pages: &[u64],
    priority: Priority,
    window: &mut [u8],
) -> Result<()> {
    let mut reads: Vec<Read<'_>> = Vec::new();
    let mut rest = window;
    let mut position = first;
    for run in pages.chunk_by(|one, next| one + 1 == *next) {
        for piece in run.chunks(TRANSFER_PAGES_MAX) {
            let [start, ..] = piece else {
                continue;
            };
            let skipped = (start - position) as usize * PAGE_BYTES;
            let (_, later) = std::mem::take(&mut rest).split_at_mut(skipped);
            let (buffer, later) = later.split_at_mut(piece.len() * PAGE_BYTES);
            reads.push(Read::new(PageNo(*start).offset_bytes(), buffer));
            rest = later;
            position = start + piece.len() as u64;
        }
    }
    if reads.is_empty() {
        return Ok(());
    }
    let counters = &reader.counters;
    counters.misses.add(priority, pages.len() as u64);
    reader.device.read(&mut reads)?;
    counters.pages_read.add(pages.len() as u64);
    counters.pages_read_past.add(pages.len() as u64);
    Ok(())
}
