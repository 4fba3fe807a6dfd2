//! Slots with outdated items, and tombstones that wait for them.
//!
//! A new version of an item larger than an atomic unit goes to a new slot and leaves a valid old item behind: nothing is
//! written to make the old one invalid. As long as it is on the device, recovery needs something newer of the same key
//! there, or the old item would come back. So a tombstone stays until the last older copy is overwritten, durably.

use std::collections::{BTreeMap, VecDeque};

use crate::format::{ClassNo, Timestamp};
use crate::index::Location;
use crate::number_hash::NumberMap;

/// A slot with an outdated item, whose successor is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleSlot {
    /// Where it is.
    pub slot: Location,
    /// Hash of the key of the item in it.
    pub key_hash: u128,
}

/// A tombstone on the device.
#[derive(Clone, Copy, Debug)]
struct Tombstone {
    slot: Location,
    timestamp: Timestamp,
    is_durable: bool,
    /// Whether a newer item of the key is durable: nothing depends on the tombstone any more.
    is_superseded: bool,
}

/// The outdated items and the tombstones of a partition.
#[derive(Default)]
pub struct Stale {
    /// By class, oldest first: slots that may be overwritten now.
    ready: BTreeMap<ClassNo, VecDeque<StaleSlot>>,
    ready_count: usize,
    /// By hash of the key: older copies on the device, ready or not, until what overwrites them is durable.
    copies: NumberMap<u128, u32>,
    tombstones: NumberMap<u128, Vec<Tombstone>>,
}

impl Stale {
    /// Counts a copy that now is outdated. It must not be overwritten before [`ready`](Self::ready) is called.
    pub fn outdated(&mut self, key_hash: u128) {
        *self.copies.entry(key_hash).or_default() += 1;
    }

    /// The successor of an outdated copy is durable: its slot may be used.
    pub fn ready(&mut self, class: ClassNo, slot: StaleSlot) {
        self.ready.entry(class).or_default().push_back(slot);
        self.ready_count += 1;
    }

    /// The oldest slot of `class` that may be overwritten. Its copy counts until [`gone`](Self::gone).
    pub fn take(&mut self, class: ClassNo) -> Option<StaleSlot> {
        let slot = self.ready.get_mut(&class)?.pop_front()?;
        self.ready_count -= 1;
        Some(slot)
    }

    /// The oldest slot of the class that has the most of them.
    pub fn take_any(&mut self) -> Option<StaleSlot> {
        let most = self.ready.iter().max_by_key(|(_, slots)| slots.len());
        let (&class, _) = most?;
        self.take(class)
    }

    /// Slots that may be overwritten now.
    pub fn ready_count(&self) -> usize {
        self.ready_count
    }

    /// What overwrote a copy is durable. Returns the slots of tombstones that nothing depends on any more.
    pub fn gone(&mut self, key_hash: u128) -> Vec<Location> {
        if let Some(count) = self.copies.get_mut(&key_hash) {
            *count -= 1;
            if *count > 0 {
                return Vec::new();
            }
            self.copies.remove(&key_hash);
        }
        self.released(key_hash)
    }

    /// Adds a tombstone that was written, or is about to be.
    pub fn buried(
        &mut self,
        key_hash: u128,
        slot: Location,
        timestamp: Timestamp,
        is_durable: bool,
    ) {
        self.tombstones
            .entry(key_hash)
            .or_default()
            .push(Tombstone {
                slot,
                timestamp,
                is_durable,
                is_superseded: false,
            });
    }

    /// The tombstone at `slot` is durable. Returns the slots of tombstones that nothing depends on any more.
    pub fn burial_is_durable(&mut self, key_hash: u128, slot: Location) -> Vec<Location> {
        for tombstone in self.tombstones.get_mut(&key_hash).into_iter().flatten() {
            tombstone.is_durable |= tombstone.slot == slot;
        }
        self.released(key_hash)
    }

    /// Whether older copies of the key are on the device.
    pub fn has_copies(&self, key_hash: u128) -> bool {
        self.copies.contains_key(&key_hash)
    }

    /// Whether the key has a tombstone on the device.
    pub fn is_buried(&self, key_hash: u128) -> bool {
        self.tombstones.contains_key(&key_hash)
    }

    /// The place of a tombstone of the key that is not durable yet.
    pub fn fresh_burial(&self, key_hash: u128) -> Option<Location> {
        let tombstones = self.tombstones.get(&key_hash)?;
        tombstones
            .iter()
            .rev()
            .find(|it| !it.is_durable)
            .map(|it| it.slot)
    }

    /// An item of the key with this timestamp is durable. Returns the slots of older tombstones, as far as they are
    /// durable: nothing depends on them any more.
    pub fn superseded(&mut self, key_hash: u128, timestamp: Timestamp) -> Vec<Location> {
        for tombstone in self.tombstones.get_mut(&key_hash).into_iter().flatten() {
            tombstone.is_superseded |= tombstone.timestamp < timestamp;
        }
        self.released(key_hash)
    }

    /// Slots that may be overwritten now, with their class; those of a class oldest first.
    pub fn ready_slots(&self) -> impl Iterator<Item = (ClassNo, StaleSlot)> {
        let classes = self.ready.iter();
        classes.flat_map(|(&class, slots)| slots.iter().map(move |&slot| (class, slot)))
    }

    /// All tombstones: the hash of the key, the place, the age.
    pub fn all_tombstones(&self) -> impl Iterator<Item = (u128, Location, Timestamp)> {
        let keys = self.tombstones.iter();
        keys.flat_map(|(&hash, all)| all.iter().map(move |it| (hash, it.slot, it.timestamp)))
    }

    /// Older copies that are still on the device, of all keys.
    pub fn copies(&self) -> usize {
        self.copies.values().map(|&count| count as usize).sum()
    }

    /// Tombstones on the device that something depends on.
    pub fn tombstones(&self) -> usize {
        self.tombstones.values().map(Vec::len).sum()
    }

    /// Memory in bytes, about.
    pub fn memory_bytes(&self) -> usize {
        self.ready_count * size_of::<StaleSlot>()
            + self.copies.capacity() * (size_of::<(u128, u32)>() + 1)
            + self.tombstones.capacity() * (size_of::<(u128, Vec<Tombstone>)>() + 1)
            + self.tombstones() * size_of::<Tombstone>()
    }

    fn released(&mut self, key_hash: u128) -> Vec<Location> {
        let has_copies = self.copies.contains_key(&key_hash);
        kreon_base::planted!(TombstoneReusedEarly => let has_copies = false);
        let Some(tombstones) = self.tombstones.get_mut(&key_hash) else {
            return Vec::new();
        };
        // Beneath a tombstone that is not durable the item that it was written over is still there.
        let pending = tombstones.iter().filter(|it| !it.is_durable);
        let pending = pending.map(|it| it.timestamp).min();
        let released = tombstones
            .extract_if(.., |it| {
                let is_last = !has_copies && pending.is_none_or(|pending| it.timestamp < pending);
                it.is_durable && (it.is_superseded || is_last)
            })
            .map(|it| it.slot)
            .collect();
        if tombstones.is_empty() {
            self.tombstones.remove(&key_hash);
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Location {
        Location::new(number * 4096).expect("a small offset")
    }

    #[test]
    fn a_tombstone_waits_for_every_older_copy() {
        let mut stale = Stale::default();
        stale.outdated(7);
        stale.outdated(7);
        stale.buried(7, at(1), Timestamp(5), false);
        assert_eq!(stale.burial_is_durable(7, at(1)), []);
        assert_eq!(stale.gone(7), []);
        assert_eq!(stale.gone(7), [at(1)]);
        assert_eq!((stale.copies(), stale.tombstones()), (0, 0));
    }

    #[test]
    fn a_tombstone_waits_for_its_own_durability() {
        let mut stale = Stale::default();
        stale.outdated(7);
        stale.buried(7, at(1), Timestamp(5), false);
        assert_eq!(stale.gone(7), []);
        assert_eq!(stale.fresh_burial(7), Some(at(1)));
        assert_eq!(stale.burial_is_durable(7, at(1)), [at(1)]);
        assert!(!stale.is_buried(7));
    }

    #[test]
    fn a_durable_newer_item_releases_older_tombstones_only() {
        let mut stale = Stale::default();
        stale.outdated(7);
        stale.buried(7, at(1), Timestamp(5), true);
        stale.buried(7, at(2), Timestamp(9), true);
        assert_eq!(stale.superseded(7, Timestamp(8)), [at(1)]);
        assert!(stale.is_buried(7));
    }

    #[test]
    fn a_tombstone_waits_for_an_older_one_that_is_still_to_be_written() {
        let mut stale = Stale::default();
        stale.buried(7, at(1), Timestamp(5), false);
        stale.buried(7, at(2), Timestamp(9), false);
        assert_eq!(stale.superseded(7, Timestamp(7)), []);
        assert_eq!(stale.burial_is_durable(7, at(2)), []);
        let mut released = stale.burial_is_durable(7, at(1));
        released.sort();
        assert_eq!(released, [at(1), at(2)]);
    }

    #[test]
    fn slots_are_used_again_in_the_order_in_which_they_became_stale() {
        let mut stale = Stale::default();
        let class = ClassNo(3);
        for number in 1..4 {
            stale.outdated(u128::from(number));
            let key_hash = u128::from(number);
            stale.ready(
                class,
                StaleSlot {
                    slot: at(number),
                    key_hash,
                },
            );
        }
        let taken: Vec<Location> = std::iter::from_fn(|| stale.take(class))
            .map(|it| it.slot)
            .collect();
        assert_eq!(taken, [at(1), at(2), at(3)]);
        assert_eq!((stale.ready_count(), stale.copies()), (0, 3));
    }
}
