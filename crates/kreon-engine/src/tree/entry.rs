//! Versions of keys, the input of a merge, and its report of freed pages and log references.

use std::sync::Arc;

use kreon_base::{LogOffset, Lsn, PageNo, Payload, Result};
use kreon_format::LeafEntry;

use crate::ranges::RegionRanges;

/// One version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// When it was written; 0: visible to every snapshot.
    pub lsn: Lsn,
    /// The value, where it is, or that the key is deleted.
    pub payload: Payload<'a>,
}

impl<'a> Version<'a> {
    /// The version in an entry of a leaf.
    pub(super) fn of(entry: &LeafEntry<'a>) -> Self {
        Self {
            lsn: entry.lsn,
            payload: entry.payload,
        }
    }

    /// The version with an inline value cut out, so that it borrows nothing.
    pub(super) fn without_value(self) -> Version<'static> {
        let payload = match self.payload {
            Payload::Inline { attributes, .. } => Payload::Inline {
                value: &[],
                attributes,
            },
            Payload::Logged {
                offset,
                value_bytes,
                attributes,
            } => Payload::Logged {
                offset,
                value_bytes,
                attributes,
            },
            Payload::Tombstone { offset } => Payload::Tombstone { offset },
            Payload::Erased { key_at } => Payload::Erased { key_at },
        };
        Version {
            lsn: self.lsn,
            payload,
        }
    }
}

/// A key and one of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The whole key.
    pub key: &'a [u8],
    /// When it was written; 0: visible to every snapshot.
    pub lsn: Lsn,
    /// The value, where it is, or that the key is deleted.
    pub payload: Payload<'a>,
}

/// Entries in order: keys ascending, the versions of one key newest first.
pub trait EntryStream {
    /// The next entry; none at the end, and from then on.
    fn next(&mut self) -> Result<Option<Entry<'_>>>;

    /// Deleted ranges. They delete older versions of the keys in them, both in the stream and in the tree.
    /// Called once, before the first entry.
    fn ranges(&self) -> Option<Arc<RegionRanges>> {
        None
    }
}

/// A log record that an entry of a tree points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Where the record starts.
    pub offset: LogOffset,
    /// Length of its key.
    pub key_bytes: u32,
    /// Bytes behind its key: value and attributes; 0 for a deletion.
    pub value_bytes: u32,
}

impl Reference {
    /// The record that an entry points at; none for an inline value and for `Erased`.
    pub fn of(key_bytes: u32, payload: Payload<'_>) -> Option<Self> {
        let (offset, value_bytes) = match payload {
            Payload::Logged {
                offset,
                value_bytes,
                ..
            } => (offset, value_bytes),
            Payload::Tombstone { offset } => (offset, 0),
            Payload::Inline { .. } | Payload::Erased { .. } => return None,
        };
        Some(Self {
            offset,
            key_bytes,
            value_bytes,
        })
    }
}

/// Receives the changes of a merge while it runs; they are void if the merge fails.
///
/// The references of the new tree are exactly those of the old one plus [`referenced`](Self::referenced)
/// minus [`dropped`](Self::dropped), even if the input repeats entries of the tree (a replay after a crash).
pub trait Changes {
    /// The new tree does not reach this page of the old one.
    fn freed(&mut self, page: PageNo);

    /// An entry from the input is in the new tree.
    fn referenced(&mut self, record: Reference);

    /// An entry of the old tree is not in the new one.
    fn dropped(&mut self, record: Reference);
}
