//! Content of an index entry.

use crate::LogOffset;

/// Content of an index entry for one version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The value is in the log, after the header and the key of the record at `offset`.
    Logged {
        /// Where the record starts.
        offset: LogOffset,
        /// Length of the value, 0 to [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
        value_bytes: u32,
    },
    /// The value is in the index itself.
    Inline {
        /// The value.
        value: &'a [u8],
    },
    /// The key was deleted by the record at `offset`.
    Tombstone {
        /// Where the record of the deletion starts.
        offset: LogOffset,
    },
    /// The key lies in a deleted range. Only trees have such entries, and only above an older version of the key in the
    /// same tree that a snapshot sees: it hides that version and nothing else, because a range deletion is applied to
    /// each tree separately. It has no log record.
    Erased {
        /// For a key too long for a node: a record that holds the key, namely that of the older version. Otherwise 0.
        key_at: LogOffset,
    },
}
