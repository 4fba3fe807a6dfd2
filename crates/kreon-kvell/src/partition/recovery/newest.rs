//! What counts of each key: the newest item, or the newest tombstone as long as older items are on the device.

use kreon_base::{Error, Result};

use super::found::{Found, FoundItems, Kind};
use super::growing::GrowingIndex;
use crate::format::{ItemSeal, Timestamp, key_hash};
use crate::index::Location;
use crate::space::{Slots, Stale, StaleSlot};

/// What the entries of all keys come to.
pub struct Newest<'a> {
    pub seal: ItemSeal,
    pub index: &'a mut GrowingIndex,
    pub slots: &'a mut Slots,
    pub stale: &'a mut Stale,
    /// The heads of large values that keys have.
    pub heads: Vec<(Location, Timestamp)>,
    /// Items that are not the newest of their key, with the hash of that.
    outdated: Vec<(Location, u128)>,
    /// Of some that look alike in the index.
    alive: Vec<Location>,
}

impl<'a> Newest<'a> {
    pub fn new(
        seal: ItemSeal,
        index: &'a mut GrowingIndex,
        slots: &'a mut Slots,
        stale: &'a mut Stale,
    ) -> Self {
        Self {
            seal,
            index,
            slots,
            stale,
            heads: Vec::new(),
            outdated: Vec::new(),
            alive: Vec::new(),
        }
    }

    /// Takes in everything, sorted.
    ///
    /// # Errors
    /// `Corruption`: a key that comes out of order, or twice, would have no item.
    pub fn take_in(&mut self, found: &FoundItems) -> Result<()> {
        for alike in found.look_alikes() {
            self.alive.clear();
            for of_key in found.by_key(alike) {
                let alive = self.of_key(found, of_key);
                self.alive.extend(alive);
            }
            self.alive.sort_unstable();
            let Some(first) = alike.first() else {
                continue;
            };
            for &at in &self.alive {
                if !self.index.push(found.key(first), first.is_whole, at) {
                    return Err(Error::corruption(format!(
                        "the item at {at:?} does not belong behind those before it"
                    )));
                }
            }
        }
        self.outdate();
        Ok(())
    }

    /// Takes in the entries of one key, the newest first. The place of its item, if it has one.
    fn of_key(&mut self, found: &FoundItems, of_key: &[Found]) -> Option<Location> {
        let (newest, older) = of_key.split_first()?;
        let is_tombstone = newest.kind == Kind::Tombstone;
        if is_tombstone || !older.is_empty() {
            let whole = || key_hash(self.seal, found.key(newest));
            let hash = found.hash(newest).unwrap_or_else(whole);
            let before = self.outdated.len();
            let items = older.iter().filter(|it| it.kind != Kind::Tombstone);
            self.outdated.extend(items.map(|item| (item.at, hash)));
            // Older tombstones are free, and so is one that nothing needs.
            if is_tombstone && self.outdated.len() > before {
                self.slots.mark(newest.at);
                self.stale.buried(hash, newest.at, newest.timestamp, true);
            }
        }
        if newest.kind == Kind::Large {
            self.heads.push((newest.at, newest.timestamp));
        }
        (!is_tombstone).then_some(newest.at)
    }

    /// The slots of outdated items are used again in the order of the device, so that neighbours are written together.
    fn outdate(&mut self) {
        self.outdated.sort_unstable();
        for &(slot, key_hash) in &self.outdated {
            if let Some(place) = self.slots.place(slot) {
                self.stale.outdated(key_hash);
                let stale = StaleSlot { slot, key_hash };
                self.stale.ready(place.slot.class, stale);
            }
        }
    }
}
