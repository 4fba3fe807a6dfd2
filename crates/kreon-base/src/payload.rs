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
    /// The key lies in a range that was deleted. Stands in trees alone, above an older version of the key that a
    /// snapshot sees, and hides nothing but that: what other trees say of the key is not its affair, the deletion
    /// of a range is applied to each of them. It has no record of its own.
    Erased {
        /// A record that holds the key, for a key that does not fit a node: that of the version beneath. Else 0.
        key_at: LogOffset,
    },
}
