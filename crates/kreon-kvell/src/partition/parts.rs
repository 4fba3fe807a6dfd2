//! What requests work on: the index, cells and slots of a partition. In `large`: values that are longer than a slot.

mod large;

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result, planted};

use super::after::After;
use super::cells::Cells;
use super::large::LargeValues;
use super::queue::Op;
use super::request::OpNo;
use super::room::{NewSlot, Room};
use crate::format::{
    ClassNo, ExtentNo, Found, ItemKind, ItemSeal, LargeValue, Timestamp, decode, encode,
    encode_tombstone, item_bytes,
};
use crate::index::Index;
use crate::space::{FlushClock, Place, StaleSlot};

/// Extents given back at a time: each takes a write and a discard, between requests.
const GIVEN_AT_ONCE: usize = 16;

/// Index, cells and slots of a partition; recovery puts them together.
pub struct Parts {
    pub seal: ItemSeal,
    pub index: Index,
    pub cells: Cells,
    pub room: Room,
    /// Values that are longer than a slot.
    pub large: LargeValues,
    /// Items that are longer than this have their value in parts, which are not: a size of slots. Tests make it small.
    pub slot_bytes_max: usize,
    pub clock: Arc<FlushClock>,
    /// The newest timestamp: all on the device are at most that.
    pub last: Timestamp,
    /// Limit over index, cache, slots, and cells with I/O under way.
    pub memory_bytes: usize,
    /// Whether the device keeps what it took over a power cut: then nothing awaits flushes.
    pub is_lossless: bool,
    /// For cells that the cache holds in pieces.
    pub scratch: Vec<u8>,
}

/// How far a get came.
pub enum Got {
    /// The value.
    Value(Vec<u8>),
    /// This cell has to be read first.
    Read(Place),
    /// Parts of the value are being read.
    Parts,
}

/// A new version of a key: an item that fits into a slot.
struct NewItem<'a> {
    class: ClassNo,
    kind: ItemKind,
    value: &'a [u8],
    /// If it was given one already.
    timestamp: Option<Timestamp>,
}

/// How far a change came.
pub enum Changed {
    /// It is visible; what waits for its write was told.
    Yes,
    /// This cell has to be read first.
    Read(Place),
    /// Parts of the value are being written.
    Parts,
    /// The volume is full; a flush may make room.
    Full(Error),
}

impl Parts {
    /// The value of the item of `op`'s key at `place`, whatever its length. Of a large one the parts are read first: `op`
    /// goes on by [`value_of_parts`](Self::value_of_parts), whatever becomes of the key.
    pub fn value(&mut self, no: OpNo, op: &mut Op, place: Place) -> Result<Got> {
        let Some(content) = self.cells.content(place.cell, &mut self.scratch) else {
            return Ok(Got::Read(place));
        };
        let bytes = content.get(place.at..).unwrap_or(&[]);
        let (key, key_hash) = (&op.request.key, op.request.key_hash);
        let (timestamp, value) = match decode(bytes, self.seal, place.slot) {
            Found::Whole(item) if item.head.is_of(key, key_hash) => match item.head.kind {
                ItemKind::Put => return Ok(Got::Value(item.value.to_vec())),
                ItemKind::Large => (item.head.timestamp, LargeValue::decode(item.value)?),
                ItemKind::Part | ItemKind::Tombstone => return Err(place.damaged()),
            },
            _ => return Err(place.damaged()),
        };
        self.begin_get(op, (place, timestamp), value)?;
        self.value_of_parts(no, op)
    }

    /// Gives the key of `op` a value. `found` is where it has one now.
    pub fn put(
        &mut self,
        no: OpNo,
        op: &mut Op,
        value: &[u8],
        found: Option<Place>,
        reply: Option<After>,
    ) -> Result<Changed> {
        let len_bytes = item_bytes(op.request.key.len(), value.len());
        let class = self.room.classes().class_of(len_bytes);
        let Some(class) = class.filter(|_| len_bytes <= self.slot_bytes_max) else {
            return self.put_large(no, op, value, found, reply);
        };
        if found.is_none() {
            self.reserve_memory(self.index.growth_bytes_max())?;
        }
        let item = NewItem {
            class,
            kind: ItemKind::Put,
            value,
            timestamp: None,
        };
        self.put_item(op, &item, found, reply)
    }

    /// Writes an item for the key of `op`.
    fn put_item(
        &mut self,
        op: &mut Op,
        item: &NewItem<'_>,
        found: Option<Place>,
        reply: Option<After>,
    ) -> Result<Changed> {
        let classes = self.room.classes();
        // The head of a large value never goes over the last version: until a flush, its parts may be lost and it not.
        let is_in_place = classes.is_in_place(item.class) && item.kind == ItemKind::Put;
        planted!(InPlaceOverSectors => let is_in_place = true);
        let target = match found {
            Some(place) if is_in_place && place.slot.class == item.class => place,
            _ => match self.new_place(op, item.class) {
                Ok(place) => place,
                Err(error) if error.kind() == ErrorKind::OutOfSpace && op.slot.is_none() => {
                    return Ok(Changed::Full(error));
                }
                Err(error) => return Err(error),
            },
        };
        let slot = op.slot;
        let is_alone = matches!(slot, Some(NewSlot::Free(taken)) if taken.is_alone);
        if target.is_shared && !is_alone && !self.has(target) {
            return Ok(Changed::Read(target));
        }
        let timestamp = match item.timestamp {
            Some(timestamp) => timestamp,
            None => self.next_timestamp()?,
        };
        let mut after: Vec<After> = reply.into_iter().collect();
        self.point(op, found, target, timestamp, &mut after);
        let (seal, atomic_bytes) = (self.seal, self.room.classes().atomic_bytes());
        let write = |content: &mut Vec<u8>| {
            let len_bytes = item_bytes(op.request.key.len(), item.value.len());
            let len_bytes = match target.is_shared {
                true => target.cell_bytes,
                false => len_bytes.next_multiple_of(atomic_bytes),
            };
            if is_alone || !target.is_shared {
                content.clear();
            }
            content.resize(len_bytes, 0);
            let (bytes, key) = (content.get_mut(target.at..), &op.request.key);
            let (bytes, kind) = (bytes.unwrap_or_default(), item.kind);
            encode(bytes, seal, target.slot, timestamp, kind, key, item.value);
        };
        self.cells
            .change(target.cell, Some(timestamp), after, write);
        op.slot = None;
        if let Some(put) = op.put.take() {
            // From here on the write of the head keeps the durable mark back.
            self.large.end(timestamp);
            let parts = put.into_parts().into();
            self.large.add(target.location, timestamp, parts);
        }
        Ok(Changed::Yes)
    }

    /// Has the index point at the item that is about to be written at `target`, and adds to `after` what follows from that.
    fn point(
        &mut self,
        op: &Op,
        found: Option<Place>,
        target: Place,
        timestamp: Timestamp,
        after: &mut Vec<After>,
    ) {
        let (key, key_hash) = (&op.request.key, op.request.key_hash);
        after.extend(op.slot.and_then(overwrites));
        after.extend(found.and_then(|old| self.outdate_parts(old)));
        if self.room.stale().is_buried(key_hash) {
            after.push(After::Supersedes {
                key_hash,
                timestamp,
            });
        }
        match found {
            Some(old) if old.location != target.location => {
                after.extend(self.outdate(old, key_hash));
                self.index.replace(key, old.location, target.location);
            }
            Some(_) => {}
            None => {
                self.index.insert(key, target.location);
            }
        }
    }

    /// Deletes the item of `op`'s key at `place`.
    pub fn delete(&mut self, op: &Op, place: Place, reply: Option<After>) -> Result<Changed> {
        if place.is_shared && !self.has(place) {
            return Ok(Changed::Read(place));
        }
        let timestamp = self.next_timestamp()?;
        let (key, key_hash) = (&op.request.key, op.request.key_hash);
        let slot = place.location;
        self.index.remove(key, slot);
        self.room.buried(key_hash, slot, timestamp);
        let buries = After::Buries { slot, key_hash };
        let seal = self.seal;
        let parts = self.outdate_parts(place);
        let after = reply.into_iter().chain([buries]).chain(parts);
        self.over_first(place, Some(timestamp), after, |bytes| {
            encode_tombstone(bytes, seal, place.slot, timestamp, key);
        });
        Ok(Changed::Yes)
    }

    /// Makes an outdated item invalid.
    pub fn erase(&mut self, stale: StaleSlot) -> Result<Changed> {
        let StaleSlot { slot, key_hash } = stale;
        let place = self.room.place(slot).ok_or_else(nowhere)?;
        if place.is_shared && !self.has(place) {
            return Ok(Changed::Read(place));
        }
        let erases = After::Erases { slot, key_hash };
        self.over_first(place, None, [erases], |_| ());
        Ok(Changed::Yes)
    }

    /// Gives extents back of which no slot is in use, some at a time: those that their class has no use for soon, or all.
    pub fn give_back(&mut self, all: bool) -> Result<()> {
        let mut idle: Vec<ExtentNo> = Vec::new();
        for extent in self.room.empty(all, GIVEN_AT_ONCE) {
            if !self.cells.is_busy(extent) {
                self.cells.forget(self.room.cells_of(extent));
                idle.push(extent);
            }
        }
        if idle.is_empty() {
            return Ok(());
        }
        self.room.give(idle)
    }

    /// Something became durable.
    pub fn durable(&mut self, after: After) {
        match after {
            After::FreesParts { timestamp } => {
                let parts = self.large.free(timestamp);
                self.room.free_all(parts);
            }
            other => self.room.durable(other),
        }
    }

    /// `op` ends. It gives back what it has taken and not used.
    pub fn let_go(&mut self, op: &mut Op) {
        if let Some(slot) = op.slot.take() {
            self.room.put_back(slot);
        }
        if let Some(put) = op.put.take() {
            // What is still being written there is ordered before what the slots get next, as the cells are the same.
            self.large.end(put.timestamp);
            self.room.free_all(put.into_parts());
        }
        if let Some(get) = op.get.take() {
            let parts = self.large.end_read(get.timestamp);
            self.room.free_all(parts);
        }
    }

    /// Memory in use, in bytes.
    pub fn memory_in_use(&self) -> usize {
        self.fixed_bytes() + self.cells.memory_bytes()
    }

    /// Memory of all but cells, in bytes.
    fn fixed_bytes(&self) -> usize {
        self.index.memory_bytes() + self.room.memory_bytes() + self.large.memory_bytes()
    }

    fn has(&mut self, place: Place) -> bool {
        self.cells.content(place.cell, &mut self.scratch).is_some()
    }

    /// Changes the first bytes of a slot, as many as are never torn, and fills the rest of them with zeroes.
    fn over_first(
        &mut self,
        place: Place,
        timestamp: Option<Timestamp>,
        after: impl IntoIterator<Item = After>,
        write: impl FnOnce(&mut [u8]),
    ) {
        let atomic_bytes = self.room.classes().atomic_bytes();
        self.cells.change(place.cell, timestamp, after, |content| {
            if !place.is_shared {
                content.clear();
                content.resize(atomic_bytes, 0);
            }
            let end = content.len().min(place.at + place.slot.bytes as usize);
            let bytes = content.get_mut(place.at..end).unwrap_or(&mut []);
            bytes.fill(0);
            write(bytes);
        });
    }

    /// The item at `old` gets a successor elsewhere. Returns what is to wait for the successor's write.
    fn outdate(&mut self, old: Place, key_hash: u128) -> Option<After> {
        self.room.outdated(key_hash);
        let after = After::Outdates {
            slot: old.location,
            class: old.slot.class,
            key_hash,
        };
        planted!(SlotReusedBeforeFlush => {
            self.room.durable(after);
            return None
        });
        Some(after)
    }

    /// The slot of `op` for a new item of `class`, found now if it has none.
    fn new_place(&mut self, op: &mut Op, class: ClassNo) -> Result<Place> {
        let slot = match op.slot {
            Some(slot) => slot,
            None => self.find_slot(class)?,
        };
        op.slot = Some(slot);
        self.room.place(slot.location()).ok_or_else(nowhere)
    }

    /// A slot of `class`; of an extent that no other class needs any more, if there is no other.
    fn find_slot(&mut self, class: ClassNo) -> Result<NewSlot> {
        match self.room.find(class) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                self.give_back(true)?;
                self.room.find(class)
            }
            outcome => outcome,
        }
    }

    /// Makes room for `more` bytes of one more key or large value, at the cost of the cache.
    fn reserve_memory(&mut self, more: usize) -> Result<()> {
        if more == 0 {
            return Ok(());
        }
        let fixed = self.fixed_bytes() + more;
        let left = self.memory_bytes.saturating_sub(fixed);
        if self.cells.limit_cache(left) <= left && fixed <= self.memory_bytes {
            return Ok(());
        }
        let (keys, limit) = (self.index.len(), self.memory_bytes);
        Err(Error::new(
            ErrorKind::OutOfSpace,
            format!(
                "a partition has no memory for another key or large value: {keys} keys under a limit of {limit} bytes; \
                 deletes and small changes of present keys work, more memory_bytes makes room"
            ),
        ))
    }

    fn next_timestamp(&mut self) -> Result<Timestamp> {
        let next = self.last.next().ok_or_else(|| {
            Error::new(
                ErrorKind::OutOfSpace,
                "the partition has made 2^40 changes since the store was opened: open it again",
            )
        })?;
        self.last = next;
        Ok(next)
    }
}

fn nowhere() -> Error {
    Error::corruption("a slot in use lies outside of all extents")
}

/// What a new item in this slot goes over.
fn overwrites(slot: NewSlot) -> Option<After> {
    match slot {
        NewSlot::Free(_) => None,
        NewSlot::Stale(StaleSlot { key_hash, .. }) => Some(After::Overwrites { key_hash }),
    }
}
