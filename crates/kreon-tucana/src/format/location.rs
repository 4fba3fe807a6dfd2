//! Where a record is in the log, in 8 bytes.

use kreon_base::LogOffset;

/// Units of the length of short records and of long ones: lengths of short ones, whole units of the log, are exact.
const SHORT_UNIT_BYTES: usize = 8;
const LONG_UNIT_BYTES: usize = 64;

/// The bit of a length that marks long records.
const IS_LONG: u16 = 1 << 15;

/// Longest record whose length is told exactly: 256 KiB - 8.
pub const EXACT_BYTES_MAX: usize = (IS_LONG - 1) as usize * SHORT_UNIT_BYTES;

/// Longest record whose length a location can tell: 2 MiB - 64.
pub const RECORD_BYTES_MAX: usize = (IS_LONG - 1) as usize * LONG_UNIT_BYTES;

/// The place of a record in the log, and how long it is: how much a reader must read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Where it starts, 48 bits.
    pub offset: LogOffset,
    /// Its length, rounded up: in units of 8 bytes, or with the highest bit set in units of 64.
    pub length: u16,
}

impl Location {
    /// The location of a record of `record_bytes` bytes, up to [`RECORD_BYTES_MAX`].
    pub fn new(offset: LogOffset, record_bytes: usize) -> Self {
        debug_assert!(offset.0 < 1 << 48 && record_bytes <= RECORD_BYTES_MAX);
        Self {
            offset,
            length: match record_bytes <= EXACT_BYTES_MAX {
                true => record_bytes.div_ceil(SHORT_UNIT_BYTES) as u16,
                false => IS_LONG | record_bytes.div_ceil(LONG_UNIT_BYTES) as u16,
            },
        }
    }

    /// Bytes that hold the record.
    pub fn extent_bytes(self) -> usize {
        let units = usize::from(self.length & !IS_LONG);
        match self.length & IS_LONG {
            0 => units * SHORT_UNIT_BYTES,
            _ => units * LONG_UNIT_BYTES,
        }
    }

    pub(super) fn encode(self) -> [u8; 8] {
        (self.offset.0 << 16 | u64::from(self.length)).to_le_bytes()
    }

    pub(super) fn decode(bytes: [u8; 8]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Self {
            offset: LogOffset(word >> 16),
            length: word as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact_up_to_256_kib_and_never_too_short() {
        for bytes in [8, 24, 136, EXACT_BYTES_MAX - 8, EXACT_BYTES_MAX] {
            assert_eq!(Location::new(LogOffset(8), bytes).extent_bytes(), bytes);
        }
        for bytes in [EXACT_BYTES_MAX + 8, 1 << 20, RECORD_BYTES_MAX] {
            let told = Location::new(LogOffset(8), bytes).extent_bytes();
            assert!((bytes..bytes + 64).contains(&told), "{bytes}: {told}");
        }
    }

    #[test]
    fn what_is_encoded_reads_back() {
        for bytes in [24, EXACT_BYTES_MAX, RECORD_BYTES_MAX] {
            let location = Location::new(LogOffset((1 << 48) - 8), bytes);
            assert_eq!(Location::decode(location.encode()), location);
        }
    }
}
