//! Reading a leaf.

use std::fmt;
use std::ops::Range;

use kreon_base::{Lsn, PageBytes, Payload, RegionId, Result};

use crate::LONG_KEY_STORED_BYTES;
use crate::heads::Probe;
use crate::leaf_entry::{decode_body, has_lsn, is_long};
use crate::node::{NodeView, Place, stored_part};

/// A leaf: versions of keys in key order, the versions of one key newest first.
#[derive(Clone, Copy)]
pub struct Leaf<'a>(pub(crate) NodeView<'a>);

/// One version of a key, as a leaf holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafEntry<'a> {
    /// When it was written; 0: visible to every snapshot.
    pub lsn: Lsn,
    /// The value, where it is, or that the key is deleted.
    pub payload: Payload<'a>,
    /// Length of the whole key. Above [`LONG_KEY_STORED_BYTES`] the leaf holds only the first part.
    pub key_bytes: u32,
}

/// Where a key stands in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafSearch {
    /// The first (newest) entry with the key.
    Found(usize),
    /// The key is not here; the first entry behind it.
    Absent(usize),
    /// The key is long, and so are the entries `first..end`, which begin with the same
    /// [`LONG_KEY_STORED_BYTES`] bytes: the caller compares the rest with the keys of their log
    /// records. They are in order of their whole keys.
    Long {
        /// The first such entry.
        first: usize,
        /// One past the last.
        end: usize,
    },
}

impl<'a> Leaf<'a> {
    /// Opens a leaf; constant time. The page should have passed [`check_node`](crate::check_node);
    /// if it has not, accessors give errors or wrong entries, but never panic.
    pub fn open(page: &'a PageBytes) -> Result<Self> {
        NodeView::open(page, true).map(Self)
    }

    /// Number of entries; 0 only in a page that [`check_node`](crate::check_node) refuses.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.heads.len()
    }

    /// Bytes of the page in use, header included.
    pub fn used_bytes(&self) -> usize {
        self.0.used_bytes()
    }

    /// The region whose tree the leaf is part of.
    pub fn region(&self) -> RegionId {
        self.0.region()
    }

    /// What all stored keys begin with.
    pub fn prefix(&self) -> &'a [u8] {
        self.0.prefix
    }

    /// Entry `index`; an error if there is none or its bytes make no sense.
    pub fn entry(&self, index: usize) -> Result<LeafEntry<'a>> {
        let raw = self.0.entry(index)?;
        let body = decode_body(&raw).ok_or_else(|| self.0.damaged(index))?;
        let stored_bytes = (self.0.prefix.len() + raw.length) as u32;
        Ok(LeafEntry {
            lsn: body.lsn,
            payload: body.payload,
            key_bytes: body.long_key_bytes.unwrap_or(stored_bytes),
        })
    }

    /// The first of the entries `range` that carries an LSN; the end of the range if none does. Reads no
    /// more than a byte of each.
    pub fn next_with_lsn(&self, range: Range<usize>) -> usize {
        let end = range.end;
        let carries = |index: &usize| self.0.tag(*index).is_some_and(has_lsn);
        range.into_iter().find(carries).unwrap_or(end)
    }

    /// The LSN of entry `index`.
    pub(crate) fn lsn(&self, index: usize) -> Result<Lsn> {
        match self.0.tag(index) {
            Some(tag) if !has_lsn(tag) => Ok(Lsn(0)),
            _ => self.entry(index).map(|entry| entry.lsn),
        }
    }

    /// Replaces the content of `key` by the stored part of entry `index`'s key.
    pub fn key_into(&self, index: usize, key: &mut Vec<u8>) -> Result<()> {
        self.0.key_into(index, key)
    }

    /// Finds `key` (whole). Compares 8-byte heads first, the rest of keys only among equal heads.
    pub fn search(&self, key: &[u8]) -> Result<LeafSearch> {
        let probe = match self.0.place(stored_part(key)) {
            Place::Before => return Ok(LeafSearch::Absent(0)),
            Place::After => return Ok(LeafSearch::Absent(self.len())),
            Place::Among(probe) => probe,
        };
        let (at, equal) = self.0.seek(&probe)?;
        if !equal {
            return Ok(LeafSearch::Absent(at));
        }
        if key.len() > LONG_KEY_STORED_BYTES {
            return self.search_long(at, &probe);
        }
        // Of equal stored keys the short one, which is the whole key, comes before the long ones.
        Ok(if is_long(self.0.entry(at)?.tag) {
            LeafSearch::Absent(at)
        } else {
            LeafSearch::Found(at)
        })
    }

    /// The long ones among the entries from `first` on that have the probe's stored key.
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
