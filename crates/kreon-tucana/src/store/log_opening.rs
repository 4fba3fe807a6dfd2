//! How a segment of the volume becomes one of a log.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, LogId, Lsn, Result, SEGMENT_PAGES, SegmentId};
use kreon_format::LOG_SEQUENCE_MAX;
use kreon_volume::{Allocator, L0sReserve, Purpose, Usage};

use super::home::{Home, LOG, MOVED};
use super::log_buffer::{LogBuffer, SEGMENT, SegmentPlace};

/// Takes a segment of the volume for a log, to be opened later.
fn reserve(home: &Home, log: LogId, sequence: u64, purpose: Purpose) -> Result<SegmentId> {
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

/// Gives a segment that a log has never written to a log, as its number `sequence`, to be opened later.
///
/// # Errors
/// `Corruption` if the segment holds something.
pub(super) fn turn_over(
    allocator: &mut Allocator,
    segment: SegmentId,
    (log, sequence): (LogId, u64),
) -> Result<()> {
    if allocator.usage(segment) != Some(Usage::Free) {
        allocator.give_up_log_segment(segment)?;
    }
    allocator.claim_log_segment(segment, log, sequence)?;
    // Not every segment that was reserved had its blocks.
    allocator.doubt(segment)
}

/// Opens a segment of the log that is in reserve, and reserves the one behind it.
pub(super) fn open(
    home: &Home,
    (segment, sequence): (SegmentId, u64),
    durable: Lsn,
    purpose: Purpose,
) -> Result<Arc<LogBuffer>> {
    let next = reserve(home, LOG, sequence + 1, purpose)?;
    let opened = open_before(home, (segment, sequence), next, (durable, purpose));
    if opened.is_err() {
        home.allocator.lock().give_up_log_segment(next)?;
    }
    opened
}

/// Opens a segment of the log that is in reserve, before another that is.
fn open_before(
    home: &Home,
    (segment, sequence): (SegmentId, u64),
    next: SegmentId,
    (durable, purpose): (Lsn, Purpose),
) -> Result<Arc<LogBuffer>> {
    let place = SegmentPlace {
        log: LOG,
        segment,
        sequence,
        next: Some(next),
    };
    back(home, place, durable, purpose)
}

/// Opens the first segment of an opening, which is number `sequence`. It and the next one are segments that the log before named and
/// never wrote, then those on standby, then others. What stands in them is not overwritten before the opening has committed.
///
/// # Errors
/// `OutOfSpace` if they are not to be had.
pub(super) fn open_first(
    home: &Home,
    unwritten: &[SegmentId],
    sequence: u64,
) -> Result<Arc<LogBuffer>> {
    let mut unwritten = unwritten.iter().copied();
    let mut take = |sequence| {
        let known = unwritten.next().or_else(|| home.standby.take_for_opening());
        let Some(segment) = known else {
            return reserve(home, LOG, sequence, Purpose::Maintenance);
        };
        turn_over(&mut home.allocator.lock(), segment, (LOG, sequence))?;
        Ok(segment)
    };
    let (first, next) = (take(sequence)?, take(sequence + 1)?);
    let how = (Lsn(0), Purpose::Maintenance);
    open_before(home, (first, sequence), next, how)
}

/// Opens a segment for moved records: of those on standby where the volume has none.
///
/// # Errors
/// `OutOfSpace` without both.
pub(super) fn open_moved(home: &Home, sequence: u64) -> Result<Arc<LogBuffer>> {
    // The commit that follows frees more than the copies take.
    let purpose = Purpose::Maintenance;
    let segment = match reserve(home, MOVED, sequence, purpose) {
        Err(error) if error.kind() == ErrorKind::OutOfSpace => {
            let segment = home.standby.take_for_collection().ok_or(error)?;
            turn_over(&mut home.allocator.lock(), segment, (MOVED, sequence))?;
            segment
        }
        reserved => reserved?,
    };
    let place = SegmentPlace {
        log: MOVED,
        segment,
        sequence,
        next: None,
    };
    back(home, place, Lsn(0), purpose)
}

/// Backs a segment and makes its buffer.
fn back(
    home: &Home,
    place: SegmentPlace,
    durable: Lsn,
    purpose: Purpose,
) -> Result<Arc<LogBuffer>> {
    let was_written = {
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
        allocator.was_written(place.segment)
    };
    // What stood there before must not be found in frames.
    let first = place.segment.first_page();
    home.mapping.discard(first, SEGMENT_PAGES);
    let identity = (home.store, home.incarnation);
    Ok(Arc::new(LogBuffer::new(
        identity,
        place,
        (durable, was_written),
    )?))
}
