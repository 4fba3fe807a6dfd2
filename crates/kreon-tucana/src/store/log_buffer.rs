//! A segment of the log in memory.
//!
//! Its first page is the segment's header, then come records, each one fragment, and pads where it was written out. What is
//! written never changes: blocks of the device that hold records are written once.

use kreon_base::{
    Error, Incarnation, LogId, LogOffset, Lsn, PAGE_BYTES, PageNo, Result, SEGMENT_BYTES, SegmentId,
};
use kreon_device::{AppendBuffer, Backing, Device, Reservation, Reserve, Write};
use kreon_format::{
    FRAGMENT_HEADER_BYTES, FragmentHeader, FragmentSeal, LOG_HEADER_BYTES, LogSegmentHeader,
    RecordKind, StoreId, encode_pad, fragment_bytes, incarnation_mark, lsn_at,
};
use kreon_sync::{Mutex, yield_now};

use super::zeroes::{Prepared, zeroes};
use crate::format::Location;
use crate::log::{Placed, Record};

pub(super) const SEGMENT: u32 = SEGMENT_BYTES as u32;

/// Where a segment is in its log.
#[derive(Clone, Copy)]
pub(super) struct SegmentPlace {
    pub log: LogId,
    pub segment: SegmentId,
    pub sequence: u64,
    /// The segment that is reserved behind it: so a replay finds it.
    pub next: Option<SegmentId>,
}

/// A segment that takes records, or took them.
pub(super) struct LogBuffer {
    pub segment: SegmentId,
    pub sequence: u64,
    pub next: Option<SegmentId>,
    seal: FragmentSeal,
    mark: u16,
    buffer: AppendBuffer,
    on_device: Mutex<OnDevice>,
}

/// What the device has of a segment.
struct OnDevice {
    /// Bytes of the log.
    written: u32,
    prepared: Prepared,
}

impl LogBuffer {
    /// A segment with its header, which tells that everything before `durable` is durable; whether all of its blocks were written
    /// before.
    ///
    /// # Errors
    /// None that a new buffer can have.
    pub(super) fn new(
        (store, incarnation): (StoreId, Incarnation),
        place: SegmentPlace,
        (durable, was_written): (Lsn, bool),
    ) -> Result<Self> {
        let buffer = AppendBuffer::new(SEGMENT, Backing::Sparse);
        let header = LogSegmentHeader {
            store,
            log: place.log,
            segment: place.segment,
            sequence: place.sequence,
            incarnation,
            previous: None,
            next: place.next,
            durable,
        };
        match buffer.reserve(PAGE_BYTES as u32) {
            Reserve::Reserved(mut room) => {
                room.copy_from_slice(&*header.encode());
                room.commit();
            }
            Reserve::Full { .. } | Reserve::Sealed => {
                return Err(Error::invalid("a new segment has no room for its header"));
            }
        }
        let sequence = place.sequence;
        Ok(Self {
            segment: place.segment,
            sequence,
            next: place.next,
            seal: FragmentSeal { store, sequence },
            mark: incarnation_mark(incarnation),
            buffer,
            on_device: Mutex::new(OnDevice {
                written: 0,
                prepared: Prepared::new(was_written),
            }),
        })
    }

    /// Appends a record; `None` if the segment has no room for it.
    pub(super) fn append(&self, record: &Record<'_>) -> Option<Placed> {
        let value = record.value.unwrap_or_default();
        let payload_bytes = record.key.len() + value.len();
        let extent = fragment_bytes(payload_bytes);
        let Reserve::Reserved(mut room) = self.buffer.reserve(extent as u32) else {
            return None;
        };
        let within = room.at();
        let offset = self.offset(within);
        let header = FragmentHeader {
            length_bytes: payload_bytes as u32,
            region: record.region,
            key_bytes: record.key.len() as u32,
            kind: match record.value {
                Some(_) => RecordKind::Put,
                None => RecordKind::Delete,
            },
            has_attributes: false,
            starts_record: true,
            ends_record: true,
            ends_unit: true,
            incarnation: self.mark,
        };
        let (front, payload) = room.split_at_mut(FRAGMENT_HEADER_BYTES);
        let (key_room, rest) = payload.split_at_mut(record.key.len());
        key_room.copy_from_slice(record.key);
        let (value_room, fill) = rest.split_at_mut(value.len());
        value_room.copy_from_slice(value);
        fill.fill(0);
        front.copy_from_slice(&header.encode(&self.seal, offset, &[record.key, value]));
        room.commit();
        Some(Placed {
            lsn: lsn_at(self.sequence, within),
            location: Location::new(offset, extent),
        })
    }

    /// The bytes of the record at this position of the segment.
    pub(super) fn record(&self, within: u32) -> Option<&[u8]> {
        self.buffer.committed(within)
    }

    /// Ends a block of the device behind the last record. The filler tells that everything before `durable` is durable.
    /// Returns where the next record will begin; `None` if there was no record: then there is nothing to be written. The
    /// header is written with the first one: by a header of the log an unfinished creation is told from a store.
    ///
    /// # Errors
    /// As [`pad`](Self::pad).
    pub(super) fn end_block(&self, block_bytes: u32, durable: Lsn) -> Result<Option<u32>> {
        // Looked at once: a record may come at any moment, and is not part of what the caller writes then.
        if self.buffer.reserved_bytes() <= LOG_HEADER_BYTES {
            return Ok(None);
        }
        let reserved = self.buffer.reserve_to_boundary(block_bytes);
        self.pad(reserved, durable).map(Some)
    }

    /// Takes no more records.
    ///
    /// # Errors
    /// As [`pad`](Self::pad).
    pub(super) fn end(&self, durable: Lsn) -> Result<()> {
        self.pad(self.buffer.reserve_rest(), durable).map(drop)
    }

    /// Fills a reservation with a pad. Returns its end.
    ///
    /// # Errors
    /// None that a reservation of whole units can have.
    fn pad(&self, reserved: Reserve<'_>, durable: Lsn) -> Result<u32> {
        let mut room: Reservation<'_> = match reserved {
            Reserve::Reserved(room) => room,
            Reserve::Full { used } => return Ok(used),
            Reserve::Sealed => return Ok(self.buffer.reserved_bytes()),
        };
        let (end, offset) = (room.end(), self.offset(room.at()));
        let padded = encode_pad(&mut room, &self.seal, offset, self.mark, durable);
        room.commit();
        padded.map(|()| end)
    }

    /// Writes everything before `end`, the border of a block, that is not on the device yet, and shows the whole pages that
    /// are there now to `keep`. Waits for threads that still copy records. Returns how many zeroes it has written behind them.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn write(
        &self,
        device: &dyn Device,
        end: u32,
        keep: impl FnOnce(PageNo, &[u8]),
    ) -> Result<u32> {
        let mut on_device = self.on_device.lock();
        let start = on_device.written;
        if end <= start {
            return Ok(0);
        }
        while self.buffer.committed_prefix(start) < end {
            if self.buffer.is_abandoned() {
                return Err(Error::corruption(format!(
                    "{} of the log has a hole: a thread ended while it appended",
                    self.segment
                )));
            }
            yield_now();
        }
        let there = |from, to| {
            let bytes = self.buffer.committed_range(from..to);
            bytes.ok_or_else(|| Error::invalid("bytes of the log are not there"))
        };
        let mut write = Write::new(self.offset(start).0, there(start, end)?);
        let ahead = on_device.prepared.extend(start, end);
        write.buffers.extend(zeroes(ahead));
        device.write(&[write])?;
        // A page is kept when all of it is there: what is in a frame never changes.
        let whole = |at: u32| at - at % PAGE_BYTES as u32;
        let (first, behind) = (whole(start), whole(end));
        if first < behind {
            let page = PageNo::containing(self.offset(first).0);
            keep(page, there(first, behind)?);
        }
        on_device.written = end;
        Ok(ahead)
    }

    /// Bytes that are left for records.
    pub(super) fn left_bytes(&self) -> u32 {
        SEGMENT - self.buffer.reserved_bytes()
    }

    /// Position of the next record.
    pub(super) fn tail(&self) -> Lsn {
        lsn_at(self.sequence, self.buffer.reserved_bytes())
    }

    fn offset(&self, within: u32) -> LogOffset {
        LogOffset(self.segment.offset_bytes() + u64::from(within))
    }
}
