//! The slots of a partition's extents, one bit each.
//!
//! The paper keeps stacks of free slots on the device, with 64 heads in memory (KVell 5.3). A bit takes an eighth of a
//! byte, costs no I/O, and recovery, which reads everything anyway, sets it again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon_base::Error;

use crate::cache::{BLOCK_BYTES, CellNo};
use crate::format::{ClassNo, Classes, ExtentNo, Slot};
use crate::index::Location;

/// A slot that was free and now is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Where it is.
    pub slot: Location,
    /// Whether no other slot of its cell is in use: nothing needs to be read before the cell is written.
    pub is_alone: bool,
}

/// A slot and the cell that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub slot: Slot,
    pub location: Location,
    pub cell: CellNo,
    pub cell_bytes: usize,
    /// Offset of the slot in the cell.
    pub at: usize,
    /// Whether the cell has more slots than this one.
    pub is_shared: bool,
}

impl Place {
    /// The item that should be here is not, or does not verify.
    #[cold]
    pub fn damaged(&self) -> Error {
        self.slot.damaged()
    }
}

/// The extents of a partition and which of their slots are in use: by an item, a tombstone, or an outdated item that is
/// still on the device.
pub struct Slots {
    classes: Arc<Classes>,
    extents: BTreeMap<ExtentNo, ExtentSlots>,
    /// By class: its extents with a free slot.
    with_room: BTreeMap<ClassNo, BTreeSet<ExtentNo>>,
    /// Bytes of all bitmaps.
    bitmap_bytes: usize,
}

struct ExtentSlots {
    class: ClassNo,
    /// One bit a slot, set if in use.
    used: Vec<u64>,
    used_count: u32,
    /// No slot before this one is free.
    search_from: u32,
}

impl Slots {
    pub fn new(classes: Arc<Classes>) -> Self {
        Self {
            classes,
            extents: BTreeMap::new(),
            with_room: BTreeMap::new(),
            bitmap_bytes: 0,
        }
    }

    /// Adds an extent of `class` with free slots only.
    pub fn add(&mut self, extent: ExtentNo, class: ClassNo) {
        let count = self
            .classes
            .get(class)
            .map_or(0, |shape| shape.slots_per_extent);
        let used = vec![0; (count as usize).div_ceil(64)];
        self.bitmap_bytes += used.len() * 8;
        let slots = ExtentSlots {
            class,
            used,
            used_count: 0,
            search_from: 0,
        };
        self.extents.insert(extent, slots);
        self.with_room.entry(class).or_default().insert(extent);
    }

    /// Adds an extent of `class` with these slots in use, a bit each. `None`, and nothing is changed, if the class has not as
    /// many, or the extent is there already.
    pub fn add_used(&mut self, extent: ExtentNo, class: ClassNo, used: Vec<u64>) -> Option<()> {
        let count = self.classes.get(class)?.slots_per_extent;
        let used_count = used.iter().map(|word| word.count_ones()).sum();
        let is_fit = used.len() == (count as usize).div_ceil(64) && used_count <= count;
        if !is_fit || self.extents.contains_key(&extent) {
            return None;
        }
        self.bitmap_bytes += used.len() * 8;
        let slots = ExtentSlots {
            class,
            used,
            used_count,
            search_from: 0,
        };
        self.extents.insert(extent, slots);
        if used_count < count {
            self.with_room.entry(class).or_default().insert(extent);
        }
        Some(())
    }

    /// All extents with their class and a bit for each slot, set if that is in use.
    pub fn bitmaps(&self) -> impl Iterator<Item = (ExtentNo, ClassNo, &[u64])> {
        self.extents
            .iter()
            .map(|(&no, it)| (no, it.class, it.used.as_slice()))
    }

    /// A bit for each slot of an extent of `class`, set if that is in use.
    pub fn bitmap(&self, extent: ExtentNo, class: ClassNo) -> Option<&[u64]> {
        let slots = self.extents.get(&extent)?;
        (slots.class == class).then_some(slots.used.as_slice())
    }

    /// Takes a free slot of `class`; `None` if no extent has one.
    pub fn take(&mut self, class: ClassNo) -> Option<Taken> {
        let shape = self.classes.get(class)?;
        let rooms = self.with_room.get_mut(&class)?;
        let extent = *rooms.first()?;
        let slots = self.extents.get_mut(&extent)?;
        let slot = slots.next_free(shape.slots_per_extent)?;
        slots.set(slot);
        slots.search_from = slot + 1;
        if slots.used_count == shape.slots_per_extent {
            rooms.remove(&extent);
        }
        let cell = slot - slot % shape.slots_per_cell;
        let is_alone = (cell..cell + shape.slots_per_cell)
            .filter(|&other| other < shape.slots_per_extent)
            .all(|other| other == slot || !slots.is_used(other));
        let offset = self.classes.slot(extent, class, slot)?.offset;
        Some(Taken {
            slot: Location::new(offset)?,
            is_alone,
        })
    }

    /// Marks the slot at `at` as in use, for recovery.
    pub fn mark(&mut self, at: Location) {
        let Some((extent, class, slot)) = self.find(at) else {
            return;
        };
        let count = self
            .classes
            .get(class)
            .map_or(0, |shape| shape.slots_per_extent);
        let Some(slots) = self.extents.get_mut(&extent) else {
            return;
        };
        if !slots.is_used(slot) {
            slots.set(slot);
        }
        if slots.used_count == count
            && let Some(rooms) = self.with_room.get_mut(&class)
        {
            rooms.remove(&extent);
        }
    }

    /// Marks slots of an extent as in use, for recovery: those whose bits are set.
    pub fn mark_all(&mut self, extent: ExtentNo, used: &[u64]) {
        let Some(slots) = self.extents.get_mut(&extent) else {
            return;
        };
        for (word, more) in slots.used.iter_mut().zip(used) {
            slots.used_count += (more & !*word).count_ones();
            *word |= more;
        }
        let shape = self.classes.get(slots.class);
        if shape.is_some_and(|shape| slots.used_count == shape.slots_per_extent)
            && let Some(rooms) = self.with_room.get_mut(&slots.class)
        {
            rooms.remove(&extent);
        }
    }

    /// Takes all free slots of the cell of `at` out of use, up to the next opening: the cell cannot be read.
    pub fn give_up_cell(&mut self, at: Location) {
        let Some((extent, class, slot)) = self.find(at) else {
            return;
        };
        let Some(shape) = self.classes.get(class) else {
            return;
        };
        let first = slot - slot % shape.slots_per_cell;
        let all = (first..first + shape.slots_per_cell).filter_map(|slot| {
            let slot = self.classes.slot(extent, class, slot)?;
            Location::new(slot.offset)
        });
        for at in all.collect::<Vec<_>>() {
            self.mark(at);
        }
    }

    /// Makes the slot at `at` free again. Returns its extent if no slot of that is in use any more.
    pub fn free(&mut self, at: Location) -> Option<ExtentNo> {
        let (extent, class, slot) = self.find(at)?;
        let slots = self.extents.get_mut(&extent)?;
        debug_assert!(slots.is_used(slot), "{at:?} is freed twice");
        if slots.is_used(slot) {
            slots.clear(slot);
        }
        slots.search_from = slots.search_from.min(slot);
        self.with_room.entry(class).or_default().insert(extent);
        (slots.used_count == 0).then_some(extent)
    }

    /// Takes an extent without slots in use out, so that it can be given back; `false` if it has some.
    pub fn remove(&mut self, extent: ExtentNo) -> bool {
        let Some(slots) = self.extents.get(&extent) else {
            return false;
        };
        if slots.used_count > 0 {
            return false;
        }
        self.bitmap_bytes -= slots.used.len() * 8;
        if let Some(rooms) = self.with_room.get_mut(&slots.class) {
            rooms.remove(&extent);
        }
        self.extents.remove(&extent);
        true
    }

    /// Whether the slot at `at` is in use; `false` if no slot of this partition begins there.
    pub fn is_in_use(&self, at: Location) -> bool {
        self.find(at).is_some_and(|(extent, _, slot)| {
            let slots = self.extents.get(&extent);
            slots.is_some_and(|slots| slots.is_used(slot))
        })
    }

    /// The slot at `at` and its cell; `None` if no slot of this partition begins there.
    pub fn place(&self, at: Location) -> Option<Place> {
        let (extent, class, slot) = self.find(at)?;
        let shape = self.classes.get(class)?;
        let slot_at = shape.slot_offset(slot)?;
        let cell_at = shape.cell_offset(slot)?;
        Some(Place {
            slot: self.classes.slot(extent, class, slot)?,
            location: at,
            cell: CellNo((extent.offset() + u64::from(cell_at)) / BLOCK_BYTES as u64),
            cell_bytes: shape.cell_bytes as usize,
            at: (slot_at - cell_at) as usize,
            is_shared: shape.slots_per_cell > 1,
        })
    }

    /// Whether extents of `class` besides `extents` have room: then those are not needed for the next item.
    pub fn has_room_besides(&self, class: ClassNo, extents: &BTreeSet<ExtentNo>) -> bool {
        let rooms = self.with_room.get(&class);
        rooms.is_some_and(|rooms| rooms.iter().any(|other| !extents.contains(other)))
    }

    /// The class of an extent of this partition.
    pub fn class_of(&self, extent: ExtentNo) -> Option<ClassNo> {
        self.extents.get(&extent).map(|slots| slots.class)
    }

    /// Whether no slot of an extent is in use.
    pub fn is_empty(&self, extent: ExtentNo) -> bool {
        let slots = self.extents.get(&extent);
        slots.is_some_and(|slots| slots.used_count == 0)
    }

    /// The cells of an extent.
    pub fn cells_of(&self, extent: ExtentNo) -> Vec<CellNo> {
        let shape = self
            .class_of(extent)
            .and_then(|class| self.classes.get(class));
        let Some(shape) = shape else {
            return Vec::new();
        };
        let firsts = (0..shape.slots_per_extent).step_by(shape.slots_per_cell.max(1) as usize);
        let cells = firsts.filter_map(|slot| shape.cell_offset(slot));
        cells
            .map(|at| CellNo((extent.offset() + u64::from(at)) / BLOCK_BYTES as u64))
            .collect()
    }

    /// All extents with their class and slots in use.
    pub fn extents(&self) -> impl Iterator<Item = (ExtentNo, ClassNo, u32)> {
        self.extents
            .iter()
            .map(|(&no, it)| (no, it.class, it.used_count))
    }

    /// Memory of the bitmaps, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bitmap_bytes + self.extents.len() * size_of::<(ExtentNo, ExtentSlots)>()
    }

    fn find(&self, at: Location) -> Option<(ExtentNo, ClassNo, u32)> {
        let extent = ExtentNo::of(at.offset());
        let class = self.extents.get(&extent)?.class;
        let offset = u32::try_from(at.offset() - extent.offset()).ok()?;
        let slot = self.classes.slot_of(class, offset)?;
        Some((extent, class, slot))
    }
}

impl ExtentSlots {
    fn is_used(&self, slot: u32) -> bool {
        let word = self.used.get(slot as usize / 64).copied();
        word.is_none_or(|word| word >> (slot % 64) & 1 == 1)
    }

    fn set(&mut self, slot: u32) {
        if let Some(word) = self.used.get_mut(slot as usize / 64) {
            *word |= 1 << (slot % 64);
            self.used_count += 1;
        }
    }

    fn clear(&mut self, slot: u32) {
        if let Some(word) = self.used.get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
            self.used_count -= 1;
        }
    }

    fn next_free(&self, count: u32) -> Option<u32> {
        let first = self.search_from as usize / 64;
        let words = self.used.iter().enumerate().skip(first);
        let mut free = words.filter_map(|(at, &word)| {
            let from = (self.search_from as usize).saturating_sub(at * 64).min(63);
            let open = !word & (u64::MAX << from);
            (open != 0).then(|| at as u32 * 64 + open.trailing_zeros())
        });
        free.next().filter(|&slot| slot < count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(item_bytes: usize) -> (Slots, ClassNo) {
        let classes = Arc::new(Classes::new(512).expect("a valid atomic unit"));
        let class = classes.class_of(item_bytes).expect("a class");
        let mut slots = Slots::new(classes);
        slots.add(ExtentNo(1), class);
        (slots, class)
    }

    #[test]
    fn every_slot_is_taken_once_and_then_none() {
        for item_bytes in [64, 96, 168, 512, 1000, 200_000] {
            let (mut slots, class) = slots(item_bytes);
            let mut seen = BTreeSet::new();
            while let Some(taken) = slots.take(class) {
                assert!(seen.insert(taken.slot));
            }
            let count = slots.classes.get(class).expect("a class").slots_per_extent;
            assert_eq!(seen.len(), count as usize, "{item_bytes}");
            for &slot in &seen {
                slots.free(slot);
            }
            assert!(slots.remove(ExtentNo(1)));
            assert_eq!(slots.take(class), None);
        }
    }

    #[test]
    fn a_slot_is_alone_until_its_cell_has_a_second() {
        let (mut slots, class) = slots(128);
        let alone: Vec<bool> = (0..5)
            .filter_map(|_| slots.take(class))
            .map(|taken| taken.is_alone)
            .collect();
        assert_eq!(alone, [true, false, false, false, true]);
    }

    #[test]
    fn no_slot_of_a_cell_that_was_given_up_is_taken() {
        let (mut slots, class) = slots(128);
        let first = slots.take(class).expect("a free slot").slot;
        slots.give_up_cell(first);
        let next = slots.take(class).expect("a free slot");
        let cells = [first, next.slot].map(|at| slots.place(at).map(|place| place.cell));
        assert!(cells[0] != cells[1] && next.is_alone);
    }

    #[test]
    fn a_freed_slot_is_taken_before_later_ones() {
        let (mut slots, class) = slots(1000);
        let taken: Vec<Location> = (0..10)
            .filter_map(|_| slots.take(class))
            .map(|it| it.slot)
            .collect();
        slots.free(taken[3]);
        slots.free(taken[1]);
        assert_eq!(slots.take(class).map(|it| it.slot), Some(taken[1]));
        assert_eq!(slots.take(class).map(|it| it.slot), Some(taken[3]));
        assert!(slots.take(class).is_some_and(|it| it.slot > taken[9]));
    }

    #[test]
    fn a_full_extent_has_room_again_after_one_slot_is_free() {
        let (mut slots, class) = slots(200_000);
        let mut last = None;
        while let Some(taken) = slots.take(class) {
            last = Some(taken.slot);
        }
        let last = last.expect("an extent has slots");
        assert_eq!(slots.free(last), None);
        assert_eq!(slots.take(class).map(|it| it.slot), Some(last));
    }
}
