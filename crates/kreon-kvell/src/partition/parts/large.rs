//! What requests do to values that are longer than a slot.

use kreon_base::{Error, ErrorKind, Result, VALUE_BYTES_MAX};

use super::{Changed, Got, NewItem, Parts, nowhere, overwrites};
use crate::format::{ItemKind, LargeValue, PART_PREFIX_BYTES, Timestamp, encode, item_bytes};
use crate::partition::after::After;
use crate::partition::large::{LargeGet, LargePut};
use crate::partition::queue::Op;
use crate::partition::request::OpNo;
use crate::space::Place;

impl Parts {
    /// Bytes that a get of the item at `place` reads: its slot, and the parts of a large value.
    pub fn read_bytes(&self, place: &Place) -> usize {
        let parts = self.large.parts_of(place.location);
        place.slot.bytes as usize + parts * self.slot_bytes_max
    }

    /// Has `op` read the value of the large item at `place`.
    pub(super) fn begin_get(
        &mut self,
        op: &mut Op,
        (place, timestamp): (Place, Timestamp),
        value: LargeValue,
    ) -> Result<()> {
        let head = (place, timestamp, op.request.key_hash);
        let get = LargeGet::new(head, value, self.room.classes().slot_bytes_max())?;
        self.large.begin_read(timestamp);
        op.get = Some(Box::new(get));
        Ok(())
    }

    /// The large value that `op` reads, as far as its parts are in memory.
    pub fn value_of_parts(&mut self, no: OpNo, op: &mut Op) -> Result<Got> {
        let Some(get) = &mut op.get else {
            return Ok(Got::Parts);
        };
        let (cells, scratch) = (&mut self.cells, &mut self.scratch);
        let value = get.go_on(no, self.seal, &self.room, cells, scratch)?;
        Ok(value.map_or(Got::Parts, Got::Value))
    }

    /// Gives the key of `op` a value that is longer than a slot: first the parts, and when their writes have ended, the head
    /// as any item.
    pub(super) fn put_large(
        &mut self,
        no: OpNo,
        op: &mut Op,
        value: &[u8],
        found: Option<Place>,
        reply: Option<After>,
    ) -> Result<Changed> {
        let mut put = match op.put.take() {
            Some(put) => put,
            None => self.begin_large(op.request.key_hash, value)?,
        };
        let outcome = self.put_parts(no, &mut put, value);
        if !matches!(outcome, Ok(None)) {
            op.put = Some(put);
            return outcome.map(|changed| changed.unwrap_or(Changed::Parts));
        }
        let timestamp = put.timestamp;
        let head = put.head();
        op.put = Some(put);
        if found.is_none() {
            self.reserve_memory(self.index.growth_bytes_max())?;
        }
        let len_bytes = item_bytes(op.request.key.len(), head.len());
        let class = self.room.classes().class_of(len_bytes);
        let item = NewItem {
            class: class.ok_or_else(|| too_long(value.len()))?,
            kind: ItemKind::Large,
            value: &head,
            timestamp: Some(timestamp),
        };
        self.put_item(op, &item, found, reply)
    }

    fn begin_large(&mut self, key_hash: u128, value: &[u8]) -> Result<Box<LargePut>> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(too_long(value.len()));
        }
        let parts = LargePut::parts_of(value.len(), self.slot_bytes_max);
        let growth_bytes = self.large.growth_bytes_max(parts);
        self.reserve_memory(self.index.growth_bytes_max() + growth_bytes)?;
        let timestamp = self.next_timestamp()?;
        self.large.begin(timestamp);
        let put = LargePut::new(key_hash, timestamp, value.len(), self.slot_bytes_max);
        Ok(Box::new(put))
    }

    /// Writes more parts of a value. `None`: all have been written.
    fn put_parts(&mut self, no: OpNo, put: &mut LargePut, value: &[u8]) -> Result<Option<Changed>> {
        while let Some(piece) = put.next() {
            let piece = value.get(piece).unwrap_or(&[]);
            let len_bytes = item_bytes(0, PART_PREFIX_BYTES + piece.len());
            let classes = self.room.classes();
            let atomic_bytes = classes.atomic_bytes();
            // Alone in its cell: nothing has to be read before it is written. The last part is not to waste a large slot.
            let class = classes.class_of(len_bytes.max(atomic_bytes));
            let slot = match self.find_slot(class.ok_or_else(|| too_long(value.len()))?) {
                Ok(slot) => slot,
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                    return Ok(Some(match put.is_under_way() {
                        true => Changed::Parts,
                        false => Changed::Full(error),
                    }));
                }
                Err(error) => return Err(error),
            };
            let place = self.room.place(slot.location()).ok_or_else(nowhere)?;
            let (seal, timestamp) = (self.seal, put.timestamp);
            let value = put.part(piece);
            put.begun(place.location);
            let write = |content: &mut Vec<u8>| {
                content.clear();
                content.resize(len_bytes.next_multiple_of(atomic_bytes), 0);
                let (slot, kind) = (place.slot, ItemKind::Part);
                encode(content, seal, slot, timestamp, kind, &[], &value);
            };
            let after = [After::Part(no)].into_iter().chain(overwrites(slot));
            self.cells.change(place.cell, Some(timestamp), after, write);
            self.cells.let_pass(place.cell);
        }
        Ok(put.is_under_way().then_some(Changed::Parts))
    }

    /// The item at `old` gets a successor. Returns what is to wait for the successor's write if it has parts.
    pub(super) fn outdate_parts(&mut self, old: Place) -> Option<After> {
        let timestamp = self.large.outdate(old.location)?;
        Some(After::FreesParts { timestamp })
    }
}

fn too_long(value_bytes: usize) -> Error {
    Error::invalid(format!(
        "a value of {value_bytes} bytes: {VALUE_BYTES_MAX} is the longest"
    ))
}
