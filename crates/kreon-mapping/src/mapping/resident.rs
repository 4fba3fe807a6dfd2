//! Reads that need nothing but the page array and the frames.

use kreon_base::Priority;

use super::Mapping;
use crate::read::{self, ByteRange};

impl Mapping {
    /// Lends the bytes from `offset_bytes` on to `use_bytes` if they lie in one page or two that are resident now; never
    /// waits, and asks neither for kept records nor for what is being read. In place where one page has them or two whose
    /// frames are neighbours, else as a copy in `scratch`. `use_bytes` should not take long, as in [`read`](Self::read).
    #[inline]
    pub fn with_resident_bytes<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let range = ByteRange {
            offset_bytes,
            len_bytes,
            priority,
        };
        read::with_resident_bytes(self.reader(), range, scratch, use_bytes)
    }

    /// Whether all pages of these bytes are resident at this moment.
    #[inline]
    pub fn are_resident(&self, offset_bytes: u64, len_bytes: usize) -> bool {
        read::are_resident_bytes(self.reader(), offset_bytes, len_bytes)
    }
}
