//! The header of an extent: its first sector.

use kreon_base::{Checksum, Error, Result};
use kreon_format::StoreId;

use super::bytes::{put, u16_at, u32_at, u64_at};
use super::geometry::{EXTENT_HEADER_BYTES, ExtentNo, SectorBytes};
use super::superblock::{FORMAT_VERSION, PARTITIONS_MAX, newer};
use super::{ClassNo, superblock::MAGIC_AT, superblock::VERSION_AT};

const MAGIC: [u8; 2] = *b"vE";

const STORE_AT: usize = 8;
const EXTENT_AT: usize = 16;
const PARTITION_AT: usize = 20;
const CLASS_AT: usize = 22;
const SEQUENCE_AT: usize = 24;

/// Says whose the slots of an extent are. It is one sector, so it is never torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentHeader {
    /// The store.
    pub store: StoreId,
    /// Number of the extent, 1 or more.
    pub extent: ExtentNo,
    /// The partition, less than [`PARTITIONS_MAX`].
    pub partition: u16,
    /// Class of all its slots.
    pub class: ClassNo,
    /// Counts the extents that the store took into use: a later use of the same extent has a higher number.
    pub sequence: u64,
}

/// Content of the first sector of an extent.
#[derive(Clone, Debug)]
pub enum FoundExtent {
    /// All zeroes: not in use.
    Blank,
    /// No valid header; the error says what is wrong. `InvalidArgument` if a newer format wrote it, else `Corruption`.
    Bad(Error),
    /// A valid header.
    Header(ExtentHeader),
}

impl ExtentHeader {
    /// The bytes of the header, sealed.
    pub fn encode(&self) -> SectorBytes {
        let mut bytes = [0; EXTENT_HEADER_BYTES];
        put(&mut bytes, MAGIC_AT, &MAGIC);
        put(&mut bytes, VERSION_AT, &[FORMAT_VERSION]);
        put(&mut bytes, STORE_AT, &self.store.0.to_le_bytes());
        put(&mut bytes, EXTENT_AT, &self.extent.0.to_le_bytes());
        put(&mut bytes, PARTITION_AT, &self.partition.to_le_bytes());
        put(&mut bytes, CLASS_AT, &[self.class.0]);
        put(&mut bytes, SEQUENCE_AT, &self.sequence.to_le_bytes());
        let checksum = checksum(&bytes, self.store, self.extent);
        put(&mut bytes, 0, &checksum.to_le_bytes());
        bytes
    }

    /// Reads the first sector of `extent` of `store`.
    pub fn decode(bytes: &SectorBytes, store: StoreId, extent: ExtentNo) -> FoundExtent {
        if *bytes == [0; EXTENT_HEADER_BYTES] {
            return FoundExtent::Blank;
        }
        match Self::verified(bytes, store, extent) {
            Ok(header) => FoundExtent::Header(header),
            Err(error) => FoundExtent::Bad(error.within(format_args!("header of {extent}"))),
        }
    }

    fn verified(bytes: &SectorBytes, store: StoreId, extent: ExtentNo) -> Result<Self> {
        let stored = u32_at(bytes, 0);
        let actual = checksum(bytes, store, extent);
        if stored != actual {
            return Err(Error::corruption(format!(
                "checksum {stored:08x} stands there, its bytes make {actual:08x}"
            )));
        }
        if bytes[MAGIC_AT..VERSION_AT] != MAGIC {
            return Err(Error::corruption("the sector holds something else"));
        }
        if bytes[VERSION_AT] != FORMAT_VERSION {
            return Err(newer(bytes[VERSION_AT]));
        }
        let header = Self {
            store: StoreId(u64_at(bytes, STORE_AT)),
            extent: ExtentNo(u32_at(bytes, EXTENT_AT)),
            partition: u16_at(bytes, PARTITION_AT),
            class: ClassNo(bytes[CLASS_AT]),
            sequence: u64_at(bytes, SEQUENCE_AT),
        };
        let is_here = header.store == store && header.extent == extent;
        if !is_here || usize::from(header.partition) >= PARTITIONS_MAX {
            return Err(Error::corruption("its fields are invalid"));
        }
        Ok(header)
    }
}

fn checksum(bytes: &SectorBytes, store: StoreId, extent: ExtentNo) -> u32 {
    let seed = [store.0, u64::from(extent.0)].map(u64::to_le_bytes);
    let sealed = bytes.get(MAGIC_AT..).unwrap_or_default();
    Checksum::new()
        .with(seed.as_flattened())
        .with(sealed)
        .finish()
}
