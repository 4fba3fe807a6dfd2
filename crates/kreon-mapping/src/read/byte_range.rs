//! Ranges of bytes of the volume, and the pages that they touch.

use std::ops::Range;

use kreon_base::{PAGE_BYTES, PageNo};

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

/// The pages that a range touches, at least one: the first, and how many.
pub(super) fn touched(offset_bytes: u64, len_bytes: usize) -> (PageNo, u32) {
    let first = PageNo::containing(offset_bytes);
    let last = PageNo::containing(offset_bytes + len_bytes.max(1) as u64 - 1);
    (first, (last.0 - first.0 + 1) as u32)
}

/// The numbers of the pages that a range touches.
pub(super) fn pages_of(offset_bytes: u64, len_bytes: usize) -> Range<u64> {
    let page_bytes = PAGE_BYTES as u64;
    offset_bytes / page_bytes..(offset_bytes + len_bytes as u64).div_ceil(page_bytes)
}

/// The part of `into`, a copy of the volume's bytes from `offset_bytes` on, that page `page` fills, and the offset of
/// that part in the page.
pub(super) fn part_of(into: &mut [u8], offset_bytes: u64, page: u64) -> (&mut [u8], usize) {
    let page_start = page * PAGE_BYTES as u64;
    let within = offset_bytes.saturating_sub(page_start) as usize;
    let skipped = page_start.saturating_sub(offset_bytes) as usize;
    debug_assert!(
        within < PAGE_BYTES && skipped < into.len(),
        "page {page} is outside the range"
    );
    let len = (PAGE_BYTES - within).min(into.len() - skipped);
    (&mut into[skipped..skipped + len], within)
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
            for page in pages_of(offset, len) {
                let (part, within) = part_of(&mut into, offset, page);
                let start = page * PAGE_BYTES as u64 + within as u64;
                for (i, byte) in part.iter_mut().enumerate() {
                    *byte += pattern(start + i as u64) + 1;
                }
            }
            let expected: Vec<u8> = (0..len as u64).map(|i| pattern(offset + i) + 1).collect();
            assert_eq!(into, expected, "{len} bytes at {offset}");
        }
    }
}
