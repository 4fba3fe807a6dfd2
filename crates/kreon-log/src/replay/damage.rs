//! Whether the log ends because of damage or because of a crash.
//!
//! Pads and segment headers claim how far the log was durable when they were written. If one behind the end claims a
//! position beyond the end, the bytes at the end were durable and are damaged.

use kreon_base::{Lsn, PageBytes, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::BLOCK_BYTES_MIN;
use kreon_format::{
    Fragment, LOG_HEADER_BYTES, LogSegmentHeader, RECORD_ALIGN_BYTES, fragment_extent,
    incarnation_mark, place_of,
};

use super::walk::{Image, Walk, decode_header};
use crate::cut::PAYLOAD_START;
use crate::cut::WHOLE_UNIT_BYTES_MAX;
use kreon_volume::page_io::read_pages;

/// Headers that are read in one call.
const HEADERS_AT_ONCE: usize = 256;

const BLOCK_BYTES: usize = BLOCK_BYTES_MIN as usize;

impl Walk<'_> {
    /// The first durable position beyond `end` that the run tells behind `end`, which lies in the segment
    /// `image`. Goes on from segment to segment as long as there is anything of the run.
    pub fn claim_beyond(&mut self, end: Lsn, mut image: Image) -> Result<Option<Lsn>> {
        let mut within = place_of(end).1;
        let mut is_first = true;
        loop {
            let header = decode_header(&image, self.start).ok();
            let header =
                header.filter(|header| incarnation_mark(header.incarnation) == self.mark());
            let pads = self.durable_in_pads(&image, within);
            let told = header.map(|header| header.durable).max(pads);
            if told.is_some_and(|durable| durable > end) {
                return Ok(told);
            }
            if !is_first && told.is_none() {
                return Ok(None);
            }
            let known = self.chain.get(&(image.sequence + 1)).copied();
            let next = match known.or(header.and_then(|header| header.next)) {
                Some(next) => Some(next),
                None if is_blank(&image) => None,
                None => self.find(image.sequence + 1)?,
            };
            let Some(next) = next else {
                return Ok(None);
            };
            let behind = Image::load(&mut self.source, next, image.sequence + 1)?;
            self.source
                .recycle(std::mem::replace(&mut image, behind).bytes);
            (within, is_first) = (PAYLOAD_START, false);
        }
    }

    /// The segment with the number `sequence` of this run, found by its own header because the header that
    /// names it does not verify. Reads a page of every segment that was free at the last checkpoint: the log may go on in
    /// any of them. Needed only if a log ends at the start of a segment that was written to before.
    fn find(&self, sequence: u64) -> Result<Option<SegmentId>> {
        let device = self.start.device;
        let present = (device.len_bytes() / SEGMENT_BYTES) as u32;
        let was_free = |segment: &SegmentId| self.start.taken.binary_search(segment).is_err();
        let candidates: Vec<_> = (0..present).map(SegmentId).filter(was_free).collect();
        for some in candidates.chunks(HEADERS_AT_ONCE) {
            let pages: Vec<_> = some.iter().map(|segment| segment.first_page()).collect();
            let found = match read_pages(device, &pages) {
                Ok(bytes) => {
                    let mut both = some.iter().zip(bytes.pages());
                    both.find(|(segment, page)| self.is_header(page, **segment, sequence))
                        .map(|(segment, _)| *segment)
                }
                // One of them cannot be read, and may be unrelated: each is read by itself.
                Err(_) => some.iter().copied().find(|segment| {
                    let page = read_pages(device, &[segment.first_page()]);
                    page.is_ok_and(|page| {
                        page.pages()
                            .any(|page| self.is_header(page, *segment, sequence))
                    })
                }),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn is_header(&self, page: &PageBytes, segment: SegmentId, sequence: u64) -> bool {
        let header = LogSegmentHeader::decode(page, self.start.store, segment);
        header.is_ok_and(|header| {
            (header.log, header.sequence) == (self.start.record.id, sequence)
                && incarnation_mark(header.incarnation) == self.mark()
        })
    }

    /// The last durable position that pads from `within` on tell.
    fn durable_in_pads(&self, image: &Image, within: u32) -> Option<Lsn> {
        // Most bytes behind the end were never written: whole blocks of zeroes are skipped.
        let filled = image.bytes.filled();
        let blocks = filled.as_chunks::<BLOCK_BYTES>().0.iter().enumerate();
        let blocks = blocks
            .skip(within as usize / BLOCK_BYTES)
            .filter(|(_, block)| **block != [0; BLOCK_BYTES]);
        let words = blocks.flat_map(|(number, block)| {
            let words = block.as_chunks::<RECORD_ALIGN_BYTES>().0.iter().enumerate();
            words
                .map(move |(index, word)| (number * BLOCK_BYTES / RECORD_ALIGN_BYTES + index, word))
        });
        words
            .skip_while(|(index, _)| index * RECORD_ALIGN_BYTES < within as usize)
            .filter(|(_, word)| **word != [0; RECORD_ALIGN_BYTES])
            .filter_map(|(index, word)| self.durable_at(image, index, word))
            .max()
    }

    fn durable_at(
        &self,
        image: &Image,
        index: usize,
        start: &[u8; RECORD_ALIGN_BYTES],
    ) -> Option<Lsn> {
        let within = index * RECORD_ALIGN_BYTES;
        let extent = fragment_extent(start);
        // Pads end at the border of a block, and none is longer than the rest of a segment that a unit
        // did not fit into. Few places pass this test, so few checksums are computed.
        let ends_block = (within + extent).is_multiple_of(BLOCK_BYTES);
        if !ends_block || extent > WHOLE_UNIT_BYTES_MAX {
            return None;
        }
        match image.decode(within as u32, self.start.store) {
            Ok(fragment @ Fragment::Pad { durable, .. }) if fragment.is_of(self.mark()) => durable,
            _ => None,
        }
    }
}

/// Whether nothing was ever written to the segment: its header and the start of its records are zero.
fn is_blank(image: &Image) -> bool {
    const START_BYTES: usize = LOG_HEADER_BYTES as usize + RECORD_ALIGN_BYTES;
    image.bytes.first_chunk() == Some(&[0; START_BYTES])
}
