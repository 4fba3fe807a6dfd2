//! Putting reads of pages, or of a record, in flight for a task.

use std::ops::Range;
use std::task::Waker;

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result, wake};

use super::drive;
use super::in_flight::{InFlight, PagesTarget, ReadContext, ReadTarget, RecordTarget};
use super::request::{Begun, PagesWanted};
use super::ticket::Ticket;
use crate::read::{Begin, FinalBytes, Load, PageReader, begin_load};
use crate::record_cache::RecordCache;
use crate::table::PageTable;
use crate::well::PageState;

/// Most reads that a thread that drives them itself gathers before it hands them to the device.
const GATHERED_READS_MAX: usize = 16;

/// Begins to load those of the pages that are absent. Errors of pages that are not `needed` do not reach the task.
/// `in_flight` is `None` where there is no queue for it.
///
/// # Errors
/// `InvalidArgument` if the volume cannot have the pages.
pub(super) fn begin_pages(
    reader: &PageReader,
    in_flight: Option<&InFlight>,
    wanted: &PagesWanted,
    needed: Range<u64>,
    waker: &Waker,
) -> Result<Begun> {
    let table = reader.table();
    wanted.pages().try_for_each(|page| table.check_page(page))?;
    let Some(in_flight) = in_flight else {
        return Ok(Begun::Refused);
    };
    let (mut absent, mut elsewhere) = (Vec::new(), None);
    for page in wanted.pages() {
        match table.space().state(page) {
            PageState::Absent => absent.push(page),
            PageState::Loading => elsewhere = Some(page),
            PageState::Resident { .. } => {}
        }
    }
    let Some(first) = absent.first() else {
        return Ok(elsewhere.map_or(Begun::Ready, |page| wait_for(table, page, waker)));
    };
    if in_flight.is_full() && in_flight.wait_for_room(waker) {
        return Ok(Begun::Pending(None));
    }
    reader.counters.misses.add(wanted.priority, 1);
    let Some(loads) = begin_loads(reader, &absent, wanted.priority) else {
        return Ok(Begun::Refused);
    };
    if loads.is_empty() {
        // Others began all the loads meanwhile.
        return Ok(wait_for(table, *first, waker));
    }
    let ticket = Ticket::new(waker);
    let is_begun = begin_reads(in_flight, table, (wanted, &needed), loads, &ticket);
    Ok(finish(in_flight, is_begun, ticket, waker))
}

/// Begins to read a record that is to be kept alone: into free frames past the page table. `in_flight` is `None` where
/// there is no queue for it.
pub(super) fn begin_record(
    reader: &PageReader,
    in_flight: Option<&InFlight>,
    records: &RecordCache,
    bytes: &FinalBytes,
    priority: Priority,
    waker: &Waker,
) -> Begun {
    let Some(in_flight) = in_flight else {
        return Begun::Refused;
    };
    if in_flight.is_full() && in_flight.wait_for_room(waker) {
        return Begun::Pending(None);
    }
    let block_bytes = u64::from(reader.device.block_bytes());
    let within = (bytes.offset_bytes % block_bytes) as usize;
    let span = (within + bytes.len_bytes).next_multiple_of(block_bytes as usize);
    let generation = records.generation(bytes.offset_bytes);
    let wanted = span.div_ceil(PAGE_BYTES);
    let frames = reader.frames.take_many(wanted);
    if frames.len() < wanted {
        reader.table().pool().put_all(frames);
        return Begun::Refused;
    }
    reader.counters.misses.add(priority, 1);
    let ticket = Ticket::new(waker);
    let context = ReadContext {
        target: ReadTarget::Record(RecordTarget {
            offset_bytes: bytes.offset_bytes,
            len_bytes: bytes.len_bytes,
            within,
            generation,
        }),
        sender: ticket.sender(),
    };
    let start = bytes.offset_bytes - within as u64;
    let flights = in_flight.flights();
    let begun = flights.begin(reader.table().space(), start, span, frames, context);
    let is_begun = begun.is_ok();
    if let Err((frames, context)) = begun {
        reader.table().pool().put_all(frames);
        drop(context.sender.end(Ok(())));
    }
    finish(in_flight, is_begun, ticket, waker)
}

/// Closes a ticket after all its reads were begun. `is_begun` is whether there are any.
fn finish(in_flight: &InFlight, is_begun: bool, ticket: Ticket, waker: &Waker) -> Begun {
    let ended = ticket.close();
    if !is_begun {
        return match in_flight.wait_for_room(waker) {
            true => Begun::Pending(None),
            false => Begun::Refused,
        };
    }
    in_flight.submit(drive::is_driving(in_flight), GATHERED_READS_MAX);
    // Reads that ended before the ticket was closed have not called the waker.
    ended.into_iter().for_each(wake);
    Begun::Pending(Some(ticket))
}

/// Waits for the load of another.
fn wait_for(table: &PageTable, page: PageNo, waker: &Waker) -> Begun {
    match table.wait_for_load(page, waker) {
        true => Begun::Pending(None),
        false => Begun::Ready,
    }
}

/// Marks the pages as being loaded, except those that others load. `None` if there are not enough frames, or no room in
/// the page array.
fn begin_loads<'a>(
    reader: &'a PageReader,
    pages: &[PageNo],
    priority: Priority,
) -> Option<Vec<Load<'a>>> {
    let mut frames = reader.frames.take_many(pages.len());
    let mut loads = Vec::with_capacity(pages.len());
    let mut is_refused = frames.len() < pages.len();
    for page in pages {
        if is_refused {
            break;
        }
        let frame = frames.pop()?;
        match begin_load(&reader.frames, *page, priority, frame) {
            Begin::Begun(load) => loads.push(load),
            Begin::NotAbsent(frame) => frames.push(frame),
            Begin::NoRoom(frame) => {
                frames.push(frame);
                is_refused = true;
            }
        }
    }
    reader.table().pool().put_all(frames);
    (!is_refused).then_some(loads)
}

/// Puts the reads for sorted loads in flight, neighbours together. Returns whether at least one is.
fn begin_reads(
    in_flight: &InFlight,
    table: &PageTable,
    (wanted, needed): (&PagesWanted, &Range<u64>),
    mut loads: Vec<Load<'_>>,
    ticket: &Ticket,
) -> bool {
    let mut is_begun = false;
    while let Some(first) = loads.first().map(Load::page) {
        let run = loads
            .iter()
            .zip(first.0..)
            .take_while(|(load, page)| load.page().0 == *page)
            .count();
        let frames = loads.drain(..run).filter_map(Load::suspend).collect();
        let context = ReadContext {
            target: ReadTarget::Pages(PagesTarget {
                first,
                priority: wanted.priority,
                check: wanted.check.clone(),
                needed: needed.clone(),
            }),
            sender: ticket.sender(),
        };
        let (space, len_bytes) = (table.space(), run * PAGE_BYTES);
        let flights = in_flight.flights();
        match flights.begin(space, first.offset_bytes(), len_bytes, frames, context) {
            Ok(()) => is_begun = true,
            Err((frames, context)) => {
                for (page, frame) in (first.0..).map(PageNo).zip(frames) {
                    drop(Load::resume(table, page, wanted.priority, frame));
                }
                // The task looks again when its other reads have ended.
                drop(context.sender.end(Ok(())));
            }
        }
    }
    is_begun
}
