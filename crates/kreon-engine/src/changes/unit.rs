//! What a feed shows: units of changes.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use kreon_base::Lsn;

/// A place in the order of all changes of a store, between two units. It stays what it is when the store is opened again.
/// Later places are greater; what the numbers are otherwise is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    pub(super) const fn of(lsn: Lsn) -> Self {
        Self(lsn.0)
    }

    pub(super) const fn lsn(self) -> Lsn {
        Lsn(self.0)
    }
}

impl From<Position> for u64 {
    fn from(position: Position) -> Self {
        position.0
    }
}

impl From<u64> for Position {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Position {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Changes that were applied together: those of a batch or transaction, or a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeUnit {
    /// Behind it: where a follower that has applied it goes on.
    pub end: Position,
    /// In their order.
    pub changes: Vec<Change>,
}

/// A change of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The number of the region, which no other region ever has.
    pub region: u32,
    /// Its name. `None`: it was dropped since, and the feed has seen neither its making nor its drop.
    pub name: Option<Arc<str>>,
    /// What changed.
    pub what: Changed,
}

/// What a change did to its region.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Changed {
    /// The key got a value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// When the value ends, if it does not stay until the next write of the key.
        expires: Option<SystemTime>,
    },
    /// The key was deleted.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// All keys of a range were deleted.
    DeleteRange {
        /// The first key.
        start: Vec<u8>,
        /// Behind the last key; `None`: to the last key of the region.
        end: Option<Vec<u8>>,
    },
    /// The region was made.
    Made,
    /// The region was dropped, with all that was in it. If the store failed or a crash came in the middle of the drop and the
    /// region is dropped later, both are shown, and between them what was written to the region.
    Dropped,
    /// Pairs from the first of these keys to the last one were loaded. The feed does not show them; a scan of the store does,
    /// and what it shows may be newer than this change. A load that failed at its last step may be told, too.
    Loaded {
        /// The first key.
        first: Vec<u8>,
        /// The last key.
        last: Vec<u8>,
    },
}
