//! Units that span segments: long values and long batches.
//!
//! Invariants:
//! - the roll lock is held for the whole unit, and a segment is shown to other writers only after this one has reserved
//!   its part of it, so no other record comes between;
//! - all segments are reserved before the first byte is written: a full volume fails the unit cleanly;
//! - a unit of any length needs no more memory than the buffers: they are filled, written out and used again.

use std::sync::Arc;

use kreon_base::{Lsn, Result};
use kreon_device::{Reservation, Reserve};
use kreon_format::{LOG_PAYLOAD_BYTES, fragment_bytes};

use super::buffered::Buffered;
use super::cut::{cut, segments_needed};
use super::framing::{Framing, Part};
use super::record::{NewRecord, Place, purpose_of};
use super::roll::Roller;

/// Appends `unit`, which takes `bytes` if no record of it is cut; see [`Log::append`](super::Log::append). `None`: it fits
/// into the current segment now, because of another thread or because that got more room.
pub(super) fn append(
    roller: &Roller,
    framing: &Framing,
    unit: &[NewRecord<'_>],
    bytes: usize,
    placed: &mut impl FnMut(Place),
) -> Result<Option<Lsn>> {
    let purpose = purpose_of(unit);
    let segments = segments_needed(unit.iter().map(NewRecord::payload_bytes));
    let rolling = roller.lock()?;
    let mut buffered = rolling.current();
    // From here on the room only shrinks: the unit ends in a segment that is opened below.
    if bytes <= buffered.rest_bytes() as usize {
        return Ok(None);
    }
    if rolling.extend(&buffered, bytes, purpose)? {
        return Ok(None);
    }
    rolling.supply(segments + 1, purpose)?;
    rolling.back_all(segments, purpose)?;
    let mut rest = Rest {
        unit,
        from: 0,
        start: None,
        end: Lsn(0),
    };
    if let Reserve::Reserved(room) = buffered.buffer().reserve_rest() {
        fill(framing, &buffered, room, &mut rest, placed);
    }
    while !rest.unit.is_empty() {
        // From here on only a failed write can end the unit before its time; it poisons the log,
        // and replay drops the incomplete unit.
        let mut opened = rolling.open_segment()?;
        opened.set_goes_on(rest.start);
        buffered = Arc::new(opened);
        let room = buffered.buffer().reserve(rest.bytes_in_next_segment());
        rolling.publish(Arc::clone(&buffered));
        if let Reserve::Reserved(room) = room {
            rest.end = buffered.lsn(room.end());
            fill(framing, &buffered, room, &mut rest, placed);
        }
    }
    Ok(Some(rest.end))
}

/// Fills `room`, the end of a segment or of the unit, with the next records of `rest`.
fn fill(
    framing: &Framing,
    buffered: &Buffered,
    mut room: Reservation<'_>,
    rest: &mut Rest<'_>,
    placed: &mut impl FnMut(Place),
) {
    while let Some(record) = rest.unit.first() {
        let Some(payload_bytes) = cut(record.payload_bytes() - rest.from, room.len()) else {
            break;
        };
        let len_bytes = fragment_bytes(payload_bytes);
        let is_full = len_bytes == room.len();
        let (mine, behind) = if is_full {
            (room, None)
        } else {
            let (mine, behind) = room.split_at(len_bytes as u32);
            (mine, Some(behind))
        };
        let ends_unit = rest.unit.len() == 1;
        let part = Part {
            record,
            from: rest.from,
            payload_bytes,
            ends_unit,
        };
        let place = framing.put(buffered, mine, &part);
        rest.start.get_or_insert(place.lsn);
        if rest.from == 0 {
            placed(place);
        }
        rest.advance(payload_bytes);
        match behind {
            Some(behind) => room = behind,
            None => return,
        }
    }
    framing.pad(buffered, room);
}

/// The rest of a unit.
struct Rest<'a> {
    unit: &'a [NewRecord<'a>],
    /// Bytes of the first record that are placed already.
    from: usize,
    /// Where its first fragment stands.
    start: Option<Lsn>,
    /// Behind the last byte that is placed.
    end: Lsn,
}

impl Rest<'_> {
    /// Bytes that it takes in the next segment: the whole segment, if it does not fit.
    fn bytes_in_next_segment(&self) -> u32 {
        let mut from = self.from;
        let mut sum = 0;
        for record in self.unit {
            sum += fragment_bytes(record.payload_bytes() - std::mem::take(&mut from));
            if sum >= LOG_PAYLOAD_BYTES as usize {
                return LOG_PAYLOAD_BYTES;
            }
        }
        sum as u32
    }

    fn advance(&mut self, payload_bytes: usize) {
        self.from += payload_bytes;
        if let Some((first, behind)) = self.unit.split_first()
            && self.from == first.payload_bytes()
        {
            (self.unit, self.from) = (behind, 0);
        }
    }
}
