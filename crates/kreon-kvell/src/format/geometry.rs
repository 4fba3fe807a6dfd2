//! The device as extents, and a slot on it.

use kreon_base::{Error, PAGE_BYTES, id};

use super::ClassNo;

/// Bytes of an extent: the unit of space, aligned to its size. Extent 0 holds the superblocks, the others hold items.
pub const EXTENT_BYTES: usize = 1 << 20;

/// Bytes of the header of an extent: its first sector, the largest write that no device tears.
pub const EXTENT_HEADER_BYTES: usize = 512;

/// Offset of the first slot in an extent, in bytes. The page in front of it belongs to the header.
pub const SLOTS_AT: usize = PAGE_BYTES;

/// Bytes of the largest slot: four of them fill an extent. With atomic units above 1 KiB it is rounded down to whole units.
pub const SLOT_BYTES_MAX: usize = (EXTENT_BYTES - SLOTS_AT) / 4;

/// Largest byte offset of an item on the device: 48 bits count units of 8 bytes.
pub const OFFSET_MAX: u64 = ((1 << 48) - 1) * 8;

/// The bytes of one sector.
pub type SectorBytes = [u8; EXTENT_HEADER_BYTES];

id!(
    /// Number of an extent: its byte offset divided by [`EXTENT_BYTES`], up to 2³¹ - 1.
    ExtentNo(u32), "extent"
);

impl ExtentNo {
    /// The extent that holds the byte at `offset`, which is at most [`OFFSET_MAX`].
    pub const fn of(offset: u64) -> Self {
        Self((offset / EXTENT_BYTES as u64) as u32)
    }

    /// Byte offset of its start on the device.
    pub const fn offset(self) -> u64 {
        self.0 as u64 * EXTENT_BYTES as u64
    }
}

/// A slot on the device: room for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Byte offset on the device, a multiple of 8.
    pub offset: u64,
    /// Class of the extent.
    pub class: ClassNo,
    /// Its length in bytes, that of its class.
    pub bytes: u32,
}

impl Slot {
    /// The extent of the slot.
    pub const fn extent(&self) -> ExtentNo {
        ExtentNo::of(self.offset)
    }

    /// The item that should be here is not, or does not verify.
    #[cold]
    pub fn damaged(&self) -> Error {
        let (offset, bytes) = (self.offset, self.bytes);
        Error::corruption(format!(
            "the item at byte {offset} of the volume, in a slot of {bytes} bytes, does not verify"
        ))
    }
}
