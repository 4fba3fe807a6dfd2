//! A part of one segment, read from the device in large pieces.
//!
//! Durable bytes of a log never change, so what was read stays right. The segment may be given up and used for something else
//! while it is read; the segment table tells that afterwards, because a segment leaves it before it is used again.

use kreon_base::{Error, ErrorKind, LogOffset, Lsn, PAGE_BYTES, Result, SegmentId};
use kreon_device::{AlignedBuf, Backing};
use kreon_format::{Fragment, FragmentHeader, FragmentSeal, fragment_extent, lsn_at, place_of};

use crate::cut::{PAYLOAD_START, SEGMENT};
use crate::log::Log;

/// Bytes of one read.
const READ_BYTES: u32 = 256 << 10;

const PAGE: u32 = PAGE_BYTES as u32;

/// Bytes that tell how long a fragment is.
const START_BYTES: u32 = 8;

/// A verified fragment.
pub(super) struct Loaded {
    pub lsn: Lsn,
    pub offset: LogOffset,
    /// Bytes of the log that it takes.
    pub extent: u32,
    /// `None`: a pad.
    pub header: Option<FragmentHeader>,
    /// It fills its segment to the end.
    pub fills_segment: bool,
}

/// What was read of a segment.
pub(super) struct Window {
    /// As long as a segment; untouched where nothing was read.
    bytes: AlignedBuf,
    segment: SegmentId,
    sequence: u64,
    /// `bytes` has the durable bytes of the segment from here on, the border of a page,
    from: u32,
    /// up to here.
    to: u32,
}

impl Window {
    /// Nothing was read.
    pub fn new() -> Self {
        Self {
            bytes: AlignedBuf::with_backing(SEGMENT as usize, Backing::Sparse),
            segment: SegmentId(0),
            sequence: 0,
            from: 0,
            to: 0,
        }
    }

    /// Forgets what was read.
    pub fn clear(&mut self) {
        self.to = self.from;
    }

    /// Reads the fragment at `at`, which the run with this mark is to have written, and verifies it; `None` if it ends behind
    /// `until`, before which everything is durable.
    ///
    /// # Errors
    /// `NotFound`: the segment is not kept any more. `Corruption`, `Io`.
    pub fn load(&mut self, log: &Log, at: Lsn, until: Lsn, mark: u16) -> Result<Option<Loaded>> {
        let (sequence, within) = place_of(at);
        if self.sequence != sequence || self.to == self.from {
            self.segment = segment_of(log, sequence)?;
            (self.sequence, self.from, self.to) = (sequence, 0, 0);
        }
        let in_segment = until.0.saturating_sub(lsn_at(sequence, PAYLOAD_START).0);
        let limit = in_segment.min(u64::from(SEGMENT - PAYLOAD_START)) as u32 + PAYLOAD_START;
        if within + START_BYTES > limit {
            return Ok(None);
        }
        self.read(log, within, within + START_BYTES, limit)?;
        let extent = self.start(within).map_or(0, fragment_extent);
        let end = u32::try_from(extent).map_or(u32::MAX, |extent| within.saturating_add(extent));
        if end > limit && limit < SEGMENT {
            // A record that ends behind `until`, unless a border of records lies in the middle of it.
            let (claim, behind) = (log.claim(), Lsn(at.0 + u64::from(end - within)));
            return match at < claim && claim < behind {
                true => Err(Error::corruption(format!(
                    "a record over the border {claim} at {at}"
                ))),
                false => Ok(None),
            };
        }
        self.read(log, within, end.min(SEGMENT), limit)?;
        let seal = FragmentSeal {
            store: log.home().store,
            sequence,
        };
        let offset = LogOffset(self.segment.offset_bytes() + u64::from(within));
        let bytes = self.bytes.get(within as usize..self.to as usize);
        let fragment = Fragment::decode(bytes.unwrap_or_default(), &seal, offset)?;
        if !fragment.is_of(mark) {
            return Err(Error::corruption(format!(
                "a record of another run at {offset}"
            )));
        }
        let extent = fragment.extent_bytes() as u32;
        let header = match fragment {
            Fragment::Record { header, .. } => Some(header),
            Fragment::Pad { .. } => None,
        };
        Ok(Some(Loaded {
            lsn: at,
            offset,
            extent,
            header,
            fills_segment: within + extent == SEGMENT,
        }))
    }

    /// What follows the header of a record's fragment that was just loaded.
    pub fn payload(&self, loaded: &Loaded) -> &[u8] {
        let within = loaded.offset.within_segment() as usize;
        let bytes = self.bytes.get(within..self.to as usize);
        match Fragment::decode_verified(bytes.unwrap_or_default()) {
            Some(Fragment::Record { payload, .. }) => payload,
            _ => &[],
        }
    }

    fn start(&self, within: u32) -> Option<&[u8; START_BYTES as usize]> {
        self.bytes.get(within as usize..)?.first_chunk()
    }

    /// Makes sure that the bytes from `within` to `end` are there; nothing behind `limit` counts.
    fn read(&mut self, log: &Log, within: u32, end: u32, limit: u32) -> Result<()> {
        if within < self.from || within > self.to || self.to == self.from {
            self.from = within - within % PAGE;
            self.to = self.from;
        }
        while self.to < end {
            // The page in which the last read ended has grown since.
            let start = self.to - self.to % PAGE;
            let page_end = limit.next_multiple_of(PAGE).min(SEGMENT);
            let stop = page_end.min(start + READ_BYTES);
            let part = self.bytes.get_mut(start as usize..stop as usize);
            let offset = self.segment.offset_bytes() + u64::from(start);
            let read = log.home().device.read_at(offset, part.unwrap_or_default());
            if log.reader().sequence_of(self.segment) != Some(self.sequence) {
                return Err(gone(self.sequence));
            }
            read.map_err(|error| error.within(format!("a change feed of {}", self.segment)))?;
            self.to = stop.min(limit);
        }
        Ok(())
    }
}

/// The segment that is number `sequence` of the log.
///
/// # Errors
/// `NotFound`: it is not kept any more.
pub(super) fn segment_of(log: &Log, sequence: u64) -> Result<SegmentId> {
    log.reader()
        .table
        .by_sequence(sequence)
        .ok_or_else(|| gone(sequence))
}

#[cold]
fn gone(sequence: u64) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("the log does not keep its segment number {sequence} any more"),
    )
}
