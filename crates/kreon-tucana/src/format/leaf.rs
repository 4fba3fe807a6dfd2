//! Leaves: entries without their keys, which stand in the log (`Tucana 2.2.1`).
//!
//! All keys between the fences of a leaf have some first bytes in common, of which the leaf knows the number only: its
//! *prefix*. A leaf, behind the header: heads (8 bytes each: the bytes of a key behind the prefix, filled up with zeroes),
//! hashes (4 bytes each), locations (8 bytes each), in columns with room for [`ENTRIES_MAX`]; the rest is zero. Entries are
//! in the order of their keys, so heads ascend; of entries with equal heads only the records tell which is which.

use std::ops::Range;

use kreon_base::{PAGE_BYTES, PageBytes};

use super::bytes::{put, u32_at};
use super::location::Location;
use super::node::{NODE_HEADER_BYTES, count, detail, set_count, set_detail};

const HEAD_BYTES: usize = 8;
const HASH_BYTES: usize = 4;
const LOCATION_BYTES: usize = 8;

/// Entries that a page has room for.
const ENTRIES_OF_PAGE: usize =
    (PAGE_BYTES - NODE_HEADER_BYTES) / (HEAD_BYTES + HASH_BYTES + LOCATION_BYTES);

/// Most entries of a leaf. In a model under shuttle few keys are to make a tree.
pub const ENTRIES_MAX: usize = if cfg!(shuttle) { 8 } else { ENTRIES_OF_PAGE };

const HEADS_AT: usize = NODE_HEADER_BYTES;
const HASHES_AT: usize = HEADS_AT + ENTRIES_MAX * HEAD_BYTES;
const LOCATIONS_AT: usize = HASHES_AT + ENTRIES_MAX * HASH_BYTES;
const END: usize = LOCATIONS_AT + ENTRIES_MAX * LOCATION_BYTES;

const _: () = assert!(ENTRIES_OF_PAGE == 203 && END <= PAGE_BYTES);

/// An entry of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafEntry {
    /// The bytes of its key behind the leaf's prefix, as a number: [`head_of`].
    pub head: u64,
    /// The hash of its key.
    pub hash: u32,
    /// Where its record is.
    pub location: Location,
}

/// A leaf, read.
#[derive(Clone, Copy)]
pub struct Leaf<'a>(&'a PageBytes);

/// A leaf that is changed in place.
pub struct LeafMut<'a>(&'a mut PageBytes);

/// How the heads of entries change when they come to a leaf with another prefix.
#[derive(Clone, Copy, Debug)]
pub enum HeadShift<'a> {
    /// The prefix is the same.
    Same,
    /// The prefix is shorter: these bytes, at the end of the longer one, become part of the heads.
    Longer(&'a [u8]),
}

/// The head of a key in a leaf with a prefix of `prefix_bytes`: keys of one leaf with different heads have their order.
#[inline]
pub fn head_of(key: &[u8], prefix_bytes: usize) -> u64 {
    let rest = key.get(prefix_bytes..).unwrap_or_default();
    match rest.first_chunk() {
        Some(whole) => u64::from_be_bytes(*whole),
        None => {
            let mut head = [0; HEAD_BYTES];
            head[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(head)
        }
    }
}

impl<'a> Leaf<'a> {
    /// The leaf in a page that was verified, or is being made.
    pub fn of(page: &'a PageBytes) -> Self {
        Self(page)
    }

    /// Number of entries.
    #[inline]
    pub fn count(&self) -> usize {
        count(self.0).min(ENTRIES_MAX)
    }

    /// First bytes of its keys that are not in its heads.
    #[inline]
    pub fn prefix_bytes(&self) -> usize {
        detail(self.0)
    }

    /// The head of a key in this leaf.
    #[inline]
    pub fn head_of(&self, key: &[u8]) -> u64 {
        head_of(key, self.prefix_bytes())
    }

    /// The entries with this head.
    #[inline]
    pub fn range_of(&self, head: u64) -> Range<usize> {
        let heads = self.heads();
        let first = heads.partition_point(|other| u64::from_be_bytes(*other) < head);
        let ties = heads.get(first..).unwrap_or_default();
        let ties = ties
            .iter()
            .take_while(|other| u64::from_be_bytes(**other) == head);
        first..first + ties.count()
    }

    /// Entry `index`; zeroes if there is none.
    pub fn entry(&self, index: usize) -> LeafEntry {
        LeafEntry {
            head: self
                .heads()
                .get(index)
                .map_or(0, |head| u64::from_be_bytes(*head)),
            hash: self.hash(index),
            location: self.location(index),
        }
    }

    /// The hash of the key of entry `index`.
    #[inline]
    pub fn hash(&self, index: usize) -> u32 {
        u32_at(self.0, HASHES_AT + index.min(ENTRIES_MAX) * HASH_BYTES)
    }

    /// Where the record of entry `index` is.
    #[inline]
    pub fn location(&self, index: usize) -> Location {
        let at = LOCATIONS_AT + index.min(ENTRIES_MAX - 1) * LOCATION_BYTES;
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk);
        Location::decode(bytes.copied().unwrap_or_default())
    }

    /// Whether the counts fit the page, heads ascend, and what holds no entry is zero.
    pub fn is_sound(&self) -> bool {
        let count = count(self.0);
        let unused = [
            HEADS_AT + count * HEAD_BYTES..HASHES_AT,
            HASHES_AT + count * HASH_BYTES..LOCATIONS_AT,
            LOCATIONS_AT + count * LOCATION_BYTES..PAGE_BYTES,
        ];
        let is_zero = |range: Range<usize>| {
            let bytes = self.0.get(range);
            bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
        };
        // Big endian: the order of the bytes is that of the numbers.
        count <= ENTRIES_MAX && self.heads().is_sorted() && unused.into_iter().all(is_zero)
    }

    #[inline]
    fn heads(&self) -> &'a [[u8; HEAD_BYTES]] {
        let end = HEADS_AT + self.count() * HEAD_BYTES;
        self.0.get(HEADS_AT..end).unwrap_or_default().as_chunks().0
    }
}

impl<'a> LeafMut<'a> {
    /// The leaf in a page that is being made.
    pub fn of(page: &'a mut PageBytes) -> Self {
        Self(page)
    }

    /// The same, to be read.
    pub fn as_leaf(&self) -> Leaf<'_> {
        Leaf(self.0)
    }

    /// Sets the prefix of a leaf without entries, or whose heads are all set anew.
    pub fn set_prefix_bytes(&mut self, prefix_bytes: usize) {
        set_detail(self.0, prefix_bytes);
    }

    /// Puts an entry before entry `index`. The leaf has room.
    pub fn insert(&mut self, index: usize, entry: LeafEntry) {
        let count = self.as_leaf().count();
        assert!(index <= count && count < ENTRIES_MAX, "no room in the leaf");
        for (column, width) in COLUMNS {
            let at = column + index * width;
            self.0.copy_within(at..column + count * width, at + width);
        }
        self.set(index, entry);
        set_count(self.0, count + 1);
    }

    /// Replaces entry `index`.
    pub fn set(&mut self, index: usize, entry: LeafEntry) {
        let head = entry.head.to_be_bytes();
        put(self.0, HEADS_AT + index * HEAD_BYTES, &head);
        let hash = entry.hash.to_le_bytes();
        put(self.0, HASHES_AT + index * HASH_BYTES, &hash);
        self.set_location(index, entry.location);
    }

    /// Lets entry `index` point at another record.
    pub fn set_location(&mut self, index: usize, location: Location) {
        let at = LOCATIONS_AT + index * LOCATION_BYTES;
        put(self.0, at, &location.encode());
    }

    /// Removes entry `index`.
    pub fn remove(&mut self, index: usize) {
        let count = self.as_leaf().count();
        assert!(index < count, "there is no entry {index} of {count}");
        for (column, width) in COLUMNS {
            let end = column + count * width;
            self.0
                .copy_within(column + (index + 1) * width..end, column + index * width);
            self.0[end - width..end].fill(0);
        }
        set_count(self.0, count - 1);
    }

    /// Removes all entries from `from` on.
    pub fn truncate(&mut self, from: usize) {
        let count = self.as_leaf().count();
        for (column, width) in COLUMNS {
            self.0[column + from * width..column + count * width].fill(0);
        }
        set_count(self.0, from);
    }

    /// Appends entries of a leaf with higher keys. This leaf has room.
    pub fn append(&mut self, from: Leaf<'_>, entries: Range<usize>, shift: HeadShift<'_>) {
        let count = self.as_leaf().count();
        assert!(count + entries.len() <= ENTRIES_MAX, "no room in the leaf");
        for (to, index) in (count..).zip(entries.clone()) {
            let mut entry = from.entry(index);
            entry.head = shift.apply(entry.head);
            self.set(to, entry);
        }
        set_count(self.0, count + entries.len());
    }

    /// Gives the leaf a shorter prefix.
    pub fn shift(&mut self, prefix_bytes: usize, shift: HeadShift<'_>) {
        for index in 0..self.as_leaf().count() {
            let mut entry = self.as_leaf().entry(index);
            entry.head = shift.apply(entry.head);
            self.set(index, entry);
        }
        self.set_prefix_bytes(prefix_bytes);
    }
}

const COLUMNS: [(usize, usize); 3] = [
    (HEADS_AT, HEAD_BYTES),
    (HASHES_AT, HASH_BYTES),
    (LOCATIONS_AT, LOCATION_BYTES),
];

impl HeadShift<'_> {
    fn apply(self, head: u64) -> u64 {
        match self {
            Self::Same => head,
            Self::Longer(bytes) => {
                let mut longer = [0; 2 * HEAD_BYTES];
                let kept = bytes.len().min(HEAD_BYTES);
                longer[..kept].copy_from_slice(&bytes[..kept]);
                longer[kept..kept + HEAD_BYTES].copy_from_slice(&head.to_be_bytes());
                head_of(&longer, 0)
            }
        }
    }
}
