//! Reads leaves.

use std::fmt;
use std::ops::Range;

use kreon_base::{Lsn, PageBytes, Payload, RegionId, Result, Timestamp};

use crate::LONG_KEY_STORED_BYTES;
use crate::heads::Probe;
use crate::leaf_entry::{decode_body, has_attributes, has_lsn, is_long};
use crate::node::{KeyPosition, NodeView, RawEntry, stored_part};

/// A leaf: versions of keys in key order, versions of the same key from newest to oldest.
#[derive(Clone, Copy)]
pub struct Leaf<'a>(pub(crate) NodeView<'a>);

/// One version of a key in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafEntry<'a> {
    /// LSN of the write; 0: visible to every snapshot.
    pub lsn: Lsn,
    /// The value, its place in the log, or a deletion.
    pub payload: Payload<'a>,
    /// Length of the whole key. Of a key above [`LONG_KEY_STORED_BYTES`] the leaf holds only the first bytes.
    pub key_bytes: u32,
}

/// Result of a search in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafSearch {
    /// The first (newest) entry of the key.
    Found(usize),
    /// The leaf lacks the key; the first entry behind it.
    Absent(usize),
    /// The key is long, and so are the entries `first..end`, which share its first [`LONG_KEY_STORED_BYTES`] bytes: the
    /// caller compares the rest with the keys in their log records. The entries are in the order of their whole keys.
    Long {
        /// The first such entry.
        first: usize,
        /// One past the last.
        end: usize,
    },
}

impl<'a> Leaf<'a> {
    /// Opens a leaf, in constant time. The page should have passed [`check_node`](crate::check_node); otherwise
    /// accessors return errors or wrong entries, but never panic.
    pub fn open(page: &'a PageBytes) -> Result<Self> {
        NodeView::open(page, true).map(Self)
    }

    /// Number of entries; 0 only in a page that [`check_node`](crate::check_node) rejects.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.heads.len()
    }

    /// Bytes in use, header included.
    pub fn used_bytes(&self) -> usize {
        self.0.used_bytes()
    }

    /// The region whose tree the leaf is part of.
    pub fn region(&self) -> RegionId {
        self.0.region()
    }

    /// Common prefix of all stored keys.
    pub fn prefix(&self) -> &'a [u8] {
        self.0.prefix
    }

    /// Entry `index`; an error if it does not exist or is damaged.
    pub fn entry(&self, index: usize) -> Result<LeafEntry<'a>> {
        self.decoded(index, &self.0.entry(index)?)
    }

    /// Entry `index`; the stored part of its key replaces the content of `key`, or anything does if it is damaged.
    #[inline]
    pub fn entry_and_key(&self, index: usize, key: &mut Vec<u8>) -> Result<LeafEntry<'a>> {
        let raw = self.0.entry(index)?;
        self.0.key_of(index, &raw, key)?;
        self.decoded(index, &raw)
    }

    #[inline]
    fn decoded(&self, index: usize, raw: &RawEntry<'a>) -> Result<LeafEntry<'a>> {
        let body = decode_body(raw).ok_or_else(|| self.0.damaged(index))?;
        let stored_bytes = (self.0.prefix.len() + raw.length) as u32;
        Ok(LeafEntry {
            lsn: body.lsn,
            payload: body.payload,
            key_bytes: body.long_key_bytes.unwrap_or(stored_bytes),
        })
    }

    /// The first entry of `range` with an LSN, or with a value that has expired by `horizon`; the end of the range if there
    /// is none. Reads at most one byte of each entry whose value has no attributes.
    pub fn next_to_judge(&self, range: Range<usize>, horizon: Option<Timestamp>) -> usize {
        let end = range.end;
        let has_expired = |index| {
            let entry = self.entry(index);
            horizon.is_some_and(|now| entry.is_ok_and(|entry| entry.payload.has_expired(now)))
        };
        let is_found = |index: &usize| {
            let tag = self.0.tag(*index);
            tag.is_some_and(|tag| has_lsn(tag) || (has_attributes(tag) && has_expired(*index)))
        };
        range.into_iter().find(is_found).unwrap_or(end)
    }

    /// The LSN of entry `index`.
    pub(crate) fn lsn(&self, index: usize) -> Result<Lsn> {
        match self.0.tag(index) {
            Some(tag) if !has_lsn(tag) => Ok(Lsn(0)),
            _ => self.entry(index).map(|entry| entry.lsn),
        }
    }

    /// Replaces the content of `key` by the stored part of the key of entry `index`.
    pub fn key_into(&self, index: usize, key: &mut Vec<u8>) -> Result<()> {
        self.0.key_into(index, key)
    }

    /// Searches for `key` (whole). Compares 8-byte heads first, and the rest of keys only if heads are equal.
    pub fn search(&self, key: &[u8]) -> Result<LeafSearch> {
        let probe = match self.0.place(stored_part(key)) {
            KeyPosition::Before => return Ok(LeafSearch::Absent(0)),
            KeyPosition::After => return Ok(LeafSearch::Absent(self.len())),
            KeyPosition::Among(probe) => probe,
        };
        let (at, equal) = self.0.seek(&probe)?;
        if !equal {
            return Ok(LeafSearch::Absent(at));
        }
        if key.len() > LONG_KEY_STORED_BYTES {
            return self.search_long(at, &probe);
        }
        // Of equal stored keys the short one, which is a whole key, comes before the long ones.
        Ok(if is_long(self.0.entry(at)?.tag) {
            LeafSearch::Absent(at)
        } else {
            LeafSearch::Found(at)
        })
    }

    /// The long entries from `first` on whose stored key equals the probe's.
    #[cold]
    fn search_long(&self, mut first: usize, probe: &Probe<'_>) -> Result<LeafSearch> {
        let end = self.0.seek_end(first, probe)?;
        let mut long = end;
        while first < long {
            let middle = first.midpoint(long);
            if is_long(self.0.entry(middle)?.tag) {
                long = middle;
            } else {
                first = middle + 1;
            }
        }
        Ok(if first == end {
            LeafSearch::Absent(end)
        } else {
            LeafSearch::Long { first, end }
        })
    }
}

impl fmt::Debug for Leaf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leaf({}, {} entries)", self.0.page_no(), self.len())
    }
}
