//! Which slots were judged: one bit each.

use std::collections::BTreeMap;

use crate::format::{Class, ExtentNo};
use crate::index::Location;

/// Slots that have been judged, by extent. As large as the bitmaps of the slots in use.
#[derive(Default)]
pub struct Judged(BTreeMap<ExtentNo, Slots>);

struct Slots {
    class: Class,
    bits: Vec<u64>,
}

impl Judged {
    /// Begins an extent whose slots are of `class`.
    pub fn add(&mut self, extent: ExtentNo, class: Class) {
        let words = (class.slots_per_extent as usize).div_ceil(64);
        let bits = vec![0; words];
        self.0.insert(extent, Slots { class, bits });
    }

    /// The slot at `at` is judged. Nothing happens if its extent was not begun.
    pub fn set(&mut self, at: Location) {
        let extent = ExtentNo::of(at.offset());
        if let Some(slots) = self.0.get_mut(&extent)
            && let Some(slot) = slots.number(extent, at)
            && let Some(word) = slots.bits.get_mut(slot / 64)
        {
            *word |= 1 << (slot % 64);
        }
    }

    /// Whether the slot at `at` is judged.
    pub fn has(&self, at: Location) -> bool {
        let extent = ExtentNo::of(at.offset());
        let word = self.0.get(&extent).and_then(|slots| {
            let slot = slots.number(extent, at)?;
            Some(slots.bits.get(slot / 64)? >> (slot % 64) & 1)
        });
        word == Some(1)
    }
}

impl Slots {
    fn number(&self, extent: ExtentNo, at: Location) -> Option<usize> {
        let offset = u32::try_from(at.offset() - extent.offset()).ok()?;
        Some(self.class.slot_of(offset)? as usize)
    }
}
