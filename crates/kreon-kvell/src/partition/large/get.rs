//! A large value on its way to a reader.

use std::collections::BTreeMap;
use std::ops::Range;

use kreon_base::{Checksum, Result};

use super::PARTS_AT_ONCE;
use crate::format::{Found, ItemKind, ItemSeal, LargeValue, PartOf, Timestamp, decode};
use crate::index::Location;
use crate::partition::Cells;
use crate::partition::request::OpNo;
use crate::partition::room::Room;
use crate::space::Place;

/// A value whose parts are being read. They stay where they are meanwhile: see
/// [`LargeValues::begin_read`](super::LargeValues::begin_read).
pub struct LargeGet {
    /// Of the head.
    pub timestamp: Timestamp,
    key_hash: u128,
    /// The head, which is damaged if its parts do not make up what it says.
    head: Place,
    value: LargeValue,
    /// The value, as far as it was read.
    bytes: Vec<u8>,
    /// Bytes of the parts read.
    read_bytes: usize,
    /// Numbers of the parts that are being read.
    wanted: Vec<usize>,
    /// The first part that was not asked for.
    next: usize,
    /// Pieces that were read, and are not in the checksum: some before them were not. By number.
    ahead: BTreeMap<usize, Range<usize>>,
    /// The next piece for the checksum.
    checked: usize,
    checksum: Checksum,
}

impl LargeGet {
    /// The value that `value` tells of, that of the item at `head`. `Corruption` if its parts have no room for it.
    pub fn new(
        (head, timestamp, key_hash): (Place, Timestamp, u128),
        value: LargeValue,
        slot_bytes_max: usize,
    ) -> Result<Self> {
        let len_bytes = value.value_bytes as usize;
        if len_bytes > value.parts.len() * slot_bytes_max {
            return Err(head.damaged());
        }
        Ok(Self {
            timestamp,
            key_hash,
            head,
            value,
            bytes: vec![0; len_bytes],
            read_bytes: 0,
            wanted: Vec::new(),
            next: 0,
            ahead: BTreeMap::new(),
            checked: 0,
            checksum: Checksum::new(),
        })
    }

    /// Takes in the parts that memory has, and has `op` go on when more of them were read. The value, if that was all.
    ///
    /// # Errors
    /// `Corruption`: a part is not what the head says.
    pub fn go_on(
        &mut self,
        op: OpNo,
        seal: ItemSeal,
        room: &Room,
        cells: &mut Cells,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Vec<u8>>> {
        let mut left = Vec::new();
        for number in std::mem::take(&mut self.wanted) {
            let place = self.place(number, room)?;
            match cells.content(place.cell, scratch) {
                Some(content) => self.take_in(number, place, content, seal)?,
                None => left.push(number),
            }
        }
        self.wanted = left;
        while self.wanted.len() < PARTS_AT_ONCE && self.next < self.value.parts.len() {
            let place = self.place(self.next, room)?;
            cells.want(place.cell, place.cell_bytes, op);
            cells.let_pass(place.cell);
            self.wanted.push(self.next);
            self.next += 1;
        }
        if self.checked < self.value.parts.len() {
            return Ok(None);
        }
        let checksum = std::mem::take(&mut self.checksum).finish();
        if checksum != self.value.checksum || self.read_bytes != self.bytes.len() {
            return Err(self.head.damaged());
        }
        Ok(Some(std::mem::take(&mut self.bytes)))
    }

    /// The slot of a part.
    fn place(&self, number: usize, room: &Room) -> Result<Place> {
        let offset = self.value.parts.get(number).copied();
        let place = offset.and_then(Location::new).and_then(|at| room.place(at));
        place.ok_or_else(|| self.head.damaged())
    }

    fn take_in(
        &mut self,
        number: usize,
        place: Place,
        content: &[u8],
        seal: ItemSeal,
    ) -> Result<()> {
        let owner = PartOf {
            key_hash: self.key_hash,
            timestamp: self.timestamp,
            number: number as u32,
        };
        let bytes = content.get(place.at..).unwrap_or(&[]);
        let piece = match decode(bytes, seal, place.slot) {
            Found::Whole(item) if item.head.kind == ItemKind::Part => PartOf::decode(item.value)
                .filter(|(part, _)| *part == owner)
                .map(|(_, piece)| piece),
            _ => None,
        };
        let piece = piece.ok_or_else(|| place.damaged())?;
        // All pieces but the last have one length.
        let is_last = number + 1 == self.value.parts.len();
        let from = match is_last {
            true => self.bytes.len().checked_sub(piece.len()),
            false => Some(number * piece.len()),
        };
        let range = from.map(|from| from..from + piece.len());
        let range = range.ok_or_else(|| place.damaged())?;
        let to = self.bytes.get_mut(range.clone());
        to.ok_or_else(|| place.damaged())?.copy_from_slice(piece);
        self.read_bytes += piece.len();
        self.ahead.insert(number, range);
        self.add_to_checksum();
        Ok(())
    }

    /// The checksum goes over the pieces as they come, so that no caller waits for a gigabyte of it under the lock.
    fn add_to_checksum(&mut self) {
        while let Some(range) = self.ahead.remove(&self.checked) {
            let piece = self.bytes.get(range).unwrap_or(&[]);
            self.checksum = std::mem::take(&mut self.checksum).with(piece);
            self.checked += 1;
        }
    }
}
