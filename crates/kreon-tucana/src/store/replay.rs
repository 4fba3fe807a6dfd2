//! The log behind the last commit, read at an opening. Its segments are found once, before anything is put into others: what a
//! second look finds may differ, if the device reads something wrong.
//!
//! It ends at the first bytes that are no record or filler of the opening that wrote it. Fillers and headers of segments tell how
//! far it was durable when they were written: if one behind the end tells more, the bytes at the end were durable, and are
//! damaged.

use std::sync::Arc;

use kreon_base::{
    Error, Incarnation, LogOffset, Lsn, PAGE_BYTES, PageBytes, Result, SEGMENT_BYTES, SegmentId,
};
use kreon_device::{AlignedBuf, BLOCK_BYTES_MIN, Device};
use kreon_format::{
    Fragment, FragmentSeal, LOG_HEADER_BYTES, LogSegmentHeader, OpenSegment, RECORD_ALIGN_BYTES,
    StoreId, fragment_extent, incarnation_mark, lsn_at, place_of,
};
use kreon_volume::page_io::read_pages;

use super::home::LOG;
use super::log_buffer::SEGMENT;
use super::log_mark::{LogMark, REGION};
use super::log_record::record_of;
use crate::format::Location;
use crate::log::{Placed, Record};

/// The log of an opening that has ended.
pub(super) struct OldLog {
    device: Arc<dyn Device>,
    store: StoreId,
    incarnation: Incarnation,
    marker: Lsn,
    /// As the last commit knew it.
    durable: Lsn,
    /// Segments with good headers, from that of the marker on.
    pub chain: Vec<OpenSegment>,
    /// The segment that is named behind them.
    pub behind: Option<OpenSegment>,
}

/// A segment in memory.
struct Image {
    at: OpenSegment,
    bytes: AlignedBuf,
}

/// How far a segment was read.
enum Read {
    ToItsEnd,
    /// Up to here, where something does not verify.
    Until(u32, Error),
}

impl Image {
    fn decode(&self, within: u32, store: StoreId) -> Result<Fragment<'_>> {
        let sequence = self.at.sequence;
        let rest = self.bytes.get(within as usize..).unwrap_or_default();
        Fragment::decode(rest, &FragmentSeal { store, sequence }, self.offset(within))
    }

    fn offset(&self, within: u32) -> LogOffset {
        LogOffset(self.at.segment.offset_bytes() + u64::from(within))
    }
}

impl OldLog {
    /// Finds the segments of the log behind `mark`.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn find(
        (device, store): (Arc<dyn Device>, StoreId),
        mark: &LogMark,
        durable: Lsn,
    ) -> Result<Self> {
        let mut log = Self {
            device,
            store,
            incarnation: mark.incarnation,
            marker: mark.marker,
            durable,
            chain: Vec::new(),
            behind: Some(mark.open),
        };
        while let Some(next) = log.behind {
            let Some(header) = log.header(next)? else {
                break;
            };
            log.durable = log.durable.max(header.durable);
            log.chain.push(next);
            log.behind = header.next.map(|segment| OpenSegment {
                segment,
                sequence: next.sequence + 1,
            });
        }
        Ok(log)
    }

    /// The header of a segment, if it is the one of this log.
    fn header(&self, at: OpenSegment) -> Result<Option<LogSegmentHeader>> {
        if !self.is_there(at.segment) {
            return Ok(None);
        }
        match self.read_header(at)? {
            // The device may have read it wrong, once: the log must not end there because of that.
            None => self.read_header(at),
            found => Ok(found),
        }
    }

    fn read_header(&self, at: OpenSegment) -> Result<Option<LogSegmentHeader>> {
        let page = read_pages(self.device.as_ref(), &[at.segment.first_page()])?;
        Ok(self.decode_header(page.first()?, at))
    }

    fn decode_header(&self, page: &PageBytes, at: OpenSegment) -> Option<LogSegmentHeader> {
        let header = LogSegmentHeader::decode(page, self.store, at.segment).ok()?;
        let is_ours = (header.log, header.sequence, header.incarnation)
            == (LOG, at.sequence, self.incarnation);
        is_ours.then_some(header)
    }

    pub(super) fn is_there(&self, segment: SegmentId) -> bool {
        segment.offset_bytes() + SEGMENT_BYTES <= self.device.len_bytes()
    }

    fn load(&self, at: OpenSegment) -> Result<Image> {
        let mut bytes = AlignedBuf::new(SEGMENT as usize);
        self.device.read_at(at.segment.offset_bytes(), &mut bytes)?;
        Ok(Image { at, bytes })
    }

    /// Shows every record behind the marker to `visit`, in order. Returns the end of the log.
    ///
    /// # Errors
    /// `Corruption` if bytes that were durable do not verify; `Io`; those of `visit`.
    pub(super) fn replay(
        &mut self,
        mut visit: impl FnMut(OpenSegment, &Placed, &Record<'_>) -> Result<()>,
    ) -> Result<Lsn> {
        let (marked, within) = place_of(self.marker);
        let mut position = self.marker;
        for (index, at) in self.chain.clone().into_iter().enumerate() {
            let mut from = match at.sequence == marked {
                true => within,
                // The commit was made where the segment before was full.
                false if at.sequence < marked => continue,
                false => LOG_HEADER_BYTES,
            };
            let mut image = self.load(at)?;
            let mut read = self.through(&image, from, &mut visit)?;
            if let Read::Until(until, _) = read {
                // The device may have read it wrong, once: the log must not end there because of that.
                (from, image) = (until, self.load(at)?);
                read = self.through(&image, from, &mut visit)?;
            }
            match read {
                Read::ToItsEnd => position = lsn_at(at.sequence, SEGMENT),
                Read::Until(until, why) => {
                    position = lsn_at(at.sequence, until);
                    self.durable_in(&image, until);
                    return self.end(position, index + 1, why);
                }
            }
        }
        let why = Error::corruption("the header of a segment does not verify");
        self.end(position, self.chain.len(), why)
    }

    /// Reads a segment from `within` on.
    fn through(
        &mut self,
        image: &Image,
        mut within: u32,
        visit: &mut impl FnMut(OpenSegment, &Placed, &Record<'_>) -> Result<()>,
    ) -> Result<Read> {
        while within < SEGMENT {
            let fragment = match image.decode(within, self.store) {
                Ok(fragment) if fragment.is_of(incarnation_mark(self.incarnation)) => fragment,
                Ok(_) => {
                    let why = Error::corruption("a record of another opening");
                    return Ok(Read::Until(within, why));
                }
                Err(why) => return Ok(Read::Until(within, why)),
            };
            let extent = fragment.extent_bytes();
            if let Fragment::Pad { durable, .. } = fragment {
                self.durable = self.durable.max(durable.unwrap_or(Lsn(0)));
            } else {
                let offset = image.offset(within);
                let record = record_of(fragment).filter(|record| record.region == REGION);
                let record = record.ok_or_else(|| {
                    Error::corruption(format!("the record at {offset} is none of this store"))
                })?;
                let placed = Placed {
                    lsn: lsn_at(image.at.sequence, within),
                    location: Location::new(offset, extent),
                };
                visit(image.at, &placed, &record)?;
            }
            within += extent as u32;
        }
        Ok(Read::ToItsEnd)
    }

    /// Decides whether the log ends at `end`, or is damaged there. The segments of the chain from `behind` on follow.
    fn end(&mut self, end: Lsn, behind: usize, why: Error) -> Result<Lsn> {
        let rest: Vec<_> = self.chain[behind.min(self.chain.len())..].to_vec();
        for at in rest.into_iter().chain(self.behind) {
            if self.is_there(at.segment) {
                let image = self.load(at)?;
                self.durable_in(&image, LOG_HEADER_BYTES);
            }
        }
        if self.durable <= end {
            return Ok(end);
        }
        let (sequence, within) = place_of(end);
        Err(why.within(format!(
            "the log is damaged at byte {within} of its segment number {sequence}, but was durable up to {}",
            self.durable
        )))
    }

    /// Takes note of what the fillers in a segment from `within` on tell.
    fn durable_in(&mut self, image: &Image, within: u32) {
        const BLOCK: usize = BLOCK_BYTES_MIN as usize;
        // Most bytes behind the end were never written: blocks of zeroes are passed over.
        let blocks = image.bytes.as_chunks::<BLOCK>().0.iter().enumerate();
        let filled = blocks
            .skip(within as usize / BLOCK)
            .filter(|(_, block)| **block != [0; BLOCK]);
        let mut told = Lsn(0);
        for (number, block) in filled {
            let words = block.as_chunks::<RECORD_ALIGN_BYTES>().0.iter().enumerate();
            for (index, word) in words {
                let at = number * BLOCK + index * RECORD_ALIGN_BYTES;
                // Fillers end at the border of a block: few places pass this test, so few checksums are computed.
                let ends_block = (at + fragment_extent(word)).is_multiple_of(BLOCK);
                if at < within as usize || *word == [0; _] || !ends_block {
                    continue;
                }
                if let Ok(filler @ Fragment::Pad { durable, .. }) =
                    image.decode(at as u32, self.store)
                    && filler.is_of(incarnation_mark(self.incarnation))
                {
                    told = told.max(durable.unwrap_or(Lsn(0)));
                }
            }
        }
        self.durable = self.durable.max(told);
    }
}

const _: () = assert!(LOG_HEADER_BYTES as usize == PAGE_BYTES);
