//! Appending: a reservation without a lock, one copy, checksums over the copy, commit. The paper
//! measured its log lock at half of the insert time (`Kreon 4.2.1`).

use kreon_base::{Bug, Lsn, Result};
use kreon_device::{Reservation, Reserve};
use kreon_format::{
    FRAGMENT_HEADER_BYTES, FragmentHeader, FragmentSeal, LOG_PAYLOAD_BYTES, fragment_bytes,
    incarnation_mark,
};

use super::background::STREAM_BYTES;
use super::buffers::Buffered;
use super::open::Log;
use super::record::{NewRecord, Place, purpose_of, unit_bytes};

/// Units up to this length stand whole in one segment, so that most reads find a record in one piece.
/// Longer ones go on in the next segment: padding for them would waste space.
pub(crate) const WHOLE_UNIT_BYTES_MAX: usize = 64 << 10;

impl Log {
    /// Appends `unit`: after a crash either all of its records are replayed or none. Tells the place of
    /// each in order, and returns the LSN behind the last: `sync` up to there makes the unit durable.
    /// The records are readable at once. An empty unit does nothing.
    ///
    /// Takes no lock unless a segment is full. Waits if the device falls behind so far that the buffers are nearly
    /// full.
    ///
    /// # Errors
    /// `InvalidArgument` for a key or value that is too long. `OutOfSpace` if the volume has no room;
    /// nothing was written, and later calls try again. `Poisoned` after a failed write or flush.
    pub fn append(&self, unit: &[NewRecord<'_>], mut placed: impl FnMut(Place)) -> Result<Lsn> {
        let bytes = unit_bytes(unit)?;
        self.poison.check()?;
        if bytes == 0 {
            return Ok(self.tail());
        }
        loop {
            if bytes <= LOG_PAYLOAD_BYTES as usize {
                let current = self.current.load();
                if let Reserve::Reserved(room) = current.buffer.reserve(bytes as u32) {
                    let end = room.end();
                    self.fill(&current, room, unit, &mut placed);
                    let tail = current.lsn(end);
                    if (end - bytes as u32) / STREAM_BYTES != end / STREAM_BYTES {
                        self.keep_pace(tail);
                    }
                    return Ok(tail);
                }
            }
            if bytes <= WHOLE_UNIT_BYTES_MAX {
                self.roll_for(bytes, purpose_of(unit))?;
            } else if let Some(end) = self.append_spanning(unit, bytes, &mut placed)? {
                self.keep_pace(end);
                return Ok(end);
            }
        }
    }

    /// Appends one record; see [`Self::append`].
    pub fn append_one(&self, record: &NewRecord<'_>) -> Result<(Place, Lsn)> {
        let mut place = Place {
            lsn: Lsn(0),
            offset: Default::default(),
        };
        let end = self.append(std::slice::from_ref(record), |found| place = found)?;
        Ok((place, end))
    }

    /// Fills `room` with `unit`, which fits exactly.
    fn fill(
        &self,
        buffered: &Buffered,
        room: Reservation<'_>,
        unit: &[NewRecord<'_>],
        placed: &mut impl FnMut(Place),
    ) {
        let mut rest = Some(room);
        for (index, record) in unit.iter().enumerate() {
            let Some(room) = rest.take() else { return };
            let is_last = index + 1 == unit.len();
            let payload_bytes = record.payload_bytes();
            let mine = if is_last {
                room
            } else {
                let (mine, behind) = room.split_at(fragment_bytes(payload_bytes) as u32);
                rest = Some(behind);
                mine
            };
            let part = Part {
                record,
                from: 0,
                payload_bytes,
                ends_unit: is_last,
            };
            placed(self.put(buffered, mine, &part));
        }
    }

    /// Writes one fragment into `room`, which has its length, and commits it.
    pub(super) fn put(
        &self,
        buffered: &Buffered,
        mut room: Reservation<'_>,
        part: &Part<'_>,
    ) -> Place {
        let within = room.at();
        let place = Place {
            lsn: buffered.lsn(within),
            offset: buffered.offset(within),
        };
        let seal = self.seal(buffered.sequence);
        let header = part.header(self.mark());
        let (front, payload) = room.split_at_mut(FRAGMENT_HEADER_BYTES);
        part.copy_into(payload);
        let filled = payload.get(..part.payload_bytes).unwrap_or_default();
        front.copy_from_slice(&header.encode(&seal, place.offset, &[filled]));
        room.commit();
        place
    }

    /// What the checksums of fragments in the segment `sequence` are seeded with.
    pub(super) fn seal(&self, sequence: u64) -> FragmentSeal {
        FragmentSeal {
            store: self.home.store,
            sequence,
        }
    }

    /// The bits of this run's incarnation that fragments carry.
    pub(super) fn mark(&self) -> u16 {
        incarnation_mark(self.home.incarnation)
    }
}

/// The part of a record that goes into one fragment.
pub(super) struct Part<'a> {
    pub record: &'a NewRecord<'a>,
    /// Bytes of key ++ value that stand in fragments before this one.
    pub from: usize,
    /// Bytes of key ++ value that this one takes.
    pub payload_bytes: usize,
    /// The record is the last of its unit.
    pub ends_unit: bool,
}

impl Part<'_> {
    fn header(&self, incarnation: u16) -> FragmentHeader {
        let record = self.record;
        let ends_record = self.from + self.payload_bytes == record.payload_bytes();
        FragmentHeader {
            length_bytes: self.payload_bytes as u32,
            region: record.region,
            key_bytes: record.key.len() as u32,
            kind: record.kind,
            incarnation,
            starts_record: self.from == 0,
            ends_record,
            ends_unit: (self.ends_unit || Bug::BatchCutInTwo.is_planted()) && ends_record,
        }
    }

    /// Copies the part to the start of `room`, and zeroes the rest of it.
    fn copy_into(&self, room: &mut [u8]) {
        let key = self.record.key.get(self.from..).unwrap_or_default();
        let key = key.get(..self.payload_bytes).unwrap_or(key);
        let value_from = self.from.saturating_sub(self.record.key.len());
        let value = self.record.value.get(value_from..).unwrap_or_default();
        let value = value.get(..self.payload_bytes - key.len()).unwrap_or(value);
        let (key_room, room) = room.split_at_mut(key.len());
        key_room.copy_from_slice(key);
        let (value_room, fill) = room.split_at_mut(value.len());
        value_room.copy_from_slice(value);
        fill.fill(0);
    }
}
