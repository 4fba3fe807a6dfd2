//! All that the engine persists, as bytes. No I/O and no state.
//!
//! Integers are little endian. Each checksum is CRC-32C over the store, the place of the structure and its bytes, so
//! bytes of another store or at another place do not verify. Decoders take any bytes: none panics. `docs/format-kvell.md`
//! has the tables.
//!
//! - `geometry`: extents, and what a byte offset on the device means
//! - `classes`: sizes of slots, and where they lie in an extent
//! - `timestamp`: the order of the writes of a partition
//! - `hash`: the hash of a key, and its partition
//! - `seal`: what seeds the checksums of items
//! - `item`: a key with its value, or a deletion, in a slot
//! - `large`: values that are longer than a slot
//! - `extent`: the header of an extent
//! - `image`: what a recovery would find, as blocks
//! - `superblock`: the root record, in four slots
//! - `bytes`: integers at offsets
//!
//! Public for the tests of the document and the fuzz targets; no part of the interface of the engine.

mod bytes;
mod classes;
mod extent;
mod geometry;
mod hash;
mod image;
mod item;
mod large;
mod seal;
mod superblock;
mod timestamp;

pub use classes::{ATOMIC_BYTES_MAX, ATOMIC_BYTES_MIN, Class, ClassNo, Classes};
pub use extent::{ExtentHeader, FoundExtent};
pub use geometry::{
    EXTENT_BYTES, EXTENT_HEADER_BYTES, ExtentNo, OFFSET_MAX, SLOT_BYTES_MAX, SLOTS_AT, SectorBytes,
    Slot,
};
pub use hash::{key_hash, partition_of};
pub use image::{IMAGE_BLOCK_BYTES, IMAGE_HEADER_BYTES, ImageHeader, ImageRecord, ImageRecords};
pub use item::{
    Found, FoundHead, HEAD_BYTES_MAX, HEAD_KEY_BYTES_MAX, ITEM_HEADER_BYTES, ITEM_KEY_BYTES_MAX,
    Item, ItemHead, ItemKind, decode, decode_head, encode, encode_tombstone, head_bytes,
    item_bytes,
};
pub use large::{LargeValue, PART_PREFIX_BYTES, PARTS_MAX, PartOf};
pub use seal::ItemSeal;
pub use superblock::{
    FORMAT_VERSION, ImagePlace, PARTITIONS_MAX, SUPERBLOCK_SLOTS, State, Superblock, foreign,
    is_known, is_volume, label_of, newest,
};
pub use timestamp::{COUNTER_MAX, INCARNATION_MAX, Timestamp};
