//! Versions of keys, the input of a merge, and what a merge reports to the owner of the log and of
//! the pages.

use std::sync::Arc;

use kreon_base::{LogOffset, Lsn, PageNo, Payload, Result};

use crate::ranges::RegionRanges;

/// One version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// When it was written; 0: visible to every snapshot.
    pub lsn: Lsn,
    /// The value, where it is, or that the key is deleted.
    pub payload: Payload<'a>,
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

    /// Ranges that are deleted: of all keys in them, versions older than the deletion, in the stream and in the
    /// tree. Asked for once, before the first entry.
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
    /// Length of its value; 0 for a deletion.
    pub value_bytes: u32,
}

impl Reference {
    /// What an entry points at; none if it holds the value itself, or is what a deleted range left.
    pub fn of(key_bytes: u32, payload: Payload<'_>) -> Option<Self> {
        let (offset, value_bytes) = match payload {
            Payload::Logged {
                offset,
                value_bytes,
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

/// Is told what a merge changes, while it runs. If the merge fails, none of it happened.
///
/// References add up: those of the old tree, plus [`referenced`](Self::referenced), minus
/// [`dropped`](Self::dropped), are exactly those of the new tree, also when the input holds what the
/// tree holds already (a replay after a crash).
pub trait Changes {
    /// The new tree does not reach this page of the old one.
    fn freed(&mut self, page: PageNo);

    /// An entry from the input is in the new tree.
    fn referenced(&mut self, record: Reference);

    /// An entry of the old tree is not in the new one.
    fn dropped(&mut self, record: Reference);
}
