//! Where a record is in the log, in 8 bytes.

use kreon_base::LogOffset;

/// Unit of a record's length in a leaf.
pub const LENGTH_UNIT_BYTES: usize = 64;

/// Longest record whose length a location can tell: 4 MiB - 64.
pub const RECORD_BYTES_MAX: usize = u16::MAX as usize * LENGTH_UNIT_BYTES;

/// The place of a record in the log, and about how long it is: how much a reader must read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Where it starts, 48 bits.
    pub offset: LogOffset,
    /// Its length in units of [`LENGTH_UNIT_BYTES`], rounded up.
    pub units: u16,
}

impl Location {
    /// The location of a record of `record_bytes` bytes, up to [`RECORD_BYTES_MAX`].
    pub fn new(offset: LogOffset, record_bytes: usize) -> Self {
        debug_assert!(offset.0 < 1 << 48 && record_bytes <= RECORD_BYTES_MAX);
        Self {
            offset,
            units: record_bytes.div_ceil(LENGTH_UNIT_BYTES) as u16,
        }
    }

    /// Bytes that hold the record.
    pub fn extent_bytes(self) -> usize {
        usize::from(self.units) * LENGTH_UNIT_BYTES
    }

    pub(super) fn encode(self) -> [u8; 8] {
        (self.offset.0 << 16 | u64::from(self.units)).to_le_bytes()
    }

    pub(super) fn decode(bytes: [u8; 8]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Self {
            offset: LogOffset(word >> 16),
            units: word as u16,
        }
    }
}
