//! Values that are longer than a slot: parts in slots of their own, and an item with their places.

use kreon_base::{Error, Result, VALUE_BYTES_MAX};

use super::bytes::{u32_at, u64_at, u128_at};
use super::classes::ATOMIC_BYTES_MAX;
use super::geometry::{OFFSET_MAX, SLOT_BYTES_MAX};
use super::item::ITEM_HEADER_BYTES;
use super::timestamp::Timestamp;

/// Bytes in front of the piece in a part: hash of the key (16), timestamp of the owner (8), number (4).
pub const PART_PREFIX_BYTES: usize = 28;

/// Most parts of a value: those of the longest value in the largest slots, whatever the atomic unit.
pub const PARTS_MAX: usize = VALUE_BYTES_MAX.div_ceil(PIECE_BYTES_MAX);

/// Bytes of a piece in the largest slot of whole pages.
const PIECE_BYTES_MAX: usize =
    SLOT_BYTES_MAX / ATOMIC_BYTES_MAX * ATOMIC_BYTES_MAX - ITEM_HEADER_BYTES - PART_PREFIX_BYTES;

/// Bytes in front of the offsets: value bytes (4), checksum (4).
const FIXED_BYTES: usize = 8;

/// What a part belongs to. The writes of parts end before their owner is written; a part whose owner does not name its
/// place is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// Hash of the key of the owner.
    pub key_hash: u128,
    /// Timestamp of the owner, the [`Large`](super::ItemKind::Large) item.
    pub timestamp: Timestamp,
    /// Number of the part in the value, from 0.
    pub number: u32,
}

impl PartOf {
    /// The prefix of the value of a part.
    pub fn encode(&self) -> [u8; PART_PREFIX_BYTES] {
        let mut bytes = [0; PART_PREFIX_BYTES];
        bytes[..16].copy_from_slice(&self.key_hash.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.timestamp.0.to_le_bytes());
        bytes[24..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// The owner and the piece in the value of a part; `None` if the value is too short.
    pub fn decode(value: &[u8]) -> Option<(Self, &[u8])> {
        let (prefix, piece) = value.split_first_chunk::<PART_PREFIX_BYTES>()?;
        let part = Self {
            key_hash: u128_at(prefix, 0),
            timestamp: Timestamp(u64_at(prefix, 16)),
            number: u32_at(prefix, 24),
        };
        Some((part, piece))
    }
}

/// The value of a [`Large`](super::ItemKind::Large) item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeValue {
    /// Bytes of the whole value, up to [`VALUE_BYTES_MAX`].
    pub value_bytes: u32,
    /// CRC-32C of the whole value.
    pub checksum: u32,
    /// Byte offsets of the parts on the device in their order, up to [`PARTS_MAX`] multiples of 8.
    pub parts: Vec<u64>,
}

impl LargeValue {
    /// The bytes of the value: 8, and 8 for each part.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.parts.len() * 8);
        bytes.extend(self.value_bytes.to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(self.parts.iter().flat_map(|part| part.to_le_bytes()));
        bytes
    }

    /// The content of a value. `Corruption` if it cannot be one: the item that holds it has a checksum, so such bytes were
    /// written so.
    pub fn decode(value: &[u8]) -> Result<Self> {
        let damaged = |what: &str| Error::corruption(format!("places of a large value: {what}"));
        let (fixed, rest) = value
            .split_first_chunk::<FIXED_BYTES>()
            .ok_or_else(|| damaged("too short"))?;
        let (offsets, odd) = rest.as_chunks::<8>();
        if !odd.is_empty() || offsets.is_empty() || offsets.len() > PARTS_MAX {
            return Err(damaged("not as many as a value has"));
        }
        let parts: Vec<u64> = offsets.iter().copied().map(u64::from_le_bytes).collect();
        if parts.iter().any(|&at| at > OFFSET_MAX || at % 8 != 0) {
            return Err(damaged("an offset is out of range"));
        }
        let value_bytes = u32_at(fixed, 0);
        if value_bytes as usize > VALUE_BYTES_MAX {
            return Err(damaged("the value is too long"));
        }
        Ok(Self {
            value_bytes,
            checksum: u32_at(fixed, 4),
            parts,
        })
    }
}
