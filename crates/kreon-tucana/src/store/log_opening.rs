//! How a segment of the volume becomes one of a log.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, LogId, Lsn, Result, SEGMENT_PAGES, SegmentId};
use kreon_format::LOG_SEQUENCE_MAX;
use kreon_volume::{L0sReserve, Purpose};

use super::home::{Home, LOG, MOVED};
use super::log_buffer::{LogBuffer, SEGMENT, SegmentPlace};

/// Takes a segment of the volume for a log, to be opened later.
pub(super) fn reserve(
    home: &Home,
    log: LogId,
    sequence: u64,
    purpose: Purpose,
) -> Result<SegmentId> {
    let most = match log {
        MOVED => LOG_SEQUENCE_MAX / 4 * 3,
        _ => LOG_SEQUENCE_MAX / 4,
    };
    if sequence > most {
        return Err(Error::new(
            ErrorKind::OutOfSpace,
            "all numbers of log segments were used",
        ));
    }
    let mut allocator = home.allocator.lock();
    allocator.allocate_log_segment(log, sequence, purpose)
}

/// Opens a segment of the log that is in reserve, and reserves the one behind it.
pub(super) fn open(
    home: &Home,
    (segment, sequence): (SegmentId, u64),
    durable: Lsn,
    purpose: Purpose,
) -> Result<Arc<LogBuffer>> {
    let next = reserve(home, LOG, sequence + 1, purpose)?;
    let place = SegmentPlace {
        log: LOG,
        segment,
        sequence,
        next: Some(next),
    };
    let opened = back(home, place, durable, purpose);
    if opened.is_err() {
        home.allocator.lock().give_up_log_segment(next)?;
    }
    opened
}

/// Backs a segment and makes its buffer.
pub(super) fn back(
    home: &Home,
    place: SegmentPlace,
    durable: Lsn,
    purpose: Purpose,
) -> Result<Arc<LogBuffer>> {
    {
        let mut allocator = home.allocator.lock();
        let backed = allocator.back_log(place.segment, (0, SEGMENT), purpose);
        // What is in the log is in the tree: nothing of it has to be spilled.
        allocator.set_reserve_of_l0s(L0sReserve::default());
        if let Err(error) = backed {
            if place.log == MOVED {
                allocator.give_up_log_segment(place.segment)?;
            }
            return Err(error);
        }
    }
    // What stood there before must not be found in frames.
    let first = place.segment.first_page();
    home.mapping.discard(first, SEGMENT_PAGES);
    let identity = (home.store, home.incarnation);
    Ok(Arc::new(LogBuffer::new(identity, place, durable)?))
}
