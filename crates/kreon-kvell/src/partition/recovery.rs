//! What the device holds becomes a partition.
//!
//! There is no catalogue: all items are read. Of each key the newest counts, an item or a tombstone; older items are
//! outdated slots, older tombstones are free ones. In `large`: values that are longer than a slot.

mod large;

use std::sync::Arc;

use kreon_base::{Error, Result};

use self::large::FoundLarge;
use super::{Cells, Parts, Room};
use crate::cache::Cache;
use crate::format::{
    Classes, ExtentHeader, ExtentNo, Found, ItemHead, ItemKind, ItemSeal, SLOTS_AT, Timestamp,
    decode,
};
use crate::index::{Index, Location};
use crate::number_hash::NumberMap;
use crate::space::{ExtentSource, FlushClock, Place, Slots, Stale, StaleSlot};

/// A partition that is being found.
pub struct Recovery {
    seal: ItemSeal,
    classes: Arc<Classes>,
    /// Items up to here are durable: they were never torn.
    mark: Timestamp,
    pub(super) index: Index,
    pub(super) slots: Slots,
    pub(super) stale: Stale,
    /// Of the items in the index whose key stands there whole.
    timestamps: NumberMap<Location, Timestamp>,
    /// The items of all other keys, by the hash of the key: many may look alike in the index.
    long: NumberMap<u128, (Location, Timestamp)>,
    /// The newest of each key, if that is newer than its items.
    tombstones: NumberMap<u128, (Location, Timestamp)>,
    pub(super) large: FoundLarge,
    torn: Vec<Place>,
    newest: Timestamp,
}

/// What a recovered partition needs besides.
pub struct Surroundings {
    pub partition: u16,
    pub source: Arc<dyn ExtentSource>,
    pub clock: Arc<FlushClock>,
    pub memory_bytes: usize,
    pub is_lossless: bool,
}

impl Recovery {
    /// A partition without items. Those that it will have are durable up to `mark`.
    pub fn new(
        seal: ItemSeal,
        classes: Arc<Classes>,
        index_key_bytes: usize,
        mark: Timestamp,
    ) -> Self {
        Self {
            seal,
            mark,
            index: Index::new(index_key_bytes),
            slots: Slots::new(Arc::clone(&classes)),
            classes,
            stale: Stale::default(),
            timestamps: NumberMap::default(),
            long: NumberMap::default(),
            tombstones: NumberMap::default(),
            large: FoundLarge::default(),
            torn: Vec::new(),
            newest: Timestamp::default(),
        }
    }

    /// Takes in an extent: its header, and all its bytes. `Corruption` if a slot has something other than an item: an
    /// item that may have been the newest of its key is lost.
    pub fn take_in(&mut self, header: &ExtentHeader, bytes: &[u8]) -> Result<()> {
        let unknown = || Error::corruption(format!("{} has an unknown class", header.extent));
        let class = self.classes.get(header.class).ok_or_else(unknown)?;
        self.slots.add(header.extent, header.class);
        debug_assert!(
            class
                .slot_offset(0)
                .is_none_or(|at| at as usize == SLOTS_AT)
        );
        for slot in 0..class.slots_per_extent {
            let Some(at) = class.slot_offset(slot).map(|at| at as usize) else {
                continue;
            };
            let content = bytes.get(at..at + class.slot_bytes as usize).unwrap_or(&[]);
            let location = Location::new(header.extent.offset() + at as u64);
            let place = location.and_then(|location| self.slots.place(location));
            let place = place.ok_or_else(unknown)?;
            self.slot(place, content)?;
        }
        Ok(())
    }

    /// The extents that were taken in.
    pub fn extents(&self) -> impl Iterator<Item = ExtentNo> {
        self.slots.extents().map(|it| it.0)
    }

    /// The newest timestamp among the items.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// Ends the taking in. Returns the slots of items whose write did not come to its end. Their first bytes, as many as are
    /// never torn, have to become zeroes, durably, before the partition goes on: later marks would take them for damaged.
    pub fn torn(&mut self) -> Vec<Place> {
        for (head, is_whole) in self.large.judged() {
            let (at, timestamp, key_hash) = (head.place.location, head.timestamp, head.key_hash);
            if is_whole {
                self.large.head(at, timestamp, key_hash);
                self.item(head.place, (key_hash, timestamp), &head.key);
            } else {
                self.torn.push(head.place);
            }
        }
        std::mem::take(&mut self.torn)
    }

    /// The partition. New items get timestamps after `last`.
    pub fn finish(mut self, last: Timestamp, around: Surroundings) -> Parts {
        for (key_hash, (slot, timestamp)) in std::mem::take(&mut self.tombstones) {
            if self.stale.has_copies(key_hash) {
                self.slots.mark(slot);
                self.stale.buried(key_hash, slot, timestamp, true);
            }
        }
        let whole = self.timestamps.keys().copied();
        for location in whole.chain(self.long.values().map(|it| it.0)) {
            self.slots.mark(location);
        }
        let large = self.large.present(|head| {
            let whole = self.timestamps.get(&head.at);
            let long = self.long.get(&head.key_hash);
            whole == Some(&head.timestamp) || long == Some(&(head.at, head.timestamp))
        });
        let parts = large.iter().flat_map(|(_, _, parts)| parts);
        parts.for_each(|&part| self.slots.mark(part));
        let slot_bytes_max = self.classes.slot_bytes_max();
        let room = Room::new(
            around.partition,
            self.classes,
            around.source,
            self.slots,
            self.stale,
        );
        let left = around
            .memory_bytes
            .saturating_sub(self.index.memory_bytes() + room.memory_bytes() + large.memory_bytes());
        let mut cache = Cache::new(around.memory_bytes);
        cache.set_limit(left);
        Parts {
            seal: self.seal,
            index: self.index,
            cells: Cells::new(cache),
            room,
            large,
            slot_bytes_max,
            clock: around.clock,
            last,
            memory_bytes: around.memory_bytes,
            is_lossless: around.is_lossless,
            scratch: Vec::new(),
        }
    }

    fn slot(&mut self, place: Place, content: &[u8]) -> Result<()> {
        let (head, key, value) = match decode(content, self.seal, place.slot) {
            Found::Blank => return Ok(()),
            Found::BadHead => return Err(place.damaged()),
            Found::Whole(item) => (item.head, item.key, Some(item.value)),
            // Within an atomic unit nothing is torn, and a durable item is whole: this one is damaged. It counts as what
            // it is the newest of; reading it fails.
            Found::Torn(head)
                if head.timestamp <= self.mark || self.classes.is_in_place(place.slot.class) =>
            {
                (head, head.key_prefix, None)
            }
            Found::Torn(head) => {
                self.newest = self.newest.max(head.timestamp);
                // A part says nothing by itself: its slot is free.
                if head.kind != ItemKind::Part {
                    self.torn.push(place);
                }
                return Ok(());
            }
        };
        self.newest = self.newest.max(head.timestamp);
        match head.kind {
            ItemKind::Tombstone => self.tombstone(place, &head),
            ItemKind::Put => self.item(place, (head.key_hash, head.timestamp), key),
            ItemKind::Part => self.large.part(place.location, value.unwrap_or(&[])),
            ItemKind::Large => self.large_item(place, &head, key, value),
        }
        Ok(())
    }

    /// Takes in the head of a large value. What a durable one names was there: if it is not now, that is damage, which shows
    /// when it is read.
    fn large_item(&mut self, place: Place, head: &ItemHead<'_>, key: &[u8], value: Option<&[u8]>) {
        let (key_hash, timestamp) = (head.key_hash, head.timestamp);
        match value {
            Some(value) if timestamp > self.mark => {
                let head = (place, timestamp, key_hash);
                self.large.doubtful(head, key, value);
            }
            _ => {
                self.large.head(place.location, timestamp, key_hash);
                self.item(place, (key_hash, timestamp), key);
            }
        }
    }

    fn item(&mut self, place: Place, (hash, timestamp): (u128, Timestamp), key: &[u8]) {
        if let Some(&(_, buried)) = self.tombstones.get(&hash) {
            if timestamp < buried {
                return self.outdated(place.location, hash);
            }
            // Its slot is free: the item is newer.
            self.tombstones.remove(&hash);
        }
        match self.present(key, hash) {
            Some((_, known)) if timestamp < known => self.outdated(place.location, hash),
            Some((old, _)) => {
                self.index.replace(key, old, place.location);
                self.present_no_more(old, hash);
                self.outdated(old, hash);
                self.present_now(place.location, key, hash, timestamp);
            }
            None => {
                self.index.insert(key, place.location);
                self.present_now(place.location, key, hash, timestamp);
            }
        }
    }

    fn tombstone(&mut self, place: Place, head: &ItemHead<'_>) {
        let (hash, timestamp) = (head.key_hash, head.timestamp);
        match self.present(head.key_prefix, hash) {
            // Free.
            Some((_, known)) if timestamp < known => return,
            Some((old, _)) => {
                self.index.remove(head.key_prefix, old);
                self.present_no_more(old, hash);
                self.outdated(old, hash);
            }
            None => {}
        }
        let newest = self
            .tombstones
            .entry(hash)
            .or_insert((place.location, timestamp));
        if newest.1 < timestamp {
            *newest = (place.location, timestamp);
        }
    }

    /// The newest item of a key so far. The beginning of a long key will do.
    fn present(&self, key: &[u8], hash: u128) -> Option<(Location, Timestamp)> {
        if !self.index.is_whole(key) {
            return self.long.get(&hash).copied();
        }
        let at = self.index.find(key).next()?;
        Some((at, *self.timestamps.get(&at)?))
    }

    fn present_now(&mut self, at: Location, key: &[u8], hash: u128, timestamp: Timestamp) {
        match self.index.is_whole(key) {
            true => drop(self.timestamps.insert(at, timestamp)),
            false => drop(self.long.insert(hash, (at, timestamp))),
        }
    }

    fn present_no_more(&mut self, at: Location, hash: u128) {
        if self.timestamps.remove(&at).is_none() {
            self.long.remove(&hash);
        }
    }

    fn outdated(&mut self, at: Location, key_hash: u128) {
        let Some(place) = self.slots.place(at) else {
            return;
        };
        self.slots.mark(at);
        self.stale.outdated(key_hash);
        self.stale
            .ready(place.slot.class, StaleSlot { slot: at, key_hash });
    }
}
