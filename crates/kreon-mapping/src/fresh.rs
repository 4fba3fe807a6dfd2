//! Pages that get new content, and pages that are discarded.
//!
//! When either call returns, nothing that the mapping knew under the page's number before can be seen again: neither in a
//! frame, nor as a single record, nor by a load or write that was under way.

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Priority, Result};

use crate::read::PageReader;
use crate::table::stripe_of;
use crate::well::{FreeFrame, STRIPE_PAGES};

/// Gives a page new content: resident and dirty, or written at once if there is no frame to be had.
///
/// # Errors
/// Those of the device, in writing this page or others.
pub(crate) fn fresh(
    reader: &PageReader,
    page: PageNo,
    priority: Priority,
    bytes: &PageBytes,
) -> Result<()> {
    begin(reader, page)?;
    let table = reader.table();
    if let Some(mut frame) = take_frame(reader, page)? {
        table.space().bytes_mut(&mut frame).copy_from_slice(bytes);
        match place(reader, page, priority, frame) {
            Ok(()) => return reader.frames.writer().write_excess(table),
            Err(unused) => table.pool().put(unused),
        }
    }
    write_at_once(reader, page, bytes)
}

/// [`fresh`] with a frame that has the content already. The frame is written at once, and back in the pool, if the page
/// array has no room for its page.
///
/// # Errors
/// As [`fresh`]; the frame is back in the pool if the volume cannot have the page.
pub(crate) fn publish(
    reader: &PageReader,
    page: PageNo,
    priority: Priority,
    frame: FreeFrame,
) -> Result<()> {
    let table = reader.table();
    let unused = match begin(reader, page) {
        Ok(()) => match place(reader, page, priority, frame) {
            Ok(()) => return reader.frames.writer().write_excess(table),
            Err(unused) => unused,
        },
        Err(error) => {
            table.pool().put(frame);
            return Err(error);
        }
    };
    let written = write_at_once(reader, page, table.space().bytes(&unused));
    table.pool().put(unused);
    written
}

/// Counts a page that gets new content, and invalidates what other places know of it.
fn begin(reader: &PageReader, page: PageNo) -> Result<()> {
    reader.table().check_page(page)?;
    reader.frames.writer().counters().pages_fresh.add(1);
    forget(reader, page, 1);
    Ok(())
}

/// Makes a filled frame that of its page, which is dirty then. The frame comes back if the page array has no room.
fn place(
    reader: &PageReader,
    page: PageNo,
    priority: Priority,
    mut frame: FreeFrame,
) -> Result<(), FreeFrame> {
    let table = reader.table();
    loop {
        let mut retired = Vec::new();
        let placed = table
            .lock(page)
            .replace(page, priority, frame, &mut retired);
        table.settle(retired);
        match placed {
            Ok(()) => return Ok(()),
            Err(unused) if reader.frames.make_table_room() => frame = unused,
            Err(unused) => return Err(unused),
        }
    }
}

/// Writes a page that gets no frame.
fn write_at_once(reader: &PageReader, page: PageNo, bytes: &PageBytes) -> Result<()> {
    discard(reader, page, 1);
    let written = reader.frames.writer().write_past(page, bytes);
    // A reader of the old content may have begun to load it meanwhile.
    discard(reader, page, 1);
    written
}

/// A frame for the new content of a page, if one is to be had.
///
/// # Errors
/// Those of the device, where the old content is read first.
fn take_frame(reader: &PageReader, page: PageNo) -> Result<Option<FreeFrame>> {
    match reader.frames.take() {
        Some(frame) if reader.modes.reads_before_fresh() => {
            read_first(reader, page, frame).map(Some)
        }
        frame => Ok(frame),
    }
}

/// Reads the old content of a page into the frame of its new content, unless the page is resident, or behind the end of
/// the volume.
fn read_first(reader: &PageReader, page: PageNo, mut frame: FreeFrame) -> Result<FreeFrame> {
    let table = reader.table();
    let end_bytes = page.offset_bytes() + PAGE_BYTES as u64;
    if end_bytes > reader.device.len_bytes() || table.is_resident(page) {
        return Ok(frame);
    }
    let bytes = table.space().bytes_mut(&mut frame).as_mut_slice();
    match reader.device.read_at(page.offset_bytes(), bytes) {
        Ok(()) => {
            reader.counters.pages_read.add(1);
            Ok(frame)
        }
        Err(error) => {
            table.pool().put(frame);
            Err(error)
        }
    }
}

/// Makes `pages` pages from `first` on absent, dirty or not.
pub(crate) fn discard(reader: &PageReader, first: PageNo, pages: u64) {
    let table = reader.table();
    let end = first.0.saturating_add(pages).min(table.pages());
    forget(reader, first, end.saturating_sub(first.0));
    let mut page = first.0;
    while page < end {
        let stripe = stripe_of(PageNo(page));
        let stripe_end = ((stripe + 1) * STRIPE_PAGES).min(end);
        let mut retired = Vec::new();
        let mut locked = table.lock_stripe(stripe);
        if locked
            .book()
            .frames_of(stripe)
            .is_some_and(|frames| frames > 0)
        {
            for number in page..stripe_end {
                locked.clear(PageNo(number), &mut retired);
            }
        }
        drop(locked);
        table.settle(retired);
        page = stripe_end;
    }
}

/// Makes single records and verified pages of the kernel's mapping invalid.
fn forget(reader: &PageReader, first: PageNo, pages: u64) {
    if let Some(records) = reader.frames.records() {
        records.forget(first, pages);
    }
    if let Some(mapped) = &reader.mapped {
        mapped.forget(first, pages);
    }
}
