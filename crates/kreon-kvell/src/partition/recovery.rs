//! What the device holds becomes a partition.
//!
//! There is no catalogue: all items are read. Of each key the newest counts, an item or a tombstone; older items are
//! outdated slots, older tombstones are free ones. Keys are sorted when all were read, and the index is built of them in their
//! order.
//!
//! - `found`: items and tombstones, and their order by key
//! - `newest`: what counts of each key
//! - `large`: values that are longer than a slot

mod found;
mod large;
mod newest;

use std::sync::Arc;

use kreon_base::{Error, Result};

use self::found::{FoundItems, Kind};
use self::large::FoundLarge;
use self::newest::Newest;
use super::{Cells, Parts, Room};
use crate::cache::Cache;
use crate::format::{
    Classes, ExtentHeader, ExtentNo, Found, ItemHead, ItemKind, ItemSeal, SLOTS_AT, Slot,
    Timestamp, decode,
};
use crate::index::{IndexBuilder, Location};
use crate::space::{ExtentSource, FlushClock, Place, Slots, Stale};

/// A partition that is being found.
pub struct Recovery {
    seal: ItemSeal,
    classes: Arc<Classes>,
    /// Items up to here are durable: they were never torn.
    mark: Timestamp,
    pub(super) index: IndexBuilder,
    pub(super) slots: Slots,
    pub(super) stale: Stale,
    found: FoundItems,
    pub(super) large: FoundLarge,
    /// The heads of large values that keys have.
    heads: Vec<(Location, Timestamp)>,
    torn: Vec<Location>,
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
            index: IndexBuilder::new(index_key_bytes),
            slots: Slots::new(Arc::clone(&classes)),
            classes,
            stale: Stale::default(),
            found: FoundItems::default(),
            large: FoundLarge::default(),
            heads: Vec::new(),
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
        let mut used = vec![0_u64; (class.slots_per_extent as usize).div_ceil(64)];
        for number in 0..class.slots_per_extent {
            let Some(at) = class.slot_offset(number) else {
                continue;
            };
            let slot = Slot {
                offset: header.extent.offset() + u64::from(at),
                class: header.class,
                bytes: class.slot_bytes,
            };
            let (at, end) = (at as usize, (at + class.slot_bytes) as usize);
            let has_item = self.slot(slot, bytes.get(at..end).unwrap_or(&[]))?;
            if let Some(word) = used.get_mut(number as usize / 64) {
                *word |= u64::from(has_item) << (number % 64);
            }
        }
        self.slots.mark_all(header.extent, &used);
        Ok(())
    }

    /// All extents were taken in: what they hold is sorted, and counted as what it is.
    ///
    /// # Errors
    /// `Corruption`: the items of a key do not come together.
    pub fn end(&mut self) -> Result<()> {
        for (head, is_whole) in self.large.judged() {
            if is_whole {
                self.slots.mark(head.at);
                let what = (Kind::Large, head.at, head.timestamp);
                self.push(what, (&head.key, head.key.len()), head.key_hash);
            } else {
                self.torn.push(head.at);
            }
        }
        let mut found = self.found.take();
        found.sort();
        let Self {
            seal,
            index,
            slots,
            stale,
            ..
        } = self;
        let mut newest = Newest::new(*seal, index, slots, stale);
        newest.take_in(&found)?;
        self.heads = newest.heads;
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

    /// The slots of items whose write did not come to its end. Their first bytes, as many as are never torn, have to become
    /// zeroes, durably, before the partition goes on: later marks would take them for damaged.
    pub fn torn(&mut self) -> Vec<Place> {
        let torn = std::mem::take(&mut self.torn);
        let places = torn.into_iter().filter_map(|at| self.slots.place(at));
        places.collect()
    }

    /// The partition. New items get timestamps after `last`.
    pub fn finish(mut self, last: Timestamp, around: Surroundings) -> Parts {
        let index = self.index.finish();
        let large = self.large.present(&self.heads);
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
            .saturating_sub(index.memory_bytes() + room.memory_bytes() + large.memory_bytes());
        let mut cache = Cache::new(around.memory_bytes);
        cache.set_limit(left);
        Parts {
            seal: self.seal,
            index,
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

    /// Takes in the content of a slot. Whether the slot is in use: by an item that counts, or that a later one has outdated.
    fn slot(&mut self, slot: Slot, content: &[u8]) -> Result<bool> {
        let (head, key, value) = match decode(content, self.seal, slot) {
            Found::Blank => return Ok(false),
            Found::BadHead => return Err(slot.damaged()),
            Found::Whole(item) => (item.head, item.key, Some(item.value)),
            // Within an atomic unit nothing is torn, and a durable item is whole: this one is damaged. It counts as what
            // it is the newest of; reading it fails.
            Found::Torn(head)
                if head.timestamp <= self.mark || self.classes.is_in_place(slot.class) =>
            {
                (head, head.key_prefix, None)
            }
            Found::Torn(head) => {
                self.newest = self.newest.max(head.timestamp);
                // A part says nothing by itself: its slot is free.
                if head.kind != ItemKind::Part {
                    self.torn.push(location(slot)?);
                }
                return Ok(false);
            }
        };
        self.newest = self.newest.max(head.timestamp);
        let at = location(slot)?;
        match (head.kind, value) {
            (ItemKind::Tombstone, _) => self.item(Kind::Tombstone, at, &head, key),
            (ItemKind::Put, _) => self.item(Kind::Item, at, &head, key),
            (ItemKind::Part, value) => self.large.part(at, value.unwrap_or(&[])),
            // What a durable head names was there: if it is not now, that is damage, which shows when it is read.
            (ItemKind::Large, Some(value)) if head.timestamp > self.mark => {
                self.large
                    .doubtful((at, head.timestamp, head.key_hash), key, value);
                return Ok(false);
            }
            (ItemKind::Large, _) => self.item(Kind::Large, at, &head, key),
        }
        Ok(matches!(head.kind, ItemKind::Put | ItemKind::Large))
    }

    /// Notes what was found of a key; of a long one the beginning will do.
    fn item(&mut self, kind: Kind, at: Location, head: &ItemHead<'_>, key: &[u8]) {
        let what = (kind, at, head.timestamp);
        self.push(what, (key, head.key_bytes.into()), head.key_hash);
    }

    fn push(
        &mut self,
        what: (Kind, Location, Timestamp),
        (key, key_bytes): (&[u8], usize),
        hash: u128,
    ) {
        let key_bytes_max = self.index.key_bytes_max();
        let in_index = key.get(..key_bytes_max).unwrap_or(key);
        self.found
            .push(what, (in_index, key_bytes <= key_bytes_max), hash);
    }
}

fn location(slot: Slot) -> Result<Location> {
    Location::new(slot.offset).ok_or_else(|| slot.damaged())
}
