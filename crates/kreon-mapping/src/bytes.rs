//! Reading bytes that do not keep to pages: records of the log.

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::{AlignedBuf, Read};

use crate::hot_reads::can_be_kept;
use crate::mapping::Mapping;
use crate::options::PageRequest;
use crate::prefetch::TRANSFER_PAGES_MAX;

/// Longest range that is brought into frames. Longer values would drive out what is worth keeping,
/// and gain least from being kept.
pub(crate) const FRAMED_BYTES_MAX: usize = 64 << 10;

/// Memory through which longer ranges are read, in bytes: two transfers.
const WINDOW_BYTES: u64 = (2 * TRANSFER_PAGES_MAX * PAGE_BYTES) as u64;

/// Bytes of the log carry checksums of their own, which the log verifies.
fn unchecked(_: &PageBytes) -> Result<()> {
    Ok(())
}

/// The pages that a range of bytes touches.
pub(crate) fn pages_of(offset_bytes: u64, len_bytes: usize) -> std::ops::Range<u64> {
    let page_bytes = PAGE_BYTES as u64;
    offset_bytes / page_bytes..(offset_bytes + len_bytes as u64).div_ceil(page_bytes)
}

/// The part of `into`, a copy of the volume's bytes from `offset_bytes` on, that page `page` fills,
/// and where in the page that part starts.
pub(crate) fn part_of(into: &mut [u8], offset_bytes: u64, page: u64) -> (&mut [u8], usize) {
    let page_start = page * PAGE_BYTES as u64;
    let within = offset_bytes.saturating_sub(page_start) as usize;
    let skipped = page_start.saturating_sub(offset_bytes) as usize;
    let len = (PAGE_BYTES - within).min(into.len() - skipped);
    (&mut into[skipped..skipped + len], within)
}

impl Mapping {
    /// Copies the bytes from `offset_bytes` on into `into`. Up to 64 KiB, what is not resident is
    /// brought into frames, all at once, with this priority; of longer ranges it is read past the
    /// frames, through 2 MiB of memory that is freed on return.
    ///
    /// # Errors
    /// Those of the device; `InvalidArgument` if the range reaches over the longest volume.
    pub fn read_bytes(&self, offset_bytes: u64, priority: Priority, into: &mut [u8]) -> Result<()> {
        self.check_range(offset_bytes, into.len())?;
        if into.is_empty() {
            return Ok(());
        }
        if let Some(mapped) = &self.mapped {
            return self.copy_mapped(mapped, offset_bytes, priority, into);
        }
        if into.len() > FRAMED_BYTES_MAX {
            return self.read_long(offset_bytes, priority, into);
        }
        let request = |page| PageRequest {
            page: PageNo(page),
            priority,
            check: &unchecked,
        };
        let pages = pages_of(offset_bytes, into.len());
        let count = (pages.end - pages.start) as u32;
        if count > 1 && !self.are_resident(PageNo(pages.start), count) {
            let requests: Vec<_> = pages.clone().map(request).collect();
            self.prefetch(&requests)?;
        }
        for page in pages {
            let (part, within) = part_of(into, offset_bytes, page);
            self.read(request(page), |bytes| {
                part.copy_from_slice(&bytes[within..within + part.len()]);
            })?;
        }
        Ok(())
    }

    /// Lends the bytes from `offset_bytes` on to `use_bytes`: from the frame where they lie within
    /// one page, else as a copy in `scratch`, which is overwritten.
    ///
    /// # Errors
    /// As [`read_bytes`](Self::read_bytes).
    pub fn with_bytes<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        self.check_range(offset_bytes, len_bytes)?;
        if len_bytes == 0 {
            return Ok(use_bytes(&[]));
        }
        if let Some(hot) = &self.hot
            && can_be_kept(offset_bytes, len_bytes)
        {
            return self.with_record(hot, offset_bytes, len_bytes, priority, scratch, use_bytes);
        }
        if self.mapped.is_some() {
            scratch.clear();
            scratch.resize(len_bytes, 0);
            self.read_bytes(offset_bytes, priority, scratch)?;
            return Ok(use_bytes(scratch));
        }
        self.with_pages(offset_bytes, len_bytes, priority, scratch, use_bytes)
    }

    /// Lends bytes through their pages.
    pub(crate) fn with_pages<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let within = (offset_bytes % PAGE_BYTES as u64) as usize;
        if len_bytes <= PAGE_BYTES - within {
            let request = PageRequest {
                page: PageNo::containing(offset_bytes),
                priority,
                check: &unchecked,
            };
            return self.read(request, |bytes| {
                use_bytes(&bytes[within..within + len_bytes])
            });
        }
        scratch.clear();
        scratch.resize(len_bytes, 0);
        self.read_bytes(offset_bytes, priority, scratch)?;
        Ok(use_bytes(scratch))
    }

    pub(crate) fn check_range(&self, offset_bytes: u64, len_bytes: usize) -> Result<()> {
        let volume_bytes = self.plan.pages * PAGE_BYTES as u64;
        match offset_bytes.checked_add(len_bytes as u64) {
            Some(end) if end <= volume_bytes => Ok(()),
            _ => Err(Error::invalid(format!(
                "{len_bytes} bytes at {offset_bytes} are outside the volume, which has at most \
                 {volume_bytes} bytes"
            ))),
        }
    }

    /// Reads a long range window by window.
    fn read_long(&self, offset_bytes: u64, priority: Priority, into: &mut [u8]) -> Result<()> {
        // A range that is not aligned touches one page more than its length says.
        let touched_bytes = into.len().next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        let mut window = AlignedBuf::new(touched_bytes.min(WINDOW_BYTES as usize));
        let mut offset = offset_bytes;
        let mut rest = into;
        while !rest.is_empty() {
            // Windows end on page boundaries.
            let window_end = (offset / WINDOW_BYTES + 1) * WINDOW_BYTES;
            let len = (window_end - offset).min(rest.len() as u64) as usize;
            let (part, later) = rest.split_at_mut(len);
            self.read_window(offset, priority, part, &mut window)?;
            offset += len as u64;
            rest = later;
        }
        Ok(())
    }

    /// Fills `into` from frames where pages are resident, else from the device, all at once.
    fn read_window(
        &self,
        offset_bytes: u64,
        priority: Priority,
        into: &mut [u8],
        window: &mut AlignedBuf,
    ) -> Result<()> {
        let pages = pages_of(offset_bytes, into.len());
        let mut absent = Vec::new();
        for page in pages.clone() {
            let (part, within) = part_of(into, offset_bytes, page);
            let copied = self.read_resident(PageNo(page), priority, |bytes| {
                part.copy_from_slice(&bytes[within..within + part.len()]);
            });
            if copied.is_none() {
                absent.push(page);
            }
        }
        self.read_runs(pages.start, &absent, priority, window)?;
        for page in absent {
            let (part, within) = part_of(into, offset_bytes, page);
            let start = (page - pages.start) as usize * PAGE_BYTES + within;
            part.copy_from_slice(&window[start..start + part.len()]);
        }
        Ok(())
    }

    /// Reads sorted pages to their places in a window that starts with page `first`.
    fn read_runs(
        &self,
        first: u64,
        pages: &[u64],
        priority: Priority,
        window: &mut [u8],
    ) -> Result<()> {
        let mut reads: Vec<Read<'_>> = Vec::new();
        let mut rest = window;
        let mut position = first;
        for run in pages.chunk_by(|one, next| one + 1 == *next) {
            for piece in run.chunks(TRANSFER_PAGES_MAX) {
                let [start, ..] = piece else {
                    continue;
                };
                let skipped = (start - position) as usize * PAGE_BYTES;
                let (_, later) = std::mem::take(&mut rest).split_at_mut(skipped);
                let (buffer, later) = later.split_at_mut(piece.len() * PAGE_BYTES);
                reads.push(Read::new(PageNo(*start).offset_bytes(), buffer));
                rest = later;
                position = start + piece.len() as u64;
            }
        }
        if reads.is_empty() {
            return Ok(());
        }
        self.counters.misses.add(priority, pages.len() as u64);
        self.device.read(&mut reads)?;
        self.counters.pages_read.add(pages.len() as u64);
        self.counters.pages_read_past.add(pages.len() as u64);
        Ok(())
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
