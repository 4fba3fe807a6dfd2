//! A segment of the log in memory.
//!
//! Invariants: its sequence and its neighbours never change; bytes are only appended; once it is complete, all of it is
//! on the device.

use kreon_base::{LogOffset, Lsn, SegmentId};
use kreon_device::{AppendBuffer, Reserve};
use kreon_format::{lsn_at, place_of};
use kreon_sync::{AtomicBool, Ordering};

use super::cut::{PAYLOAD_START, SEGMENT};

/// Where a segment stands in the chain of the log.
#[derive(Clone, Copy)]
pub(super) struct ChainLink {
    pub segment: SegmentId,
    pub sequence: u64,
    /// The segment reserved to follow it.
    pub next: SegmentId,
    /// See [`TakenSegment`](super::TakenSegment).
    pub was_written: bool,
}

/// A segment of the log in memory.
pub(super) struct Buffered {
    link: ChainLink,
    /// Its bytes. Positions are those within the segment.
    buffer: AppendBuffer,
    /// Records before this position are not in the buffer: an earlier run wrote them.
    readable_from: u32,
    /// Start of the unit that goes on in its first record; none: a unit starts there, or it is not known of an earlier run.
    goes_on: Option<Lsn>,
    /// All of it is on the device.
    complete: AtomicBool,
}

impl Buffered {
    /// A segment in the empty `buffer`. Its first `readable_from` bytes are `front`, and zeroes behind that.
    pub fn new(link: ChainLink, buffer: AppendBuffer, front: &[u8], readable_from: u32) -> Self {
        assert!(link.sequence > 0, "sequences start at 1");
        assert_eq!(buffer.reserved_bytes(), 0, "the buffer is not empty");
        fill_start(&buffer, readable_from, front);
        Self {
            link,
            buffer,
            readable_from,
            goes_on: None,
            complete: AtomicBool::new(false),
        }
    }

    #[inline]
    pub fn link(&self) -> ChainLink {
        self.link
    }

    #[inline]
    pub fn sequence(&self) -> u64 {
        self.link.sequence
    }

    #[inline]
    pub fn buffer(&self) -> &AppendBuffer {
        &self.buffer
    }

    /// The first record goes on with the unit that starts at `unit`.
    pub fn set_goes_on(&mut self, unit: Option<Lsn>) {
        self.goes_on = unit;
    }

    /// Start of the unit that goes on in its first record.
    pub fn goes_on(&self) -> Option<Lsn> {
        self.goes_on
    }

    #[inline]
    pub fn readable_from(&self) -> u32 {
        self.readable_from
    }

    /// LSN of the position `within` the segment.
    #[inline]
    pub fn lsn(&self, within: u32) -> Lsn {
        lsn_at(self.link.sequence, within)
    }

    /// How far into the segment `lsn` lies: 0 if it lies before the segment's first record, all of it if it lies behind.
    pub fn within(&self, lsn: Lsn) -> u32 {
        match place_of(lsn) {
            (sequence, _) if sequence > self.link.sequence => SEGMENT,
            (sequence, within) if sequence == self.link.sequence && within > PAYLOAD_START => {
                within
            }
            _ => 0,
        }
    }

    /// Where the position `within` the segment is on the volume.
    #[inline]
    pub fn offset(&self, within: u32) -> LogOffset {
        LogOffset(self.link.segment.offset_bytes() + u64::from(within))
    }

    /// LSN behind the last reservation.
    #[inline]
    pub fn tail(&self) -> Lsn {
        self.lsn(self.buffer.reserved_bytes())
    }

    /// Bytes that may be reserved still.
    pub fn rest_bytes(&self) -> u32 {
        let limit = self.buffer.limit_bytes();
        limit.saturating_sub(self.buffer.reserved_bytes())
    }

    /// No byte of it can be reserved any more.
    pub fn is_full(&self) -> bool {
        self.buffer.reserved_bytes() == SEGMENT
    }

    /// Whether all of it is on the device.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// All of it is on the device from now on.
    pub fn set_complete(&self) {
        debug_assert!(self.is_full(), "a segment with room is not complete");
        self.complete.store(true, Ordering::Release);
    }

    /// Its buffer, empty again.
    pub fn into_empty_buffer(self) -> AppendBuffer {
        let mut buffer = self.buffer;
        buffer.reset();
        buffer
    }
}

/// Takes the first `end` bytes of an empty buffer and puts `bytes` there, and zeroes behind them.
fn fill_start(buffer: &AppendBuffer, end: u32, bytes: &[u8]) {
    if let Reserve::Reserved(mut start) = buffer.reserve(end) {
        let filled = bytes.len().min(start.len());
        let (front, rest) = start.split_at_mut(filled);
        front.copy_from_slice(bytes.get(..filled).unwrap_or_default());
        rest.fill(0);
        start.commit();
    }
}
