//! The end of reads that no thread waits for in a call.
//!
//! Tasks are woken after all pages that ended together are published, and while no lock is held.

use kreon_base::{PageNo, Result, wake};
use kreon_device::Read;

use super::in_flight::{InFlight, PagesTarget, ReadContext, ReadTarget, RecordTarget};
use crate::read::{Load, PageReader};
use crate::well::FreeFrame;

/// What has ended but is not announced.
#[derive(Default)]
struct LandedPages<'a> {
    /// Failed loads keep their pages marked until all others are published.
    failed: Vec<Load<'a>>,
    /// Pages that are resident now.
    pages: Vec<PageNo>,
}

/// Publishes what has arrived and wakes the tasks that wait for it. False if nothing has arrived.
pub(super) fn land(reader: &PageReader, in_flight: &InFlight) -> bool {
    let landed = in_flight.flights().land();
    if landed.is_empty() {
        return false;
    }
    let (mut wakers, mut ended) = (Vec::new(), LandedPages::default());
    for flight in landed {
        let ReadContext { target, sender } = flight.context;
        let outcome = match target {
            ReadTarget::Pages(pages) => {
                end_pages(reader, pages, flight.frames, flight.is_whole, &mut ended)
            }
            ReadTarget::Record(record) => {
                end_record(reader, &record, flight.frames, flight.is_whole);
                Ok(())
            }
        };
        wakers.extend(sender.end(outcome));
    }
    // Not before all is published: a task that is woken may look at any of it.
    drop(ended.failed);
    for page in ended.pages {
        reader.table().waiters().take(page, &mut wakers);
    }
    in_flight.take_waiting_for_room(&mut wakers);
    wakers.into_iter().for_each(wake);
    true
}

/// Checks and publishes the pages of a read. Returns the first error of a page that matters to the task.
fn end_pages<'a>(
    reader: &'a PageReader,
    pages: PagesTarget,
    frames: Vec<FreeFrame>,
    is_whole: bool,
    ended: &mut LandedPages<'a>,
) -> Result<()> {
    let mut loads: Vec<_> = (pages.first.0..)
        .zip(frames)
        .map(|(page, frame)| Load::resume(reader.table(), PageNo(page), pages.priority, frame))
        .collect();
    let read = match is_whole {
        true => vec![Ok(()); loads.len()],
        false => read_again(reader, &mut loads),
    };
    debug_assert_eq!(read.len(), loads.len());
    let arrived = read.iter().filter(|outcome| outcome.is_ok()).count();
    reader.counters.pages_read.add(arrived as u64);
    let mut outcome = Ok(());
    for (load, read) in loads.into_iter().zip(read) {
        let checked = match (read, &pages.check, load.bytes()) {
            (Err(error), ..) => Err(error),
            (Ok(()), Some(check), Some(bytes)) => check(bytes),
            (Ok(()), ..) => Ok(()),
        };
        match checked {
            Ok(()) => {
                ended.pages.push(load.page());
                // If the load was cancelled, the page stays absent; the next reader loads it anew.
                drop(load.end());
            }
            Err(error) => {
                // A page that was discarded meanwhile may have arrived with any bytes.
                if load.is_wanted() && pages.needed.contains(&load.page().0) {
                    outcome = outcome.and(Err(error));
                }
                ended.failed.push(load);
            }
        }
    }
    outcome
}

/// Reads consecutive pages in a call, after a read that failed or came to an early end: this tells which page has which
/// error. It waits for the device in the poll of whichever task is here, which happens seldom enough.
#[cold]
fn read_again(reader: &PageReader, loads: &mut [Load<'_>]) -> Vec<Result<()>> {
    let device = &reader.device;
    let first = loads.first().map(Load::page).unwrap_or_default();
    let buffers = loads.iter_mut().filter_map(Load::bytes_mut);
    let buffers = buffers.map(|bytes| bytes.as_mut_slice()).collect();
    let mut reads = [Read::vectored(first.offset_bytes(), buffers)];
    if device.read(&mut reads).is_ok() {
        return vec![Ok(()); loads.len()];
    }
    let read_alone = |load: &mut Load<'_>| {
        let offset_bytes = load.page().offset_bytes();
        let bytes = load.bytes_mut();
        bytes.map_or(Ok(()), |bytes| device.read_at(offset_bytes, bytes))
    };
    loads.iter_mut().map(read_alone).collect()
}

/// Keeps a record that has arrived in `frames`, and frees those. The task looks for it in the record cache, and reads it
/// anew if it is not there; in the end it waits for the device, which reports the error.
fn end_record(reader: &PageReader, record: &RecordTarget, frames: Vec<FreeFrame>, is_whole: bool) {
    let (within, len_bytes) = (record.within, record.len_bytes);
    let space = reader.table().space();
    let keep = |bytes: &[u8]| {
        let supply = &reader.frames;
        supply.keep_record(record.offset_bytes, record.generation, bytes);
    };
    if is_whole {
        reader.counters.pages_read.add(frames.len() as u64);
        match &frames[..] {
            [only] => keep(&space.bytes(only)[within..within + len_bytes]),
            several => {
                let all = several.iter().flat_map(|frame| space.bytes(frame));
                let bytes: Vec<u8> = all.skip(within).take(len_bytes).copied().collect();
                debug_assert_eq!(bytes.len(), len_bytes);
                keep(&bytes);
            }
        }
    }
    reader.table().pool().put_all(frames);
}
