//! What the device holds becomes a partition.
//!
//! There is no catalogue: all items are read. Of each key the newest counts, an item or a tombstone; older items are
//! outdated slots, older tombstones are free ones. What was found is noted, sorted by key when all was read, and the index is
//! built of it in this order.
//!
//! The notes take a multiple of the index that comes of them. So they have a limit ([`Allowance`]): where memory is short, the
//! items of a partition are read several times, for a part of the keys each time ([`Pass`]).
//!
//! - `found`: items and tombstones, and their order by key
//! - `pass`: which keys a reading takes in
//! - `allowance`: the memory of the notes
//! - `growing`: the index while entries come
//! - `newest`: what counts of each key
//! - `large`: values that are longer than a slot

mod allowance;
mod found;
mod growing;
mod large;
mod newest;
mod pass;

use std::sync::Arc;

use kreon_base::{Error, Result};

pub use self::allowance::Allowance;
use self::found::{FoundItems, Kind};
use self::growing::GrowingIndex;
use self::large::FoundLarge;
use self::newest::Newest;
use self::pass::Pass;
use super::{Cells, Parts, Room};
use crate::cache::Cache;
use crate::format::{
    Class, Classes, ExtentHeader, ExtentNo, Found, FoundHead, HEAD_KEY_BYTES_MAX, ItemHead,
    ItemKind, ItemSeal, SLOTS_AT, Slot, Timestamp, decode, decode_head,
};
use crate::index::Location;
use crate::space::{ExtentSource, FlushClock, Place, Slots, Stale};

/// A partition that is being found.
pub struct Recovery {
    seal: ItemSeal,
    classes: Arc<Classes>,
    /// Items up to here are durable: they were never torn.
    mark: Timestamp,
    pub(super) index: GrowingIndex,
    pub(super) slots: Slots,
    pub(super) stale: Stale,
    found: FoundItems,
    pass: Pass,
    allowance: Arc<Allowance>,
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
    ///
    /// The index has the first `index_key_bytes` of each key, but no more than the head part of an item has: of a torn or
    /// deleted one that is all there is.
    pub fn new(
        seal: ItemSeal,
        classes: Arc<Classes>,
        index_key_bytes: usize,
        mark: Timestamp,
        allowance: Arc<Allowance>,
    ) -> Self {
        Self {
            seal,
            mark,
            index: GrowingIndex::new(index_key_bytes.min(HEAD_KEY_BYTES_MAX)),
            slots: Slots::new(Arc::clone(&classes)),
            classes,
            stale: Stale::default(),
            found: FoundItems::default(),
            pass: Pass::ALL,
            allowance,
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
        debug_assert!(
            class
                .slot_offset(0)
                .is_none_or(|at| at as usize == SLOTS_AT)
        );
        if self.found.memory_bytes() == 0 {
            self.found = self.allowance.notes();
        }
        if self.pass.is_first() {
            self.slots.add(header.extent, header.class);
            let mut used = vec![0_u64; (class.slots_per_extent as usize).div_ceil(64)];
            self.each_slot(header, class, bytes, |recovery, number, slot, content| {
                let has_item = recovery.slot(slot, content)?;
                if let Some(word) = used.get_mut(number as usize / 64) {
                    *word |= u64::from(has_item) << (number % 64);
                }
                Ok(())
            })?;
            self.slots.mark_all(header.extent, &used);
        } else {
            self.each_slot(header, class, bytes, |recovery, _, slot, content| {
                recovery.slot_again(slot, content)
            })?;
        }
        self.bound();
        Ok(())
    }

    /// Hands out all slots of an extent with their numbers and contents.
    fn each_slot<'a>(
        &mut self,
        header: &ExtentHeader,
        class: Class,
        bytes: &'a [u8],
        mut take: impl FnMut(&mut Self, u32, Slot, &'a [u8]) -> Result<()>,
    ) -> Result<()> {
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
            take(self, number, slot, bytes.get(at..end).unwrap_or(&[]))?;
        }
        Ok(())
    }

    /// Leaves keys to later passes if the notes take too much memory.
    fn bound(&mut self) {
        let own_bytes = self.memory_bytes();
        while self.found.is_full()
            || self.found.cost_bytes() > self.allowance.notes_bytes_max(own_bytes)
        {
            if !self.pass.narrow() {
                return;
            }
            let pass = self.pass;
            self.found.retain(self.seal, |key_hash| pass.has(key_hash));
        }
    }

    /// All extents were taken in: what was noted is sorted, and counted as what it is. `false` if that are not all keys: all
    /// extents have to be taken in again.
    ///
    /// # Errors
    /// `Corruption`: the items of a key do not come together.
    pub fn end(&mut self) -> Result<bool> {
        if self.pass.is_first() {
            self.torn.extend(self.large.judge());
        }
        let mut found = std::mem::take(&mut self.found);
        for head in self.large.whole() {
            self.slots.mark(head.at);
            if self.pass.has(head.key_hash) {
                let what = (Kind::Large, head.at, head.timestamp);
                let key = self.in_index(&head.key, head.key.len());
                found.push(what, key, head.key_hash)?;
            }
        }
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
        self.heads.extend(newest.heads);
        if let Some(next) = self.pass.next() {
            self.pass = next;
            self.index.begin_again();
            found.clear();
            self.found = found;
            return Ok(false);
        }
        self.allowance.keep(self.memory_bytes());
        self.allowance.take_back(found);
        Ok(true)
    }

    /// What the partition keeps so far, in bytes, about.
    fn memory_bytes(&self) -> usize {
        let slots = self.slots.memory_bytes() + self.stale.memory_bytes();
        slots + self.index.memory_bytes() + self.large.memory_bytes()
    }

    /// The extents that were taken in.
    pub fn extents(&self) -> impl Iterator<Item = ExtentNo> {
        self.slots.extents().map(|it| it.0)
    }

    /// Memory of the notes in bytes.
    pub fn notes_bytes(&self) -> usize {
        self.found.memory_bytes()
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
            (ItemKind::Tombstone, _) => self.item(Kind::Tombstone, at, &head, key)?,
            (ItemKind::Put, _) => self.item(Kind::Item, at, &head, key)?,
            (ItemKind::Part, value) => self.large.part(at, value.unwrap_or(&[])),
            // What a durable head names was there: if it is not now, that is damage, which shows when it is read.
            (ItemKind::Large, Some(value)) if head.timestamp > self.mark => {
                self.large
                    .doubtful((at, head.timestamp, head.key_hash), key, value);
                return Ok(false);
            }
            (ItemKind::Large, _) => self.item(Kind::Large, at, &head, key)?,
        }
        Ok(matches!(head.kind, ItemKind::Put | ItemKind::Large))
    }

    /// As [`Self::slot`], in a pass that is not the first: everything is known but for the keys of the pass.
    fn slot_again(&mut self, slot: Slot, content: &[u8]) -> Result<()> {
        let head = match decode_head(content, self.seal, slot) {
            FoundHead::Blank => return Ok(()),
            FoundHead::BadHead => return Err(slot.damaged()),
            FoundHead::Head(head) => head,
        };
        if head.kind == ItemKind::Part || !self.pass.has(head.key_hash) {
            return Ok(());
        }
        let is_old = head.timestamp <= self.mark;
        let key = match decode(content, self.seal, slot) {
            // Heads in doubt were judged.
            Found::Whole(_) if head.kind == ItemKind::Large && !is_old => return Ok(()),
            Found::Whole(item) => item.key,
            Found::Torn(head) if is_old || self.classes.is_in_place(slot.class) => head.key_prefix,
            _ => return Ok(()),
        };
        let kind = match head.kind {
            ItemKind::Tombstone => Kind::Tombstone,
            ItemKind::Large => Kind::Large,
            _ => Kind::Item,
        };
        self.item(kind, location(slot)?, &head, key)
    }

    /// Notes what was found of a key of this pass; of a long one the beginning will do.
    fn item(&mut self, kind: Kind, at: Location, head: &ItemHead<'_>, key: &[u8]) -> Result<()> {
        if !self.pass.has(head.key_hash) {
            return Ok(());
        }
        let what = (kind, at, head.timestamp);
        let key = self.in_index(key, head.key_bytes.into());
        self.found.push(what, key, head.key_hash)
    }

    /// What stands in the index of a key of `key_bytes`, and whether that is all of it. Of a long one the beginning will do.
    fn in_index<'a>(&self, key: &'a [u8], key_bytes: usize) -> (&'a [u8], bool) {
        let key_bytes_max = self.index.key_bytes_max();
        let in_index = key.get(..key_bytes_max).unwrap_or(key);
        (in_index, key_bytes <= key_bytes_max)
    }
}

fn location(slot: Slot) -> Result<Location> {
    Location::new(slot.offset).ok_or_else(|| slot.damaged())
}
