//! Versions of a key, and the rule for retaining old ones.

use kreon_base::{Lsn, Payload};

use crate::arena::SECOND_BYTES_MAX;

/// Longest inline value in bytes, with its attributes. (A leaf of a tree allows far less.)
pub const INLINE_BYTES_MAX: usize = SECOND_BYTES_MAX;

/// One version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// LSN of the write.
    pub lsn: Lsn,
    /// Content of the write; an inline value borrows from the L0.
    pub payload: Payload<'a>,
    /// Whether it was inserted with [`Keep::unit_pending`]. The mark is never removed: only the caller knows whether
    /// the unit is visible by now.
    pub pending: bool,
}

/// The older versions of a key that an insert must retain. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The newest open snapshot: versions with a lower LSN are retained. No snapshot sees a version from this LSN on,
    /// as a snapshot sees the versions below its LSN.
    pub snapshot_max: Option<Lsn>,
    /// The new version belongs to a unit (a batch) that is not visible yet: it is marked pending, and the versions
    /// beneath that readers may have to see instead are retained.
    pub unit_pending: bool,
    /// Pending versions with a lower LSN are visible to all readers that start now.
    pub visible_before: Lsn,
}

impl Keep {
    /// Whether a snapshot sees a version of `lsn`.
    pub(crate) fn snapshot_sees(self, lsn: u64) -> bool {
        self.snapshot_max.is_some_and(|snapshot| lsn < snapshot.0)
    }

    /// Whether a version of `lsn` must stay beneath the inserted one.
    pub(crate) fn retains(self, lsn: u64) -> bool {
        self.unit_pending || self.snapshot_sees(lsn)
    }

    /// Whether a version hides all versions beneath it from readers without a snapshot.
    pub(crate) fn hides_older(self, lsn: u64, pending: bool) -> bool {
        !pending || lsn < self.visible_before.0
    }
}
