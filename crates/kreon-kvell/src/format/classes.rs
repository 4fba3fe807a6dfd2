//! Classes of slots: their sizes, and where slots lie in an extent.

use kreon_base::{Error, Result, id};

use super::geometry::{EXTENT_BYTES, ExtentNo, SLOT_BYTES_MAX, SLOTS_AT, Slot};

/// Smallest atomic unit: a sector, which no power cut tears.
pub const ATOMIC_BYTES_MIN: usize = 512;

/// Largest atomic unit: a page, KVell's unit of I/O.
pub const ATOMIC_BYTES_MAX: usize = 4096;

/// Bytes of an extent behind its header.
const ROOM_BYTES: usize = EXTENT_BYTES - SLOTS_AT;

/// Sizes of slots up to [`STEP_BYTES`] that share an atomic unit well: a half or a third of a power of two.
const SMALL_BYTES: [usize; 10] = [64, 96, 128, 168, 256, 336, 512, 680, 1024, 1360];

/// From here on sizes go up by it, as far as [`STEPS_END_BYTES`].
const STEP_BYTES: usize = 512;
const STEPS_END_BYTES: usize = 8 << 10;

id!(
    /// Number of a class: its rank by size. What it stands for depends on the atomic unit of the store.
    ClassNo(u8), "class"
);

/// A class: slots of one size.
///
/// A *cell* is the unit of I/O, of caching and of the order of writes: one atomic unit with the slots in it, or one
/// larger slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Bytes of a slot, a multiple of 8.
    pub slot_bytes: u32,
    /// Bytes of a cell, a multiple of the atomic unit. Cells are aligned to the atomic unit.
    pub cell_bytes: u32,
    /// Slots in a cell. Behind the last one there may be unused bytes.
    pub slots_per_cell: u32,
    /// Slots in an extent.
    pub slots_per_extent: u32,
}

/// All classes of a store. A table of about 800 bytes, built at the opening.
///
/// Slots up to the atomic unit never cross its border, so such a slot can be overwritten in place: a power cut leaves the
/// old or the new content of all slots of the unit. Larger slots consist of whole units and can be torn.
#[derive(Clone, Debug)]
pub struct Classes {
    atomic_bytes: u32,
    classes: Vec<Class>,
}

impl Classes {
    /// The classes for an atomic unit of `atomic_bytes`: a power of two of [`ATOMIC_BYTES_MIN`] to [`ATOMIC_BYTES_MAX`],
    /// the largest write that power cuts do not tear, and at least the block of the device. Otherwise
    /// `InvalidArgument`.
    pub fn new(atomic_bytes: usize) -> Result<Self> {
        let is_valid = atomic_bytes.is_power_of_two()
            && (ATOMIC_BYTES_MIN..=ATOMIC_BYTES_MAX).contains(&atomic_bytes);
        if !is_valid {
            return Err(Error::invalid(format!(
                "an atomic unit of {atomic_bytes} bytes is no power of two from {ATOMIC_BYTES_MIN} to {ATOMIC_BYTES_MAX}"
            )));
        }
        let mut sizes: Vec<usize> = wished_sizes()
            .map(|wished| slot_bytes_near(wished, atomic_bytes))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        Ok(Self {
            atomic_bytes: atomic_bytes as u32,
            classes: sizes
                .into_iter()
                .map(|slot_bytes| Class::new(slot_bytes, atomic_bytes))
                .collect(),
        })
    }

    /// Bytes of the atomic unit.
    pub fn atomic_bytes(&self) -> usize {
        self.atomic_bytes as usize
    }

    /// Bytes of the largest slot: [`SLOT_BYTES_MAX`], rounded down to whole atomic units.
    pub fn slot_bytes_max(&self) -> usize {
        SLOT_BYTES_MAX / self.atomic_bytes() * self.atomic_bytes()
    }

    /// All classes with their numbers, by ascending size.
    pub fn iter(&self) -> impl Iterator<Item = (ClassNo, Class)> + '_ {
        self.classes
            .iter()
            .enumerate()
            .map(|(number, class)| (ClassNo(number as u8), *class))
    }

    /// The class with this number, which may come from the device; `None` if there is none.
    pub fn get(&self, class: ClassNo) -> Option<Class> {
        self.classes.get(usize::from(class.0)).copied()
    }

    /// The class with the smallest slots for an item of `item_bytes`; `None` above
    /// [`slot_bytes_max`](Self::slot_bytes_max). A binary search.
    pub fn class_of(&self, item_bytes: usize) -> Option<ClassNo> {
        let rank = self
            .classes
            .partition_point(|class| (class.slot_bytes as usize) < item_bytes);
        (rank < self.classes.len()).then_some(ClassNo(rank as u8))
    }

    /// Whether a slot of `class` can be overwritten in place: it lies within one atomic unit.
    pub fn is_in_place(&self, class: ClassNo) -> bool {
        self.get(class)
            .is_some_and(|class| class.slot_bytes <= self.atomic_bytes)
    }

    /// Offset of a slot in its extent, in bytes; `None` if there is no such class or slot.
    pub fn slot_offset(&self, class: ClassNo, slot: u32) -> Option<u32> {
        self.get(class)?.slot_offset(slot)
    }

    /// Offset of the cell with this slot in its extent, in bytes; `None` if there is no such class or slot.
    pub fn cell_offset(&self, class: ClassNo, slot: u32) -> Option<u32> {
        self.get(class)?.cell_offset(slot)
    }

    /// The slot that begins at this offset in its extent; `None` if none does.
    pub fn slot_of(&self, class: ClassNo, offset_in_extent: u32) -> Option<u32> {
        self.get(class)?.slot_of(offset_in_extent)
    }

    /// The slot of `extent`, whose class is `class`; `None` if there is no such class or slot.
    pub fn slot(&self, extent: ExtentNo, class: ClassNo, slot: u32) -> Option<Slot> {
        let sizes = self.get(class)?;
        Some(Slot {
            offset: extent.offset() + u64::from(sizes.slot_offset(slot)?),
            class,
            bytes: sizes.slot_bytes,
        })
    }
}

impl Class {
    fn new(slot_bytes: usize, atomic_bytes: usize) -> Self {
        let cell_bytes = slot_bytes.max(atomic_bytes);
        let slots_per_cell = cell_bytes / slot_bytes;
        Self {
            slot_bytes: slot_bytes as u32,
            cell_bytes: cell_bytes as u32,
            slots_per_cell: slots_per_cell as u32,
            slots_per_extent: (ROOM_BYTES / cell_bytes * slots_per_cell) as u32,
        }
    }

    /// Offset of a slot in its extent, in bytes; `None` behind the last slot.
    pub const fn slot_offset(&self, slot: u32) -> Option<u32> {
        match self.cell_offset(slot) {
            Some(cell) => Some(cell + slot % self.slots_per_cell * self.slot_bytes),
            None => None,
        }
    }

    /// Offset of the cell with this slot in its extent, in bytes; `None` behind the last slot.
    pub const fn cell_offset(&self, slot: u32) -> Option<u32> {
        match slot < self.slots_per_extent {
            true => Some(SLOTS_AT as u32 + slot / self.slots_per_cell * self.cell_bytes),
            false => None,
        }
    }

    /// The slot that begins at this offset in its extent; `None` if none does.
    pub const fn slot_of(&self, offset_in_extent: u32) -> Option<u32> {
        let Some(at) = offset_in_extent.checked_sub(SLOTS_AT as u32) else {
            return None;
        };
        let (cell, within) = (at / self.cell_bytes, at % self.cell_bytes);
        let (rank, rest) = (within / self.slot_bytes, within % self.slot_bytes);
        let slot = cell * self.slots_per_cell + rank;
        let begins = rest == 0 && rank < self.slots_per_cell && slot < self.slots_per_extent;
        match begins {
            true => Some(slot),
            false => None,
        }
    }
}

/// Sizes that suit items, whatever the atomic unit: steps of 512 bytes to 8 KiB, then of about an eighth. Beyond 8 KiB a
/// size is the room of an extent divided by a number of slots: sizes between two such would not fit more often.
fn wished_sizes() -> impl Iterator<Item = usize> {
    let steps = (STEP_BYTES..=STEPS_END_BYTES).step_by(STEP_BYTES);
    let first = ROOM_BYTES / SLOT_BYTES_MAX;
    let counts = std::iter::successors(Some(first), |&count| Some(count + (count / 8).max(1)));
    let large = counts
        .map(|count| ROOM_BYTES / count)
        .take_while(|&size| size > STEPS_END_BYTES);
    SMALL_BYTES.into_iter().chain(steps).chain(large)
}

/// The size of a slot that a wished one stands for.
///
/// Up to the atomic unit: the largest multiple of 8 of which as many fit into the unit. Up to 8 KiB: rounded up to whole
/// units. Beyond: rounded down, so that as many fit into an extent as were wished.
fn slot_bytes_near(wished: usize, atomic_bytes: usize) -> usize {
    if wished <= atomic_bytes {
        atomic_bytes / (atomic_bytes / wished) / 8 * 8
    } else if wished <= STEPS_END_BYTES {
        wished.next_multiple_of(atomic_bytes)
    } else {
        wished / atomic_bytes * atomic_bytes
    }
}
