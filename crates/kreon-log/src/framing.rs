//! Filling reservations: a fragment of a record, or a pad.
//!
//! Invariant: a fragment or pad fills its reservation, and its checksum covers store, sequence, offset and bytes.

use std::sync::Arc;

use kreon_base::planted;
use kreon_device::Reservation;
use kreon_format::{
    FRAGMENT_HEADER_BYTES, FragmentHeader, FragmentSeal, StoreId, encode_attributes, encode_pad,
    fragment_bytes,
};

use super::buffered::Buffered;
use super::home::LogHome;
use super::mirror::Elsewhere;
use super::poison::Poison;
use super::positions::Positions;
use super::record::{NewRecord, Place};

/// Fills reservations. Each part that does has a copy of its own: one step less on the way of an append.
#[derive(Clone)]
pub(super) struct Framing {
    store: StoreId,
    /// The bits of this run's incarnation that fragments carry.
    mark: u16,
    positions: Arc<Positions>,
    poison: Arc<Poison>,
    /// Told of all that is committed.
    elsewhere: Elsewhere,
}

impl Framing {
    pub fn new(home: &LogHome, positions: Arc<Positions>, poison: Arc<Poison>) -> Self {
        Self {
            store: home.store,
            mark: home.mark(),
            positions,
            poison,
            elsewhere: home.elsewhere(),
        }
    }

    /// Writes one fragment into `room`, which has its length, and commits it.
    pub fn put(&self, buffered: &Buffered, mut room: Reservation<'_>, part: &Part<'_>) -> Place {
        debug_assert_eq!(room.len(), fragment_bytes(part.payload_bytes));
        let within = room.at();
        let place = Place {
            lsn: buffered.lsn(within),
            offset: buffered.offset(within),
        };
        let seal = self.seal(buffered.sequence());
        let header = part.header(self.mark);
        let (front, payload) = room.split_at_mut(FRAGMENT_HEADER_BYTES);
        part.copy_into(payload);
        let filled = payload.get(..part.payload_bytes).unwrap_or_default();
        front.copy_from_slice(&header.encode(&seal, place.offset, &[filled]));
        room.commit();
        self.elsewhere.grown();
        place
    }

    /// Fills `room` with a pad. It tells how far the log is durable.
    pub fn pad(&self, buffered: &Buffered, mut room: Reservation<'_>) {
        let (seal, offset) = (self.seal(buffered.sequence()), buffered.offset(room.at()));
        let durable = self.positions.claim();
        if let Err(error) = encode_pad(&mut room, &seal, offset, self.mark, durable) {
            // Cannot be: every reservation is a multiple of 8 bytes. The hole would stop the log.
            self.poison.set(&error);
        }
        room.commit();
        self.elsewhere.grown();
    }

    #[inline]
    fn seal(&self, sequence: u64) -> FragmentSeal {
        FragmentSeal {
            store: self.store,
            sequence,
        }
    }
}

/// The part of a record that goes into one fragment.
pub(super) struct Part<'a> {
    pub record: &'a NewRecord<'a>,
    /// Bytes of key, attributes and value in fragments before this one.
    pub from: usize,
    /// Bytes of them in this one.
    pub payload_bytes: usize,
    /// The record is the last of its unit.
    pub ends_unit: bool,
}

impl Part<'_> {
    fn header(&self, incarnation: u16) -> FragmentHeader {
        let record = self.record;
        let ends_record = self.from + self.payload_bytes == record.payload_bytes();
        let ends_unit = self.ends_unit;
        planted!(BatchCutInTwo => let ends_unit = true);
        FragmentHeader {
            length_bytes: self.payload_bytes as u32,
            region: record.region,
            key_bytes: record.key.len() as u32,
            kind: record.kind,
            has_attributes: !record.attributes.is_none(),
            incarnation,
            starts_record: self.from == 0,
            ends_record,
            ends_unit: ends_unit && ends_record,
        }
    }

    /// Copies the part to the start of `room`, and zeroes the rest of it.
    fn copy_into(&self, room: &mut [u8]) {
        if !self.record.attributes.is_none() {
            return self.copy_with_attributes_into(room);
        }
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

    /// The same with attributes between key and value, each of which may be cut.
    fn copy_with_attributes_into(&self, room: &mut [u8]) {
        let record = self.record;
        let attributes = encode_attributes(record.attributes);
        let (mut passed, mut left, mut room) = (self.from, self.payload_bytes, room);
        for bytes in [record.key, &attributes, record.value] {
            let part = bytes.get(passed..).unwrap_or_default();
            passed = passed.saturating_sub(bytes.len());
            let part = part.get(..left).unwrap_or(part);
            left -= part.len();
            let (mine, behind) = room.split_at_mut(part.len());
            mine.copy_from_slice(part);
            room = behind;
        }
        room.fill(0);
    }
}
