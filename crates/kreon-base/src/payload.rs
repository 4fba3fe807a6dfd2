//! What an index says about a version of a key.

use crate::LogOffset;

/// What an index entry holds for one version of a key: where the value is, the value itself, or that
/// the key was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The value stands in the log, behind the header and the key of the record at `offset`.
    Logged {
        /// Where the record starts.
        offset: LogOffset,
        /// Length of the value, 0 to [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
        value_bytes: u32,
    },
    /// The value stands in the index itself.
    Inline {
        /// The value.
        value: &'a [u8],
    },
    /// The key was deleted by the record at `offset`.
    Tombstone {
        /// Where the record of the deletion starts.
        offset: LogOffset,
    },
}
