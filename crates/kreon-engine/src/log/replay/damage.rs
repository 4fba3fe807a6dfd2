//! Proof behind the end of the log that something before it was acknowledged.
//!
//! Pads and segment headers tell how far the log was durable when they were written. If one behind
//! the end tells of a position beyond the end, then what stands at the end was durable and is
//! damaged: the log was not merely cut short by a crash.

use std::collections::BTreeMap;

use kreon_base::{LogOffset, Lsn, Result, SegmentId};
use kreon_device::BLOCK_BYTES_MIN;
use kreon_format::{
    Fragment, FragmentSeal, RECORD_ALIGN_BYTES, fragment_extent, incarnation_mark, place_of,
};

use super::ReplayStart;
use super::source::Source;
use super::walk::{Image, decode_header};
use crate::log::append::WHOLE_UNIT_BYTES_MAX;
use crate::log::cut::PAYLOAD_START;

/// A search for claims of the run with `mark`.
pub(super) struct Search<'a> {
    pub start: &'a ReplayStart<'a>,
    pub source: &'a mut Source,
    /// Segments by sequence, as far as they are known.
    pub chain: &'a BTreeMap<u64, SegmentId>,
    pub mark: u16,
}

impl Search<'_> {
    /// The first durable position beyond `end` that is told behind `end`, which lies in the segment
    /// `image`. Goes on from segment to segment as long as there is anything of the run.
    pub fn claim_beyond(&mut self, end: Lsn, mut image: Image) -> Result<Option<Lsn>> {
        let mut within = place_of(end).1;
        let mut is_first = true;
        loop {
            let header = decode_header(&image, self.start).ok();
            let header = header.filter(|header| incarnation_mark(header.incarnation) == self.mark);
            let pads = self.durable_in_pads(&image, within);
            let told = header.map(|header| header.durable).max(pads);
            if told.is_some_and(|durable| durable > end) {
                return Ok(told);
            }
            let known = self.chain.get(&(image.sequence + 1)).copied();
            let next = known.or(header.and_then(|header| header.next));
            let Some(next) = next.filter(|_| is_first || told.is_some()) else {
                return Ok(None);
            };
            let bytes = self.source.segment(next)?;
            let behind = Image {
                segment: next,
                sequence: image.sequence + 1,
                bytes,
            };
            self.source
                .recycle(std::mem::replace(&mut image, behind).bytes);
            (within, is_first) = (PAYLOAD_START, false);
        }
    }

    /// The last durable position that pads from `within` on tell.
    fn durable_in_pads(&self, image: &Image, within: u32) -> Option<Lsn> {
        let seal = FragmentSeal {
            store: self.start.store,
            sequence: image.sequence,
        };
        let words = image
            .bytes
            .as_chunks::<RECORD_ALIGN_BYTES>()
            .0
            .iter()
            .enumerate();
        words
            .skip(within as usize / RECORD_ALIGN_BYTES)
            .filter(|(_, word)| **word != [0; RECORD_ALIGN_BYTES])
            .filter_map(|(index, word)| self.durable_at(image, &seal, index, word))
            .max()
    }

    fn durable_at(
        &self,
        image: &Image,
        seal: &FragmentSeal,
        index: usize,
        start: &[u8; RECORD_ALIGN_BYTES],
    ) -> Option<Lsn> {
        let within = index * RECORD_ALIGN_BYTES;
        let extent = fragment_extent(start);
        // Pads end at the border of a block, and none is longer than the rest of a segment that a unit
        // did not fit into. Most places fail this, so few checksums are computed.
        let ends_block = (within + extent).is_multiple_of(BLOCK_BYTES_MIN as usize);
        if !ends_block || extent > WHOLE_UNIT_BYTES_MAX {
            return None;
        }
        let rest = image.bytes.get(within..)?;
        let offset = LogOffset(image.segment.offset_bytes() + within as u64);
        match Fragment::decode(rest, seal, offset) {
            Ok(fragment @ Fragment::Pad { durable, .. }) if fragment.is_of(self.mark) => durable,
            _ => None,
        }
    }
}
