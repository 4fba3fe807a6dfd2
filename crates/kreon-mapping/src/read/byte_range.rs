//! Ranges of bytes of the volume, and the pages that they touch.

use std::ops::Range;

use kreon_base::{PAGE_BYTES, PageNo, Priority};

/// Bytes of the log that are on the device and final, as all bytes are from the start of their segment to
/// `final_end_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalBytes {
    /// Offset of the first, in bytes.
    pub offset_bytes: u64,
    /// How many.
    pub len_bytes: usize,
    /// In the same segment, or its end.
    pub final_end_bytes: u64,
}

impl FinalBytes {
    /// The pages they touch: the first, and how many.
    pub(crate) fn pages(&self) -> (PageNo, u32) {
        touched(self.offset_bytes, self.len_bytes)
    }
}

/// Bytes of the volume that are read.
#[derive(Clone, Copy)]
pub(crate) struct ByteRange {
    pub offset_bytes: u64,
    pub len_bytes: usize,
    pub priority: Priority,
}

/// The pages that a range touches, at least one: the first, and how many.
pub(crate) fn touched(offset_bytes: u64, len_bytes: usize) -> (PageNo, u32) {
    let first = PageNo::containing(offset_bytes);
    let last = PageNo::containing(offset_bytes + len_bytes.max(1) as u64 - 1);
    (first, (last.0 - first.0 + 1) as u32)
}

/// Memory that takes a copy of the volume's bytes from `offset_bytes` on.
pub(crate) struct ByteCopy<'a> {
    pub offset_bytes: u64,
    pub priority: Priority,
    pub into: &'a mut [u8],
}

impl ByteCopy<'_> {
    /// The numbers of the pages that the range touches.
    pub(super) fn pages(&self) -> Range<u64> {
        let end_bytes = self.offset_bytes + self.into.len() as u64;
        self.offset_bytes / PAGE_BYTES as u64..end_bytes.div_ceil(PAGE_BYTES as u64)
    }

    /// What page `page` fills.
    pub(super) fn part(&mut self, page: u64) -> PagePart<'_> {
        let page_start = page * PAGE_BYTES as u64;
        let within = self.offset_bytes.saturating_sub(page_start) as usize;
        let skipped = page_start.saturating_sub(self.offset_bytes) as usize;
        debug_assert!(
            within < PAGE_BYTES && skipped < self.into.len(),
            "page {page} is outside the range"
        );
        let len = (PAGE_BYTES - within).min(self.into.len() - skipped);
        PagePart {
            within,
            into: &mut self.into[skipped..skipped + len],
        }
    }
}

/// Memory for the bytes of one page from `within` on.
pub(super) struct PagePart<'a> {
    pub within: usize,
    pub into: &'a mut [u8],
}

impl PagePart<'_> {
    /// Fills it from `page`, the bytes of the page.
    pub(super) fn fill(&mut self, page: &[u8]) {
        let end = self.within + self.into.len();
        self.into.copy_from_slice(&page[self.within..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_range_cover_it_once() {
        let pattern = |offset: u64| (offset % 251) as u8;
        for (offset, len) in [
            (0, 1),
            (4095, 2),
            (4000, 9000),
            (4096, 4096),
            (12_288, 8192),
        ] {
            let mut into = vec![0; len];
            let mut copy = ByteCopy {
                offset_bytes: offset,
                priority: Priority(0),
                into: &mut into,
            };
            for page in copy.pages() {
                let part = copy.part(page);
                let start = page * PAGE_BYTES as u64 + part.within as u64;
                for (i, byte) in part.into.iter_mut().enumerate() {
                    *byte += pattern(start + i as u64) + 1;
                }
            }
            let expected: Vec<u8> = (0..len as u64).map(|i| pattern(offset + i) + 1).collect();
            assert_eq!(into, expected, "{len} bytes at {offset}");
        }
    }
}
