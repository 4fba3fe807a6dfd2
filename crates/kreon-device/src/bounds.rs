//! Validation of transfers.

use std::ops::Range;

use kreon_base::{Error, Result};

/// Smallest block of a device, in bytes.
pub const BLOCK_BYTES_MIN: u32 = 512;

/// Largest block of a device, in bytes: one page, so that a page can always be written alone.
pub const BLOCK_BYTES_MAX: u32 = 4096;

/// Alignment and length against which transfers are checked. All [`Device`](crate::Device)s share these checks, so that
/// a wrong transfer fails on every device, even on one that could carry it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Alignment of offsets, lengths and addresses; a power of two.
    pub block_bytes: u32,
    /// Current length of the device in bytes.
    pub len_bytes: u64,
}

impl Bounds {
    /// Checks a transfer between the device and `buffers`.
    pub fn check_buffers<'a>(
        &self,
        offset: u64,
        buffers: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<()> {
        let mut len_bytes = 0u64;
        for buffer in buffers {
            if !self.is_aligned(buffer.as_ptr().addr() as u64) {
                return Err(Error::invalid(format!(
                    "a buffer for the transfer at {offset} is not aligned to {} bytes in memory",
                    self.block_bytes
                )));
            }
            if !self.is_aligned(buffer.len() as u64) {
                return Err(Error::invalid(format!(
                    "a buffer of {} bytes for the transfer at {offset} is not a multiple of {}",
                    buffer.len(),
                    self.block_bytes
                )));
            }
            len_bytes = len_bytes.saturating_add(buffer.len() as u64);
        }
        self.check_range(offset, len_bytes).map(drop)
    }

    /// Checks that `len_bytes` at `offset` are aligned and within the device, and returns the range.
    pub fn check_range(&self, offset: u64, len_bytes: u64) -> Result<Range<u64>> {
        if !self.is_aligned(offset) || !self.is_aligned(len_bytes) {
            return Err(Error::invalid(format!(
                "{len_bytes} bytes at {offset} are not aligned to {}",
                self.block_bytes
            )));
        }
        match offset.checked_add(len_bytes) {
            Some(end) if end <= self.len_bytes => Ok(offset..end),
            _ => Err(Error::invalid(format!(
                "{len_bytes} bytes at {offset} end beyond the device's {}",
                self.len_bytes
            ))),
        }
    }

    fn is_aligned(&self, number: u64) -> bool {
        number & u64::from(self.block_bytes.saturating_sub(1)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuf;

    const BOUNDS: Bounds = Bounds {
        block_bytes: 512,
        len_bytes: 8192,
    };

    #[test]
    fn ranges_up_to_the_end_pass() {
        assert_eq!(BOUNDS.check_range(0, 8192).unwrap(), 0..8192);
        assert_eq!(BOUNDS.check_range(8192, 0).unwrap(), 8192..8192);
    }

    #[test]
    fn ranges_beyond_the_end_or_the_number_space_fail() {
        assert!(BOUNDS.check_range(512, 8192).is_err());
        assert!(BOUNDS.check_range(u64::MAX - 511, 512).is_err());
        assert!(BOUNDS.check_range(u64::MAX - 511, 1024).is_err());
    }

    #[test]
    fn every_misalignment_fails() {
        let buf = AlignedBuf::new(4096);
        assert!(BOUNDS.check_buffers(512, [&buf[512..1024]]).is_ok());
        assert!(BOUNDS.check_buffers(1, [&buf[..512]]).is_err(), "offset");
        assert!(BOUNDS.check_buffers(0, [&buf[8..520]]).is_err(), "address");
        assert!(BOUNDS.check_buffers(0, [&buf[..8]]).is_err(), "length");
        let halves = [&buf[..256], &buf[512..768]];
        assert!(BOUNDS.check_buffers(0, halves).is_err(), "each length");
    }
}
