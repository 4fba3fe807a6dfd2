//! Page pointers: number, epoch and checksum of a page.

use kreon_base::{Epoch, PageNo};

use crate::bytes::{put_u48, u32_at, u48_at};

/// Identity of a store, drawn at random at its creation. It seeds every checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct StoreId(pub u64);

impl StoreId {
    /// The identity that seals nodes of an image of L0, so that they never verify as nodes of a level.
    #[must_use]
    pub const fn of_image(self) -> Self {
        Self(self.0 ^ u64::from_be_bytes(*b"L0 image"))
    }
}

/// Largest page number that a pointer holds: 48 bits.
pub const PAGE_NO_MAX: u64 = (1 << 48) - 1;

/// Largest epoch that a pointer holds: 48 bits, a checkpoint a millisecond for 8,900 years.
pub const EPOCH_MAX: u64 = (1 << 48) - 1;

/// Largest log offset that a leaf entry holds: 48 bits, in bytes.
pub const LOG_OFFSET_MAX: u64 = (1 << 48) - 1;

/// Longest volume in segments: 256 TiB, the range of [`LOG_OFFSET_MAX`].
pub const VOLUME_SEGMENTS_MAX: u32 = 1 << 27;

/// Bytes of an encoded [`PagePointer`].
pub const PAGE_POINTER_BYTES: usize = 16;

/// A pointer to a page. It states epoch and checksum of the page, so that a read detects lost, stale and misdirected
/// writes, which a checksum inside the page alone cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PagePointer {
    /// Number of the page, 0 to [`PAGE_NO_MAX`].
    pub page: PageNo,
    /// The epoch that wrote it, 0 to [`EPOCH_MAX`].
    pub epoch: Epoch,
    /// Checksum of the page.
    pub checksum: u32,
}

impl PagePointer {
    /// Encodes the pointer. A number above its documented maximum loses its upper bits.
    pub fn encode(&self) -> [u8; PAGE_POINTER_BYTES] {
        debug_assert!(self.page.0 <= PAGE_NO_MAX && self.epoch.0 <= EPOCH_MAX);
        let mut bytes = [0; PAGE_POINTER_BYTES];
        put_u48(&mut bytes, 0, self.page.0);
        put_u48(&mut bytes, 6, self.epoch.0);
        bytes[12..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Decodes a pointer. All 16-byte values are valid.
    pub fn decode(bytes: &[u8; PAGE_POINTER_BYTES]) -> Self {
        Self {
            page: PageNo(u48_at(bytes, 0)),
            epoch: Epoch(u48_at(bytes, 6)),
            checksum: u32_at(bytes, 12),
        }
    }
}
