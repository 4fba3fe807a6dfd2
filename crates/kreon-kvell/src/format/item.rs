//! Items: a key with its value, or a deletion, in a slot.
//!
//! An item is a *head part* and a *body*. The head part: header (24 bytes) | hash of the key (16, long keys only) | first
//! [`HEAD_KEY_BYTES_MAX`] bytes of the key. The body: the rest of the key | the value. The header: checksum of the head
//! part (4) | checksum of the body (4) | timestamp (8) | value bytes (4) | key bytes (2) | kind (1) | class (1).
//!
//! A head part lies within one sector, so it is never torn; it holds the checksum of the body, so the two never mix with
//! parts of other items. Bytes of the slot behind an item belong to nobody.

use super::bytes::{put, u16_at, u32_at, u64_at, u128_at};
use super::geometry::Slot;
use super::hash::key_hash;
use super::large::PART_PREFIX_BYTES;
use super::seal::ItemSeal;
use super::{ClassNo, Timestamp};

/// Bytes of the header of an item.
pub const ITEM_HEADER_BYTES: usize = 24;

/// Most bytes of a key in the head part of an item. A longer key is a *long key*: its hash is there as well.
pub const HEAD_KEY_BYTES_MAX: usize = 400;

/// Longest head part in bytes: less than a sector.
pub const HEAD_BYTES_MAX: usize = ITEM_HEADER_BYTES + HASH_BYTES + HEAD_KEY_BYTES_MAX;

/// Longest key of an item in bytes.
pub const ITEM_KEY_BYTES_MAX: usize = u16::MAX as usize;

const HASH_BYTES: usize = 16;

const BODY_CRC_AT: usize = 4;
const TIMESTAMP_AT: usize = 8;
const VALUE_BYTES_AT: usize = 16;
const KEY_BYTES_AT: usize = 20;
const KIND_AT: usize = 22;
const CLASS_AT: usize = 23;

const _: () = assert!(HEAD_BYTES_MAX <= super::EXTENT_HEADER_BYTES);

/// Kind of an item, with its code. None has code 0, so zeroes are never an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// The key has the value.
    Put = 1,
    /// The key was deleted. The item is a head part only: it overwrites the first sector of a slot.
    Tombstone = 2,
    /// The key has a value that is longer than a slot: its value is a [`LargeValue`](super::LargeValue).
    Large = 3,
    /// A piece of such a value, behind a prefix that names its owner ([`PartOf`](super::PartOf)). It has no key.
    Part = 4,
}

impl ItemKind {
    const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Put),
            2 => Some(Self::Tombstone),
            3 => Some(Self::Large),
            4 => Some(Self::Part),
            _ => None,
        }
    }
}

/// The head part of an item, verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemHead<'a> {
    /// Its kind.
    pub kind: ItemKind,
    /// Age of the write.
    pub timestamp: Timestamp,
    /// Length of the whole key.
    pub key_bytes: u16,
    /// Length of the value.
    pub value_bytes: u32,
    /// Class of the slot.
    pub class: ClassNo,
    /// The key, or the first [`HEAD_KEY_BYTES_MAX`] bytes of a long one.
    pub key_prefix: &'a [u8],
    /// [Hash](key_hash) of the whole key.
    pub key_hash: u128,
}

impl ItemHead<'_> {
    /// Whether the item is one of `key`, whose [hash](key_hash) is `hash`. Of a long key, prefix, length and hash are
    /// compared.
    pub fn is_of(&self, key: &[u8], hash: u128) -> bool {
        usize::from(self.key_bytes) == key.len()
            && key.starts_with(self.key_prefix)
            && self.key_hash == hash
    }

    /// Bytes of the whole item.
    pub fn item_bytes(&self) -> usize {
        let key_bytes = usize::from(self.key_bytes);
        match self.kind {
            ItemKind::Tombstone => head_bytes(key_bytes),
            _ => item_bytes(key_bytes, self.value_bytes as usize),
        }
    }
}

/// A whole item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its head part.
    pub head: ItemHead<'a>,
    /// The whole key; of a tombstone, as much of it as the head part has.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// Nothing: where the header would be there are zeroes.
    Blank,
    /// No valid head part. As a head part is never torn, such bytes are damage, or of another store or class.
    BadHead,
    /// A valid head part, but another body than it belongs to: the item was not written to its end, or was damaged.
    Torn(ItemHead<'a>),
    /// A whole item.
    Whole(Item<'a>),
}

/// Content of the beginning of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundHead<'a> {
    /// As [`Found::Blank`].
    Blank,
    /// As [`Found::BadHead`].
    BadHead,
    /// A valid head part. The body was not looked at.
    Head(ItemHead<'a>),
}

/// Bytes of the head part of an item, 24 to [`HEAD_BYTES_MAX`].
pub const fn head_bytes(key_bytes: usize) -> usize {
    match key_bytes > HEAD_KEY_BYTES_MAX {
        true => HEAD_BYTES_MAX,
        false => ITEM_HEADER_BYTES + key_bytes,
    }
}

/// Bytes of an item; of all but tombstones, which have [`head_bytes`].
pub const fn item_bytes(key_bytes: usize, value_bytes: usize) -> usize {
    key_at(key_bytes) + key_bytes + value_bytes
}

/// Offset of the key in an item.
const fn key_at(key_bytes: usize) -> usize {
    match key_bytes > HEAD_KEY_BYTES_MAX {
        true => ITEM_HEADER_BYTES + HASH_BYTES,
        false => ITEM_HEADER_BYTES,
    }
}

/// Writes an item of any kind but a tombstone to the front of `bytes`, which become the content of `slot`. Returns its
/// length; the bytes behind it stay as they are. Costs a copy and a checksum.
///
/// # Panics
///
/// When `bytes` are less than [`item_bytes`], or the key is longer than [`ITEM_KEY_BYTES_MAX`].
pub fn encode(
    bytes: &mut [u8],
    seal: ItemSeal,
    slot: Slot,
    timestamp: Timestamp,
    kind: ItemKind,
    key: &[u8],
    value: &[u8],
) -> usize {
    debug_assert!(kind != ItemKind::Tombstone && (kind != ItemKind::Part || key.is_empty()));
    let (head, end) = (head_bytes(key.len()), item_bytes(key.len(), value.len()));
    let value_at = end - value.len();
    put(bytes, key_at(key.len()), key);
    put(bytes, value_at, value);
    let body = seal.body_checksum(slot, timestamp, &bytes[head..end]);
    let header = Header {
        body_checksum: body,
        timestamp,
        value_bytes: value.len() as u32,
        kind,
    };
    header.seal(bytes, seal, slot, key);
    end
}

/// Writes a tombstone for `key` to the front of `first`, the first bytes of `slot`. Returns its length, at most
/// [`HEAD_BYTES_MAX`]; the bytes behind it stay as they are. Any slot that holds an item of the key has room for it.
///
/// # Panics
///
/// When `first` are less than [`head_bytes`], or the key is longer than [`ITEM_KEY_BYTES_MAX`].
pub fn encode_tombstone(
    first: &mut [u8],
    seal: ItemSeal,
    slot: Slot,
    timestamp: Timestamp,
    key: &[u8],
) -> usize {
    let head = head_bytes(key.len());
    let at = key_at(key.len());
    put(first, at, &key[..head - at]);
    let header = Header {
        body_checksum: 0,
        timestamp,
        value_bytes: 0,
        kind: ItemKind::Tombstone,
    };
    header.seal(first, seal, slot, key);
    head
}

/// Fields of a header that is about to be written.
struct Header {
    body_checksum: u32,
    timestamp: Timestamp,
    value_bytes: u32,
    kind: ItemKind,
}

impl Header {
    /// Writes header and hash in front of the key, and the checksum of the head part.
    fn seal(&self, bytes: &mut [u8], seal: ItemSeal, slot: Slot, key: &[u8]) {
        assert!(
            key.len() <= ITEM_KEY_BYTES_MAX,
            "a key of {} bytes",
            key.len()
        );
        put(bytes, BODY_CRC_AT, &self.body_checksum.to_le_bytes());
        put(bytes, TIMESTAMP_AT, &self.timestamp.0.to_le_bytes());
        put(bytes, VALUE_BYTES_AT, &self.value_bytes.to_le_bytes());
        put(bytes, KEY_BYTES_AT, &(key.len() as u16).to_le_bytes());
        put(bytes, KIND_AT, &[self.kind as u8, slot.class.0]);
        if key.len() > HEAD_KEY_BYTES_MAX {
            let hash = key_hash(seal, key);
            put(bytes, ITEM_HEADER_BYTES, &hash.to_le_bytes());
        }
        let head = &bytes[BODY_CRC_AT..head_bytes(key.len())];
        let checksum = seal.head_checksum(slot, head);
        put(bytes, 0, &checksum.to_le_bytes());
    }
}

/// Reads the head part of an item from the first bytes of `slot`: at least [`HEAD_BYTES_MAX`], or the whole slot. Does not
/// look at the body. An item that is longer than its slot has no valid head part.
pub fn decode_head<'a>(first: &'a [u8], seal: ItemSeal, slot: Slot) -> FoundHead<'a> {
    let Some(header) = first.first_chunk::<ITEM_HEADER_BYTES>() else {
        return FoundHead::BadHead;
    };
    if *header == [0; ITEM_HEADER_BYTES] {
        return FoundHead::Blank;
    }
    match verified_head(first, header, seal, slot) {
        Some(head) => FoundHead::Head(head),
        None => FoundHead::BadHead,
    }
}

fn verified_head<'a>(
    first: &'a [u8],
    header: &[u8; ITEM_HEADER_BYTES],
    seal: ItemSeal,
    slot: Slot,
) -> Option<ItemHead<'a>> {
    let key_bytes = u16_at(header, KEY_BYTES_AT);
    let part = first.get(..head_bytes(key_bytes.into()))?;
    if u32_at(header, 0) != seal.head_checksum(slot, part.get(BODY_CRC_AT..)?) {
        return None;
    }
    let key_prefix = part.get(key_at(key_bytes.into())..)?;
    let is_long = usize::from(key_bytes) > HEAD_KEY_BYTES_MAX;
    let head = ItemHead {
        kind: ItemKind::of(header[KIND_AT])?,
        timestamp: Timestamp(u64_at(header, TIMESTAMP_AT)),
        key_bytes,
        value_bytes: u32_at(header, VALUE_BYTES_AT),
        class: ClassNo(header[CLASS_AT]),
        key_prefix,
        key_hash: match is_long {
            true => u128_at(part, ITEM_HEADER_BYTES),
            false => key_hash(seal, key_prefix),
        },
    };
    let suits_kind = match head.kind {
        ItemKind::Tombstone => head.value_bytes == 0 && u32_at(header, BODY_CRC_AT) == 0,
        ItemKind::Part => key_bytes == 0 && head.value_bytes as usize >= PART_PREFIX_BYTES,
        ItemKind::Put | ItemKind::Large => true,
    };
    let fits = head.class == slot.class && head.item_bytes() <= slot.bytes as usize;
    (suits_kind && fits).then_some(head)
}

/// Reads the content of `slot` from `bytes`, which are all of it. Costs one pass of a checksum over the item.
pub fn decode<'a>(bytes: &'a [u8], seal: ItemSeal, slot: Slot) -> Found<'a> {
    let head = match decode_head(bytes, seal, slot) {
        FoundHead::Blank => return Found::Blank,
        FoundHead::BadHead => return Found::BadHead,
        FoundHead::Head(head) => head,
    };
    match whole(bytes, head, seal, slot) {
        Some(item) => Found::Whole(item),
        None => Found::Torn(head),
    }
}

fn whole<'a>(bytes: &'a [u8], head: ItemHead<'a>, seal: ItemSeal, slot: Slot) -> Option<Item<'a>> {
    if head.kind == ItemKind::Tombstone {
        let (key, value): (_, &[u8]) = (head.key_prefix, &[]);
        return Some(Item { head, key, value });
    }
    let key_bytes = usize::from(head.key_bytes);
    let item = bytes.get(..head.item_bytes())?;
    let body = item.get(head_bytes(key_bytes)..)?;
    let actual = seal.body_checksum(slot, head.timestamp, body);
    kreon_base::planted!(ItemChecksumIgnored => let actual = u32_at(item, BODY_CRC_AT));
    if u32_at(item, BODY_CRC_AT) != actual {
        return None;
    }
    let (key, value) = item.get(key_at(key_bytes)..)?.split_at_checked(key_bytes)?;
    Some(Item { head, key, value })
}
