//! Putting the read of a record in flight for a task: into free frames past the page table, from which the record is kept
//! alone.

use std::task::Waker;

use kreon_base::{PAGE_BYTES, Priority};

use super::begin::finish;
use super::in_flight::{InFlight, ReadContext, ReadTarget};
use super::request::Begun;
use super::ticket::Ticket;
use crate::read::{FinalBytes, PageReader};
use crate::record_cache::RecordCache;

/// Begins to read a record that is to be kept alone. `in_flight` is `None` where there is no queue for it.
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
    let block_bytes = u64::from(reader.device().block_bytes());
    let within = (bytes.offset_bytes % block_bytes) as usize;
    let span = (within + bytes.len_bytes).next_multiple_of(block_bytes as usize);
    let generation = records.generation(bytes.offset_bytes);
    let wanted = span.div_ceil(PAGE_BYTES);
    let frames = reader.frames().take_many(wanted);
    if frames.len() < wanted {
        reader.table().pool().put_all(frames);
        return Begun::Refused;
    }
    reader.counters().misses.add(priority, 1);
    let ticket = Ticket::new(waker);
    let context = ReadContext {
        target: ReadTarget::Record {
            offset_bytes: bytes.offset_bytes,
            len_bytes: bytes.len_bytes,
            within,
            generation,
        },
        sender: ticket.sender(),
    };
    let start = bytes.offset_bytes - within as u64;
    let begun = in_flight.begin(reader.table(), start, span, frames, context);
    let is_begun = begun.is_ok();
    if let Err((frames, context)) = begun {
        reader.table().pool().put_all(frames);
        drop(context.sender.end(Ok(())));
    }
    finish(in_flight, is_begun, ticket, waker)
}
