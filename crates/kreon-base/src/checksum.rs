//! The one checksum of the format: CRC-32C.

use crc_fast::{CrcAlgorithm, Digest};

/// An incremental CRC-32C (Castagnoli).
///
/// The format seeds a checksum with the identity of the data (store, address) before the bytes, so that an intact block
/// in the wrong place does not verify.
pub struct Checksum(Digest);

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}

impl Checksum {
    /// Starts an empty checksum.
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Checksum of `bytes` alone. About 20 ns per KiB in cache.
    pub fn of(bytes: &[u8]) -> u32 {
        crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
    }

    /// Adds `bytes`.
    #[must_use]
    pub fn with(mut self, bytes: &[u8]) -> Self {
        self.0.update(bytes);
        self
    }

    /// The checksum of all bytes added so far.
    pub fn finish(self) -> u32 {
        self.0.finalize() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_of_crc32c() {
        assert_eq!(Checksum::of(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn pieces_sum_to_the_whole() {
        let pieces = Checksum::new()
            .with(b"1234")
            .with(b"")
            .with(b"56789")
            .finish();
        assert_eq!(pieces, Checksum::of(b"123456789"));
    }
}
