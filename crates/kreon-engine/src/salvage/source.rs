//! The damaged volume. It is never written, and failed reads do not end the salvage.

use std::sync::Arc;

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{AlignedBuf, Device, Read};

/// Bytes per read of a segment.
const READ_BYTES: usize = 256 << 10;

/// Most pages per round of reads.
const ROUND_PAGES_MAX: usize = 64;

/// A damaged volume, read only.
pub struct Source {
    device: Arc<dyn Device>,
    /// Length of the volume in whole blocks.
    pub(super) len_bytes: u64,
}

impl Source {
    pub fn new(device: Arc<dyn Device>) -> Self {
        let len_bytes = device.len_bytes();
        let len_bytes = len_bytes - len_bytes % u64::from(device.block_bytes());
        Self { device, len_bytes }
    }

    /// Number of segments, including a partial last one.
    pub fn segments(&self) -> u32 {
        u32::try_from(self.len_bytes.div_ceil(SEGMENT_BYTES)).unwrap_or(u32::MAX)
    }

    /// One page; none if it is behind the end or unreadable.
    pub fn page(&self, page: PageNo) -> Option<Box<PageBytes>> {
        self.pages(&[page]).pop().flatten()
    }

    /// Many pages, read in parallel, in the order of `pages`.
    pub fn pages(&self, pages: &[PageNo]) -> Vec<Option<Box<PageBytes>>> {
        let mut found = Vec::with_capacity(pages.len());
        for round in pages.chunks(ROUND_PAGES_MAX) {
            self.round(round, &mut found);
        }
        found
    }

    /// Each of `items` with its page, which `page_of` tells, or none as [`Self::page`]. Holds the pages of one round in
    /// memory.
    pub fn with_pages<'i, T>(
        &self,
        items: &'i [T],
        page_of: impl Fn(&T) -> PageNo,
    ) -> impl Iterator<Item = (&'i T, Option<Box<PageBytes>>)> {
        items.chunks(ROUND_PAGES_MAX).flat_map(move |round| {
            let pages: Vec<_> = round.iter().map(&page_of).collect();
            round.iter().zip(self.pages(&pages))
        })
    }

    /// The first page of every segment, or none as [`Self::page`].
    pub fn first_pages(&self) -> impl Iterator<Item = (SegmentId, Option<Box<PageBytes>>)> {
        (0..self.segments())
            .step_by(ROUND_PAGES_MAX)
            .flat_map(|first| {
                let end = self
                    .segments()
                    .min(first.saturating_add(ROUND_PAGES_MAX as u32));
                let round: Vec<_> = (first..end).map(SegmentId).collect();
                let pages: Vec<_> = round.iter().map(|segment| segment.first_page()).collect();
                round.into_iter().zip(self.pages(&pages))
            })
    }

    fn round(&self, pages: &[PageNo], found: &mut Vec<Option<Box<PageBytes>>>) {
        let mut buffer = AlignedBuf::new(pages.len() * PAGE_BYTES);
        let is_there = |page: &PageNo| {
            let start = page.0.checked_mul(PAGE_BYTES as u64);
            let end = start.and_then(|start| start.checked_add(PAGE_BYTES as u64));
            end.is_some_and(|end| end <= self.len_bytes)
        };
        let mut reads: Vec<_> = pages
            .iter()
            .zip(buffer.chunks_exact_mut(PAGE_BYTES))
            .filter(|(page, _)| is_there(page))
            .map(|(page, bytes)| Read::new(page.offset_bytes(), bytes))
            .collect();
        // Each read has its own outcome.
        let _ = self.device.read(&mut reads);
        let mut outcomes = reads.into_iter().map(|read| read.outcome.is_ok());
        let is_read: Vec<bool> = pages
            .iter()
            .map(|page| is_there(page) && outcomes.next() == Some(true))
            .collect();
        for (bytes, is_read) in buffer.as_chunks::<PAGE_BYTES>().0.iter().zip(is_read) {
            found.push(is_read.then(|| Box::new(*bytes)));
        }
    }

    /// Fills `buffer` with a segment; missing and unreadable pages become zero.
    pub fn segment(&self, segment: SegmentId, buffer: &mut AlignedBuf) {
        let offset = segment.offset_bytes();
        let there = self
            .len_bytes
            .saturating_sub(offset)
            .min(buffer.len() as u64) as usize;
        let (present, missing) = buffer.split_at_mut(there);
        missing.fill(0);
        let mut reads: Vec<_> = present
            .chunks_mut(READ_BYTES)
            .enumerate()
            .map(|(index, part)| Read::new(offset + (index * READ_BYTES) as u64, part))
            .collect();
        if self.device.read(&mut reads).is_ok() {
            return;
        }
        drop(reads);
        for (index, part) in present.chunks_mut(PAGE_BYTES).enumerate() {
            let at = offset + (index * PAGE_BYTES) as u64;
            if self.device.read_at(at, part).is_err() {
                part.fill(0);
            }
        }
    }

    /// The bytes of many ranges (offset, length) without alignment, read in parallel.
    pub fn ranges(&self, ranges: &[(u64, usize)]) -> Vec<Result<Vec<u8>>> {
        let block = u64::from(self.device.block_bytes());
        let mut buffers: Vec<_> = ranges
            .iter()
            .map(|(offset, len)| {
                let start = offset - offset % block;
                let end = (offset + *len as u64).next_multiple_of(block);
                let is_there = end <= self.len_bytes;
                let len = if is_there { (end - start) as usize } else { 0 };
                (start, AlignedBuf::new(len))
            })
            .collect();
        let mut reads: Vec<_> = buffers
            .iter_mut()
            .filter(|(_, buffer)| !buffer.is_empty())
            .map(|(start, buffer)| Read::new(*start, buffer))
            .collect();
        // Each read has its own outcome.
        let _ = self.device.read(&mut reads);
        let outcomes: Vec<_> = reads.into_iter().map(|read| read.outcome).collect();
        let mut outcomes = outcomes.into_iter();
        let bytes_of = |((offset, len), (start, buffer)): (&(u64, usize), &(u64, AlignedBuf))| {
            if buffer.is_empty() {
                return Err(Error::corruption("it lies behind the end of the volume"));
            }
            outcomes.next().unwrap_or(Ok(()))?;
            let from = (offset - start) as usize;
            Ok(buffer.get(from..from + len).unwrap_or_default().to_vec())
        };
        ranges.iter().zip(&buffers).map(bytes_of).collect()
    }
}
