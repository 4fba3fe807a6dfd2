//! Content of an index entry.

use crate::{Attributes, LogOffset, Timestamp};

/// Content of an index entry for one version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The value is in the log, after the header and the key of the record at `offset`.
    Logged {
        /// Where the record starts.
        offset: LogOffset,
        /// Bytes behind the key: those of the value, 0 to [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX), and in front of
        /// them those of its attributes, if it has any.
        value_bytes: u32,
        /// What is kept beside the value. The record has them, too.
        attributes: Attributes,
    },
    /// The value is in the index itself.
    Inline {
        /// The value, without its attributes.
        value: &'a [u8],
        /// What is kept beside the value.
        attributes: Attributes,
    },
    /// The key was deleted by the record at `offset`.
    Tombstone {
        /// Where the record of the deletion starts.
        offset: LogOffset,
    },
    /// The key lies in a deleted range, or its value had expired. Only trees have such entries, and only above an older
    /// version of the key in the same tree that a snapshot sees: it hides that version and nothing else, because a range
    /// deletion is applied to each tree separately, and an expired value becomes one in the lowest tree alone. It has no
    /// log record.
    Erased {
        /// For a key too long for a node: a record that holds the key, namely that of the older version. Otherwise 0.
        key_at: LogOffset,
    },
}

impl Payload<'_> {
    /// What is kept beside the value; of a deletion nothing.
    #[inline]
    pub fn attributes(&self) -> Attributes {
        match self {
            Self::Logged { attributes, .. } | Self::Inline { attributes, .. } => *attributes,
            Self::Tombstone { .. } | Self::Erased { .. } => Attributes::NONE,
        }
    }

    /// Whether it is a value that has ended by `now`.
    #[inline]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.attributes().has_expired(now)
    }
}
