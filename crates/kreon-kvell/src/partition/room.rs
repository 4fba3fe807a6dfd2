//! The partition's slots: where a new item goes, and when a slot can be used again.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Error, Result};

use super::after::After;
use crate::cache::CellNo;
use crate::format::{ClassNo, Classes, ExtentNo, Timestamp};
use crate::index::Location;
use crate::space::{ExtentSource, Place, Slots, Stale, StaleSlot, Taken};

/// Outdated items that may stay on the device. Beyond, the oldest are made invalid, which takes a write for each: a
/// copy takes memory (56 bytes), and keeps a tombstone of its key in place.
pub const STALE_MAX: usize = 8 << 10;

/// A slot for a new item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewSlot {
    /// It was free.
    Free(Taken),
    /// It has an outdated item, which the new one goes over.
    Stale(StaleSlot),
}

impl NewSlot {
    pub fn location(&self) -> Location {
        match self {
            Self::Free(taken) => taken.slot,
            Self::Stale(stale) => stale.slot,
        }
    }
}

/// The slots of a partition.
pub struct Room {
    partition: u16,
    classes: Arc<Classes>,
    source: Arc<dyn ExtentSource>,
    slots: Slots,
    stale: Stale,
    stale_max: usize,
    /// Extents that recovery found without a slot in use, or whose last one was freed.
    emptied: BTreeSet<ExtentNo>,
}

impl Room {
    pub fn new(
        partition: u16,
        classes: Arc<Classes>,
        source: Arc<dyn ExtentSource>,
        slots: Slots,
        stale: Stale,
    ) -> Self {
        let unused = slots.extents().filter(|it| it.2 == 0);
        Self {
            emptied: unused.map(|it| it.0).collect(),
            partition,
            classes,
            source,
            slots,
            stale,
            stale_max: STALE_MAX,
        }
    }

    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    pub fn stale(&self) -> &Stale {
        &self.stale
    }

    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Sets how many outdated items may stay: few in tests.
    pub fn set_stale_max(&mut self, stale_max: usize) {
        self.stale_max = stale_max;
    }

    /// The slot at `at`; `None` if none begins there.
    pub fn place(&self, at: Location) -> Option<Place> {
        self.slots.place(at)
    }

    /// A slot of `class`: an outdated one, so that they do not pile up; else a free one; else one of a new extent.
    pub fn find(&mut self, class: ClassNo) -> Result<NewSlot> {
        if let Some(stale) = self.stale.take(class) {
            return Ok(NewSlot::Stale(stale));
        }
        if let Some(taken) = self.slots.take(class) {
            return Ok(NewSlot::Free(taken));
        }
        let extent = self.source.take(self.partition, class)?;
        self.slots.add(extent, class);
        let taken = self.slots.take(class);
        let none = || Error::corruption(format!("{extent} has no slots"));
        taken.map(NewSlot::Free).ok_or_else(none)
    }

    /// A slot that was found is not needed after all.
    pub fn put_back(&mut self, slot: NewSlot) {
        match slot {
            NewSlot::Free(taken) => self.free(taken.slot),
            NewSlot::Stale(stale) => {
                if let Some(place) = self.slots.place(stale.slot) {
                    self.stale.ready(place.slot.class, stale);
                }
            }
        }
    }

    /// A slot that was found lies in a cell that cannot be read: it stays as it is up to the next opening, as do the free
    /// ones beside it.
    pub fn give_up(&mut self, slot: NewSlot) {
        self.slots.give_up_cell(slot.location());
    }

    /// The item at `slot` is outdated, and stays until its successor is durable.
    pub fn outdated(&mut self, key_hash: u128) {
        self.stale.outdated(key_hash);
    }

    /// A tombstone is about to be written at `slot`.
    pub fn buried(&mut self, key_hash: u128, slot: Location, timestamp: Timestamp) {
        self.stale.buried(key_hash, slot, timestamp, false);
    }

    /// An outdated item to be made invalid, if there are too many of them.
    pub fn too_many(&mut self) -> Option<StaleSlot> {
        if self.stale.ready_count() <= self.stale_max {
            return None;
        }
        self.stale.take_any()
    }

    /// Any outdated item, to be made invalid.
    pub fn any_stale(&mut self) -> Option<StaleSlot> {
        self.stale.take_any()
    }

    /// Something became durable.
    pub fn durable(&mut self, after: After) {
        match after {
            After::Reply(..) | After::Part(_) | After::FreesParts { .. } => {}
            After::Outdates {
                slot,
                class,
                key_hash,
            } => {
                self.stale.ready(class, StaleSlot { slot, key_hash });
            }
            After::Overwrites { key_hash } => {
                let released = self.stale.gone(key_hash);
                self.free_all(released);
            }
            After::Buries { slot, key_hash } => {
                let released = self.stale.burial_is_durable(key_hash, slot);
                self.free_all(released);
            }
            After::Supersedes {
                key_hash,
                timestamp,
            } => {
                let released = self.stale.superseded(key_hash, timestamp);
                self.free_all(released);
            }
            After::Erases { slot, key_hash } => {
                self.free(slot);
                let released = self.stale.gone(key_hash);
                self.free_all(released);
            }
        }
    }

    /// Up to `count` extents of which no slot is in use: those that their class has no use for soon, or any.
    pub fn empty(&mut self, all: bool, count: usize) -> BTreeSet<ExtentNo> {
        let slots = &self.slots;
        self.emptied.retain(|&extent| slots.is_empty(extent));
        if all {
            return self.emptied.iter().copied().take(count).collect();
        }
        let mut spare = BTreeSet::new();
        for &extent in &self.emptied {
            if spare.len() == count {
                break;
            }
            let class = slots.class_of(extent);
            spare.insert(extent);
            // Without those that go already.
            if !class.is_some_and(|class| slots.has_room_besides(class, &spare)) {
                spare.remove(&extent);
            }
        }
        spare
    }

    /// The cells of an extent.
    pub fn cells_of(&self, extent: ExtentNo) -> Vec<CellNo> {
        self.slots.cells_of(extent)
    }

    /// Gives extents back, of which no slot is in use.
    pub fn give(&mut self, mut extents: Vec<ExtentNo>) -> Result<()> {
        extents.retain(|&extent| self.slots.remove(extent));
        self.emptied.retain(|extent| !extents.contains(extent));
        self.source.give(&extents)
    }

    /// Memory in bytes, about.
    pub fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.stale.memory_bytes()
    }

    fn free(&mut self, slot: Location) {
        self.emptied.extend(self.slots.free(slot));
    }

    /// Slots are free: nothing depends on what they hold.
    pub fn free_all(&mut self, slots: impl IntoIterator<Item = Location>) {
        for slot in slots {
            self.free(slot);
        }
    }
}
