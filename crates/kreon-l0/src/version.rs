//! What an L0 says about a key, and what it keeps of the past.

use kreon_base::{Lsn, Payload};

use crate::arena::SECOND_BYTES_MAX;

/// Longest inline value, in bytes. (An inline value also has to fit a leaf of a level later, which is
/// far less.)
pub const INLINE_BYTES_MAX: usize = SECOND_BYTES_MAX;

/// One version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// When it was written.
    pub lsn: Lsn,
    /// What was written; an inline value borrows from the L0 itself.
    pub payload: Payload<'a>,
    /// It was inserted with [`Keep::unit_pending`]. The mark stays: whether its unit is visible by
    /// now, only the caller knows.
    pub pending: bool,
}

/// Which older versions of a key an insert must retain. The default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The newest live snapshot: versions with a lower LSN are retained. (One from there on is in no
    /// snapshot: a snapshot sees the versions below its LSN.)
    pub snapshot_max: Option<Lsn>,
    /// The new version is part of a unit (a batch) that is not visible yet: it is marked pending, and
    /// of the versions beneath it those are retained that readers may have to see instead.
    pub unit_pending: bool,
    /// Pending versions with a lower LSN are visible to every reader that begins now.
    pub visible_before: Lsn,
}

impl Keep {
    /// Whether a snapshot sees a version of `lsn`.
    pub(crate) fn snapshot_sees(self, lsn: u64) -> bool {
        self.snapshot_max.is_some_and(|snapshot| lsn < snapshot.0)
    }

    /// Whether a version of `lsn` must stay beneath the one that is inserted.
    pub(crate) fn retains(self, lsn: u64) -> bool {
        self.unit_pending || self.snapshot_sees(lsn)
    }

    /// Whether a version hides all beneath it from readers without a snapshot.
    pub(crate) fn hides_older(self, lsn: u64, pending: bool) -> bool {
        !pending || lsn < self.visible_before.0
    }
}
