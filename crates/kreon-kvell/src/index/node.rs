//! The bytes of a node, and the search in it.
//!
//! ```text
//! 0   count u16 | prefix bytes u16 | level u8 | 3 spare | previous node u32 | next node u32
//! 16  prefix: what all keys begin with
//!     slots, in order: head [u8; 4] | end (12 bits), bytes of the head in use (3 bits), truncated (1 bit)
//!     free
//!     records, the last one first: location [u8; 6] | in inner nodes: child u32 | rest of the key
//! ```
//!
//! A head is the 4 bytes of a key behind the prefix, filled up with zeroes; the rest follows it. Numbers are
//! little-endian. The end of a record is counted backward from the end of the node: the record of slot i lies between
//! the ends of the slots i and i - 1.
//!
//! In an inner node, the key of an entry is at most the least key below its child and above all keys below the child
//! before. The first entry of an inner node has no key: whatever is less than the second belongs to the first child. So
//! the first child can be taken away. Nodes of one level are linked in order.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use super::key::Key;
use super::location::LOCATION_BYTES;

/// Number of a node that is none.
pub(super) const NONE: u32 = u32::MAX;

/// Largest node in bytes: ends of records have 12 bits.
pub(super) const NODE_BYTES_MAX: usize = 4096;

pub(super) const HEADER_BYTES: usize = 16;
pub(super) const SLOT_BYTES: usize = 6;
pub(super) const HEAD_BYTES: usize = 4;
const CHILD_BYTES: usize = 4;

pub(super) const COUNT_AT: usize = 0;
pub(super) const PREFIX_AT: usize = 2;
pub(super) const LEVEL_AT: usize = 4;
pub(super) const PREVIOUS_AT: usize = 8;
pub(super) const NEXT_AT: usize = 12;

const END_MASK: u16 = 0x0fff;
const HEAD_LEN_SHIFT: u32 = 12;
const HEAD_LEN_MASK: u16 = 0b111;
const TRUNCATED_SHIFT: u32 = 15;

/// A slot of a node.
pub(super) type Slot = [u8; SLOT_BYTES];

/// Bytes of a record besides the rest of its key.
pub(super) const fn payload_bytes(level: u8) -> usize {
    if level == 0 {
        LOCATION_BYTES
    } else {
        LOCATION_BYTES + CHILD_BYTES
    }
}

pub(super) const fn slot(
    head: [u8; HEAD_BYTES],
    head_len: usize,
    truncated: bool,
    end: usize,
) -> Slot {
    let meta =
        end as u16 | (head_len as u16) << HEAD_LEN_SHIFT | (truncated as u16) << TRUNCATED_SHIFT;
    let [low, high] = meta.to_le_bytes();
    [head[0], head[1], head[2], head[3], low, high]
}

pub(super) const fn slot_meta(slot: Slot) -> u16 {
    u16::from_le_bytes([slot[4], slot[5]])
}

const fn slot_head(slot: Slot) -> u32 {
    u32::from_be_bytes([slot[0], slot[1], slot[2], slot[3]])
}

const fn slot_end(slot: Slot) -> usize {
    (slot_meta(slot) & END_MASK) as usize
}

/// The first 4 bytes of what follows the prefix, how many of them there are, and the rest.
pub(super) fn head_of(suffix: &[u8]) -> ([u8; HEAD_BYTES], usize, &[u8]) {
    if let Some((head, rest)) = suffix.split_first_chunk() {
        return (*head, HEAD_BYTES, rest);
    }
    let mut head = [0; HEAD_BYTES];
    head[..suffix.len()].copy_from_slice(suffix);
    (head, suffix.len(), &[])
}

/// A node to read.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    bytes: &'a [u8],
    prefix: &'a [u8],
    slots: &'a [Slot],
}

/// An entry of a node.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) prefix: &'a [u8],
    pub(super) head: &'a [u8],
    pub(super) rest: &'a [u8],
    pub(super) truncated: bool,
    pub(super) at: u64,
    /// The node below; [`NONE`] in a leaf.
    pub(super) child: u32,
}

/// Where a key stands or would stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    /// Number of the entries before the key.
    pub(super) slot: usize,
    /// Whether the entry there is the key itself.
    pub(super) exact: bool,
}

impl<'a> Node<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let count = usize::from(read_u16(bytes, COUNT_AT));
        let prefix = usize::from(read_u16(bytes, PREFIX_AT));
        let (prefix, behind) = bytes[HEADER_BYTES..].split_at(prefix);
        Self {
            bytes,
            prefix,
            slots: &behind.as_chunks().0[..count],
        }
    }

    #[inline]
    pub(super) fn count(self) -> usize {
        self.slots.len()
    }

    pub(super) fn prefix(self) -> &'a [u8] {
        self.prefix
    }

    /// 0 for a leaf.
    #[inline]
    pub(super) fn level(self) -> u8 {
        self.bytes[LEVEL_AT]
    }

    /// The neighbours of the same level, or [`NONE`].
    pub(super) fn previous(self) -> u32 {
        read_u32(self.bytes, PREVIOUS_AT)
    }

    pub(super) fn next(self) -> u32 {
        read_u32(self.bytes, NEXT_AT)
    }

    /// Where the records of the first `slots` slots end, backward from the end of the node.
    #[inline]
    pub(super) fn end(self, slots: usize) -> usize {
        if slots == 0 {
            0
        } else {
            slot_end(self.slots[slots - 1])
        }
    }

    /// Bytes in use.
    pub(super) fn used_bytes(self) -> usize {
        HEADER_BYTES + self.prefix.len() + self.count() * SLOT_BYTES + self.end(self.count())
    }

    #[inline]
    fn record(self, slot: usize) -> &'a [u8] {
        let length = self.bytes.len();
        &self.bytes[length - self.end(slot + 1)..length - self.end(slot)]
    }

    /// The location in a slot, in units.
    #[inline]
    pub(super) fn at(self, slot: usize) -> u64 {
        let record = self.record(slot);
        u64::from(read_u32(record, 0)) | u64::from(read_u16(record, 4)) << 32
    }

    /// The child in a slot of an inner node.
    #[inline]
    pub(super) fn child(self, slot: usize) -> u32 {
        read_u32(self.record(slot), LOCATION_BYTES)
    }

    #[inline]
    pub(super) fn item(self, slot: usize) -> Item<'a> {
        let level = self.level();
        let entry = &self.slots[slot];
        let meta = slot_meta(*entry);
        Item {
            prefix: self.prefix,
            head: &entry[..usize::from(meta >> HEAD_LEN_SHIFT & HEAD_LEN_MASK)],
            rest: &self.record(slot)[payload_bytes(level)..],
            truncated: meta >> TRUNCATED_SHIFT != 0,
            at: self.at(slot),
            child: if level == 0 { NONE } else { self.child(slot) },
        }
    }

    /// The slot of the child below which the key belongs, in an inner node.
    pub(super) fn child_slot(self, key: &Key<'_>) -> usize {
        let position = self.search(key);
        if position.exact {
            position.slot
        } else {
            position.slot.saturating_sub(1)
        }
    }

    /// The first slot with a key.
    #[inline]
    pub(super) fn first_key(self) -> usize {
        usize::from(self.level() > 0)
    }

    /// Where the key stands or would stand.
    pub(super) fn search(self, key: &Key<'_>) -> Position {
        let Some(suffix) = key.bytes.strip_prefix(self.prefix) else {
            let slot = if key.bytes < self.prefix {
                self.first_key()
            } else {
                self.count()
            };
            return Position { slot, exact: false };
        };
        let (head, head_len, rest) = head_of(suffix);
        let head = u32::from_be_bytes(head);
        let lowest = self.lower_bound(head);
        // Entries of one head lie side by side; mostly there is one.
        let tail = |slot: usize| self.compare_tail(slot, head_len, rest, key);
        let same_head = |slot: usize| {
            self.slots
                .get(slot)
                .is_some_and(|entry| slot_head(*entry) == head)
        };
        if !same_head(lowest) {
            return Position {
                slot: lowest,
                exact: false,
            };
        }
        match tail(lowest) {
            Ordering::Equal => {
                return Position {
                    slot: lowest,
                    exact: true,
                };
            }
            Ordering::Greater => {
                return Position {
                    slot: lowest,
                    exact: false,
                };
            }
            Ordering::Less => {}
        }
        let (mut low, mut high) = (lowest + 1, lowest + 1);
        if same_head(high) {
            high += self.slots[high..].partition_point(|entry| slot_head(*entry) == head);
        }
        while low < high {
            let middle = low.midpoint(high);
            match tail(middle) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => {
                    return Position {
                        slot: middle,
                        exact: true,
                    };
                }
                Ordering::Greater => high = middle,
            }
        }
        Position {
            slot: low,
            exact: false,
        }
    }

    /// The first slot that has a key with a head not less.
    #[inline]
    fn lower_bound(self, head: u32) -> usize {
        let mut base = self.first_key();
        let mut size = self.slots.len().saturating_sub(base);
        while size > 1 {
            let half = size / 2;
            let less = slot_head(self.slots[base + half]) < head;
            base = select_unpredictable(less, base + half, base);
            size -= half;
        }
        base + usize::from(
            self.slots
                .get(base)
                .is_some_and(|entry| slot_head(*entry) < head),
        )
    }

    /// How an entry with the head of the key compares with the key.
    #[inline]
    fn compare_tail(self, slot: usize, head_len: usize, rest: &[u8], key: &Key<'_>) -> Ordering {
        let item = self.item(slot);
        (item.head.len().cmp(&head_len))
            .then_with(|| item.rest.cmp(rest))
            .then_with(|| item.truncated.cmp(&key.truncated))
            .then_with(|| item.at.cmp(&key.at))
    }
}

impl Item<'_> {
    /// Whether the entry has the bytes of the key and is whole or truncated as it is.
    pub(super) fn looks_like(&self, key: &Key<'_>) -> bool {
        self.truncated == key.truncated
            && key.bytes.strip_prefix(self.prefix).is_some_and(|suffix| {
                suffix
                    .split_at_checked(self.head.len())
                    .is_some_and(|(head, rest)| head == self.head && rest == self.rest)
            })
    }

    /// The key as in the tree, behind `bytes`.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.prefix);
        bytes.extend_from_slice(self.head);
        bytes.extend_from_slice(self.rest);
    }
}

pub(super) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
