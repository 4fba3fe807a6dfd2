//! The image of the index: blocks with records of what a recovery would find.

use kreon_base::{Checksum, Error, Result};
use kreon_format::StoreId;

use super::bytes::{array_at, put, u16_at, u32_at, u64_at, u128_at};
use super::superblock::{FORMAT_VERSION, MAGIC_AT, VERSION_AT};
use super::{ClassNo, ExtentNo, Timestamp};

/// Bytes of a block of an image.
pub const IMAGE_BLOCK_BYTES: usize = 256 << 10;

/// Bytes of the header of such a block; records follow it.
pub const IMAGE_HEADER_BYTES: usize = 40;

const MAGIC: [u8; 2] = *b"vI";

const STORE_AT: usize = 8;
const NUMBER_AT: usize = 16;
const PARTITION_AT: usize = 20;
const INDEX_KEY_BYTES_AT: usize = 22;
const USED_AT: usize = 24;
const INCARNATION_AT: usize = 28;
const SEQUENCE_AT: usize = 32;

const EXTENT: u8 = 1;
const OUTDATED: u8 = 2;
const TOMBSTONE: u8 = 3;
const KEY: u8 = 4;
const LONGER_KEY: u8 = 5;
const LARGE: u8 = 6;

/// The header of a block of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    /// The store.
    pub store: StoreId,
    /// Number of the block in the image, from 0.
    pub number: u32,
    /// The partition of all records.
    pub partition: u16,
    /// Bytes of each key that the index had.
    pub index_key_bytes: u16,
    /// The incarnation that wrote it.
    pub incarnation: u32,
    /// The largest sequence of the header of an extent.
    pub sequence: u64,
}

/// A record of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageRecord<'a> {
    /// An extent of the partition.
    Extent {
        /// Its number.
        extent: ExtentNo,
        /// Its class.
        class: ClassNo,
        /// A bit for each slot, set if that is in use; eight bytes for each 64 slots.
        used: &'a [u8],
    },
    /// A slot with an outdated item. Those of a class come oldest first.
    Outdated {
        /// Byte offset on the device.
        offset: u64,
        /// Class of the slot.
        class: ClassNo,
        /// Hash of the key of the item.
        key_hash: u128,
    },
    /// A tombstone that something depends on.
    Tombstone {
        /// Byte offset on the device.
        offset: u64,
        /// Age of the deletion.
        timestamp: Timestamp,
        /// Hash of the key.
        key_hash: u128,
    },
    /// An entry of the index. They come in its order.
    Key {
        /// Byte offset of the item on the device.
        offset: u64,
        /// What stands of the key in the index.
        bytes: &'a [u8],
        /// Whether that is all of it.
        is_whole: bool,
    },
    /// The parts of a large value that a key has.
    Large {
        /// Byte offset of its head on the device.
        head: u64,
        /// Timestamp of the head.
        timestamp: Timestamp,
        /// Byte offsets of the parts on the device in their order, eight bytes each.
        parts: &'a [u8],
    },
}

impl ImageRecord<'_> {
    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Extent {
                extent,
                class,
                used,
            } => {
                out.extend([EXTENT, class.0]);
                out.extend(((used.len() / 8) as u16).to_le_bytes());
                out.extend(extent.0.to_le_bytes());
                out.extend(used);
            }
            Self::Outdated {
                offset,
                class,
                key_hash,
            } => {
                out.extend([OUTDATED, class.0]);
                out.extend(offset.to_le_bytes());
                out.extend(key_hash.to_le_bytes());
            }
            Self::Tombstone {
                offset,
                timestamp,
                key_hash,
            } => {
                out.push(TOMBSTONE);
                out.extend(offset.to_le_bytes());
                out.extend(timestamp.0.to_le_bytes());
                out.extend(key_hash.to_le_bytes());
            }
            Self::Key {
                offset,
                bytes,
                is_whole,
            } => {
                out.push(if is_whole { KEY } else { LONGER_KEY });
                out.extend((bytes.len() as u16).to_le_bytes());
                out.extend(offset.to_le_bytes());
                out.extend(bytes);
            }
            Self::Large {
                head,
                timestamp,
                parts,
            } => {
                out.push(LARGE);
                out.extend(((parts.len() / 8) as u16).to_le_bytes());
                out.extend(head.to_le_bytes());
                out.extend(timestamp.0.to_le_bytes());
                out.extend(parts);
            }
        }
    }
}

/// The records of a block, in their order; `None` for the first that is none, which ends them.
pub struct ImageRecords<'a>(&'a [u8]);

impl<'a> ImageRecords<'a> {
    /// The first record, its length, taken from `bytes`.
    fn first(bytes: &'a [u8]) -> Option<(ImageRecord<'a>, usize)> {
        Some(match *bytes.first()? {
            EXTENT => {
                let used_bytes = usize::from(u16_at(bytes, 2)) * 8;
                let record = ImageRecord::Extent {
                    class: ClassNo(*bytes.get(1)?),
                    extent: ExtentNo(u32_at(bytes, 4)),
                    used: bytes.get(8..8 + used_bytes)?,
                };
                (record, 8 + used_bytes)
            }
            OUTDATED => {
                let record = ImageRecord::Outdated {
                    class: ClassNo(*bytes.get(1)?),
                    offset: u64_at(bytes, 2),
                    key_hash: u128_at(bytes.get(..26)?, 10),
                };
                (record, 26)
            }
            TOMBSTONE => {
                let record = ImageRecord::Tombstone {
                    offset: u64_at(bytes, 1),
                    timestamp: Timestamp(u64_at(bytes, 9)),
                    key_hash: u128_at(bytes.get(..33)?, 17),
                };
                (record, 33)
            }
            code @ (KEY | LONGER_KEY) => {
                let len_bytes = usize::from(u16_at(bytes, 1));
                let record = ImageRecord::Key {
                    offset: u64_at(bytes, 3),
                    bytes: bytes.get(11..11 + len_bytes)?,
                    is_whole: code == KEY,
                };
                (record, 11 + len_bytes)
            }
            LARGE => {
                let parts_bytes = usize::from(u16_at(bytes, 1)) * 8;
                let record = ImageRecord::Large {
                    head: u64_at(bytes, 3),
                    timestamp: Timestamp(u64_at(bytes, 11)),
                    parts: bytes.get(19..19 + parts_bytes)?,
                };
                (record, 19 + parts_bytes)
            }
            _ => return None,
        })
    }
}

impl<'a> Iterator for ImageRecords<'a> {
    type Item = Option<ImageRecord<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let first = Self::first(self.0);
        self.0 = first.and_then(|it| self.0.get(it.1..)).unwrap_or(&[]);
        Some(first.map(|it| it.0))
    }
}

impl ImageHeader {
    /// Seals a block with the first `used_bytes` of its room for records in use. The rest becomes zero. Returns its checksum.
    pub fn seal(&self, block: &mut [u8], offset: u64, used_bytes: usize) -> u32 {
        let header = &mut block[..IMAGE_HEADER_BYTES];
        header.fill(0);
        put(header, MAGIC_AT, &MAGIC);
        put(header, VERSION_AT, &[FORMAT_VERSION]);
        put(header, STORE_AT, &self.store.0.to_le_bytes());
        put(header, NUMBER_AT, &self.number.to_le_bytes());
        put(header, PARTITION_AT, &self.partition.to_le_bytes());
        put(
            header,
            INDEX_KEY_BYTES_AT,
            &self.index_key_bytes.to_le_bytes(),
        );
        put(header, USED_AT, &(used_bytes as u32).to_le_bytes());
        put(header, INCARNATION_AT, &self.incarnation.to_le_bytes());
        put(header, SEQUENCE_AT, &self.sequence.to_le_bytes());
        block[IMAGE_HEADER_BYTES + used_bytes..].fill(0);
        let checksum = checksum(block, self.store, offset);
        put(block, 0, &checksum.to_le_bytes());
        checksum
    }

    /// The partition that the beginning of a block tells. It is not verified before all of the block is.
    pub fn partition_told_by(begin: &[u8]) -> u16 {
        u16_at(begin, PARTITION_AT)
    }

    /// The header and the records of the block at byte `offset` of the device of `store`, and its checksum. `Corruption` if
    /// it does not verify.
    pub fn decode(
        block: &[u8],
        store: StoreId,
        offset: u64,
    ) -> Result<(Self, ImageRecords<'_>, u32)> {
        let stored = u32_at(block, 0);
        let records = block.get(IMAGE_HEADER_BYTES..);
        let records = records.and_then(|it| it.get(..u32_at(block, USED_AT) as usize));
        let magic: [u8; 2] = array_at(block, MAGIC_AT);
        let is_sound = stored == checksum(block, store, offset)
            && magic == MAGIC
            && block.get(VERSION_AT) == Some(&FORMAT_VERSION)
            && u64_at(block, STORE_AT) == store.0;
        let damaged = || {
            Error::corruption(format!(
                "the block of an image at byte {offset} does not verify"
            ))
        };
        let records = records.filter(|_| is_sound).ok_or_else(damaged)?;
        let header = Self {
            store,
            number: u32_at(block, NUMBER_AT),
            partition: u16_at(block, PARTITION_AT),
            index_key_bytes: u16_at(block, INDEX_KEY_BYTES_AT),
            incarnation: u32_at(block, INCARNATION_AT),
            sequence: u64_at(block, SEQUENCE_AT),
        };
        Ok((header, ImageRecords(records), stored))
    }
}

fn checksum(block: &[u8], store: StoreId, offset: u64) -> u32 {
    let seed = [store.0, offset].map(u64::to_le_bytes);
    let sealed = block.get(MAGIC_AT..).unwrap_or_default();
    Checksum::new()
        .with(seed.as_flattened())
        .with(sealed)
        .finish()
}
