//! The place of an item.

use std::fmt;

/// Bytes of a location in the index.
pub(super) const LOCATION_BYTES: usize = 6;

/// Unit of a location in bytes: items begin at multiples of it.
const UNIT_BYTES: u64 = 8;

/// The place of an item on the device: a multiple of 8 bytes below 2 PiB, in 48 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(u64);

impl Location {
    /// One more than the largest location, in units.
    pub(super) const UNITS_LIMIT: u64 = 1 << 48;

    /// The location of an item at `offset` bytes; `None` if that is no multiple of 8 or not below 2^51.
    pub const fn new(offset: u64) -> Option<Self> {
        let units = offset / UNIT_BYTES;
        if offset.is_multiple_of(UNIT_BYTES) && units < Self::UNITS_LIMIT {
            Some(Self(units))
        } else {
            None
        }
    }

    /// Offset of the item on the device in bytes.
    pub const fn offset(self) -> u64 {
        self.0 * UNIT_BYTES
    }

    /// The location in units of 8 bytes.
    pub(super) const fn units(self) -> u64 {
        self.0
    }

    /// The location of so many units, which came from [`Self::units`].
    pub(super) const fn from_units(units: u64) -> Self {
        debug_assert!(units < Self::UNITS_LIMIT);
        Self(units)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({:#x})", self.offset())
    }
}
