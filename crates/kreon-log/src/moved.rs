//! The stream of moved records: segments of their own keep old records apart from new ones.
//!
//! The stream is a log with its own number. Its sequences begin far above those of the log, so both share the table of
//! segments and are read alike. Records are framed as in the log: cut at the ends of segments only if they are long,
//! sealed with store, sequence and offset.
//!
//! Invariants:
//! - a record is on the device before an index points at it: none is ever read in the buffer;
//! - no page is written twice, and the bytes from `written` to `within` are in the buffer;
//! - a replay ignores the stream. A crash forgets the entries of L0 that point into it, and the tree's entry still points
//!   at the old place of the record. A later run begins with a segment of its own.

use kreon_base::{Error, LogId, LogOffset, Lsn, PAGE_BYTES, Result, SegmentId};
use kreon_device::{AlignedBuf, Backing, Write};
use kreon_format::{
    FRAGMENT_HEADER_BYTES, FragmentHeader, LogSegmentHeader, MOVED_SEQUENCE_MIN, RecordKind,
    encode_pad, fragment_bytes, lsn_at,
};

use super::cut::{PAYLOAD_START, SEGMENT, WHOLE_UNIT_BYTES_MAX, cut};
use super::log::Log;
use super::moved_record::MovedRecord;
use super::pages::LogPages;
use kreon_volume::Purpose;

/// The number of the stream.
pub const MOVED_LOG: LogId = LogId(1);

/// The end of the stream.
pub struct MovedStream {
    next_sequence: u64,
    open: Option<Open>,
    /// Bytes that are not on the device yet: from `Open::written` to `Open::within`.
    buffer: AlignedBuf,
    piece: Vec<u8>,
    is_broken: bool,
}

/// The segment that takes records.
#[derive(Clone, Copy)]
struct Open {
    segment: SegmentId,
    sequence: u64,
    /// Behind the last byte.
    within: u32,
    /// Up to here it is on the device; the border of a page.
    written: u32,
}

impl MovedStream {
    /// Goes on behind the segments that there are, with a buffer of about `buffer_bytes`.
    pub fn new(segments: &[(SegmentId, u64)], buffer_bytes: usize, backing: Backing) -> Self {
        let last = segments.iter().map(|(_, sequence)| *sequence).max();
        let buffer_bytes = buffer_bytes.next_multiple_of(PAGE_BYTES);
        let buffer_bytes = buffer_bytes.clamp(2 * PAGE_BYTES, SEGMENT as usize);
        Self {
            next_sequence: last.map_or(MOVED_SEQUENCE_MIN, |last| last + 1),
            open: None,
            buffer: AlignedBuf::with_backing(buffer_bytes, backing),
            piece: Vec::new(),
            is_broken: false,
        }
    }

    /// Whether the last write failed: nobody knows what the device has of it.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Behind the last record. Positions order the records of the stream only, not the writes of the store.
    pub fn end(&self) -> Lsn {
        match self.open {
            Some(open) => lsn_at(open.sequence, open.within),
            None => lsn_at(self.next_sequence, PAYLOAD_START),
        }
    }

    /// Appends a record; `read` gives its bytes, a part at a time. It may be read after the next
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    /// `OutOfSpace`; those of `read`; `Io`. No index points at the written part of the record.
    pub fn append(
        &mut self,
        log: &Log,
        pages: &impl LogPages,
        record: &MovedRecord<'_>,
        mut read: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<LogOffset> {
        let mut left = record.payload_bytes;
        let fits_whole = fragment_bytes(left) <= WHOLE_UNIT_BYTES_MAX;
        let mut open = match self.open {
            Some(open) if fits(&open, left) || (!fits_whole && cut_at(&open, left).is_some()) => {
                open
            }
            _ => self.next_segment(log, pages)?,
        };
        let start = offset_of(&open);
        loop {
            let bytes =
                cut_at(&open, left).ok_or_else(|| Error::invalid("no room in an empty segment"))?;
            let header = FragmentHeader {
                length_bytes: bytes as u32,
                region: record.region,
                key_bytes: record.key.len() as u32,
                kind: match record.is_deletion {
                    true => RecordKind::Delete,
                    false => RecordKind::Relocation,
                },
                has_attributes: record.has_attributes,
                starts_record: left == record.payload_bytes,
                ends_record: left == bytes,
                ends_unit: left == bytes,
                incarnation: log.home().mark(),
            };
            let mut piece = std::mem::take(&mut self.piece);
            piece.clear();
            piece.resize(fragment_bytes(bytes), 0);
            let (front, payload) = piece.split_at_mut(FRAGMENT_HEADER_BYTES);
            let filled = payload.get_mut(..bytes).unwrap_or_default();
            read(filled)?;
            front.copy_from_slice(&header.encode(
                &log.home().seal(open.sequence),
                offset_of(&open),
                &[filled],
            ));
            self.put(log, pages, &piece)?;
            self.piece = piece;
            left -= bytes;
            if left == 0 {
                return Ok(start);
            }
            open = self.next_segment(log, pages)?;
        }
    }

    /// Brings everything to the device, with a pad up to the border of a page: no page is written twice.
    ///
    /// # Errors
    /// `Io`.
    pub fn flush(&mut self, log: &Log, pages: &impl LogPages) -> Result<()> {
        let Some(open) = self.open else {
            return Ok(());
        };
        self.pad_to(log, pages, open.within.next_multiple_of(PAGE_BYTES as u32))?;
        self.write_out(log, pages)
    }

    /// Ends the open segment: the next record opens another one. Returns the segment and its filled bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn close(&mut self, log: &Log, pages: &impl LogPages) -> Result<Option<(SegmentId, u32)>> {
        self.flush(log, pages)?;
        let open = self.open.take();
        Ok(open.map(|open| (open.segment, open.within)))
    }

    /// Ends the open segment and opens another one. Without room for it nothing changes.
    fn next_segment(&mut self, log: &Log, pages: &impl LogPages) -> Result<Open> {
        let home = log.home();
        let sequence = self.next_sequence;
        let taken = home
            .space
            .allocate_segments(MOVED_LOG, sequence, 1, Purpose::Collection)?;
        let taken = taken.first();
        let segment = taken
            .ok_or_else(|| Error::invalid("no segment was taken"))?
            .id;
        if self.open.is_some() {
            self.pad_to(log, pages, SEGMENT)?;
            self.write_out(log, pages)?;
        }
        self.next_sequence += 1;
        log.adopt(segment, sequence);
        let open = Open {
            segment,
            sequence,
            within: 0,
            written: 0,
        };
        self.open = Some(open);
        let header = LogSegmentHeader {
            store: home.store,
            log: MOVED_LOG,
            segment,
            sequence,
            incarnation: home.incarnation,
            previous: log.reader().table.by_sequence(sequence - 1),
            next: None,
            // Says about how old the records are; no replay reads it.
            durable: log.claim(),
        };
        self.put(log, pages, &header.encode()[..])?;
        self.open
            .ok_or_else(|| Error::invalid("no segment is open"))
    }

    fn pad_to(&mut self, log: &Log, pages: &impl LogPages, end: u32) -> Result<()> {
        let Some(open) = self.open.filter(|open| open.within < end) else {
            return Ok(());
        };
        let mut pad = vec![0; (end - open.within) as usize];
        let seal = log.home().seal(open.sequence);
        encode_pad(&mut pad, &seal, offset_of(&open), log.home().mark(), Lsn(0))?;
        self.put(log, pages, &pad)
    }

    fn put(&mut self, log: &Log, pages: &impl LogPages, mut bytes: &[u8]) -> Result<()> {
        while let Some(open) = self.open.as_mut()
            && !bytes.is_empty()
        {
            let room = self.buffer.get_mut((open.within - open.written) as usize..);
            let room = room.unwrap_or_default();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            if let Some(room) = room.get_mut(..now.len()) {
                room.copy_from_slice(now);
            }
            open.within += now.len() as u32;
            bytes = later;
            if (open.within - open.written) as usize == self.buffer.len() {
                self.write_out(log, pages)?;
            }
        }
        Ok(())
    }

    /// Writes what the buffer holds: whole pages.
    fn write_out(&mut self, log: &Log, pages: &impl LogPages) -> Result<()> {
        let Some(open) = self.open.as_mut().filter(|open| open.written < open.within) else {
            return Ok(());
        };
        let len = (open.within - open.written) as usize;
        let bytes = self.buffer.get(..len).unwrap_or_default();
        let offset = open.segment.offset_bytes() + u64::from(open.written);
        let outcome = log.home().device.write(&[Write::new(offset, bytes)]);
        self.is_broken = outcome.is_err();
        outcome.map_err(|error| error.within("a write of moved records"))?;
        assert_eq!(
            open.written % PAGE_BYTES as u32,
            0,
            "a page is written once"
        );
        open.written = open.within;
        // A read of neighbouring pages may have cached the earlier content.
        pages.forget(offset, len);
        log.home().pages.written(offset, bytes);
        Ok(())
    }
}

fn offset_of(open: &Open) -> LogOffset {
    LogOffset(open.segment.offset_bytes() + u64::from(open.within))
}

fn fits(open: &Open, payload_bytes: usize) -> bool {
    fragment_bytes(payload_bytes) <= (SEGMENT - open.within) as usize
}

fn cut_at(open: &Open, left_bytes: usize) -> Option<usize> {
    cut(left_bytes, (SEGMENT - open.within) as usize)
}
