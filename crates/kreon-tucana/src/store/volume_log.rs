//! The log of a store, in segments of its volume.
//!
//! Records are appended to the segment in memory without a lock; the thread that fills it opens the next one, and writes the
//! full one out. A record is read in memory while its segment is there, then through the mapping. Every opening of the
//! store begins with a segment of its own, so what an earlier one wrote never changes.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use kreon_base::{
    Error, ErrorKind, Lsn, Priority, Result, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId, planted,
};
use kreon_format::{
    Fragment, FragmentSeal, LOG_PAYLOAD_BYTES, LOG_SEQUENCE_MAX, RecordKind, fragment_bytes, lsn_at,
};
use kreon_volume::Purpose;
use parking_lot::{Mutex, RwLock};

use super::home::{Home, LOG};
use super::log_buffer::{LogBuffer, SEGMENT};
use crate::format::Location;
use crate::log::{Placed, Record, RecordLog};

/// Pages of the log are evicted before all others.
const LOG_PRIORITY: Priority = Priority(u8::MAX);

/// Each opening numbers its segments from its own number times two to this power on: as many segments are 512 GiB.
const OPENING_BITS: u32 = 18;

/// The log.
pub(crate) struct VolumeLog {
    home: Home,
    /// Takes records.
    current: ArcSwap<LogBuffer>,
    segments: RwLock<Segments>,
    /// Held while a segment is opened or written out. No record waits for it while it is being copied.
    turn: Mutex<()>,
    /// The first write that failed.
    poison: OnceLock<Error>,
}

/// The segments of the log.
#[derive(Default)]
struct Segments {
    /// By segment number; 0: not one of the log.
    sequences: Vec<u64>,
    /// Those that are not on the device as a whole.
    buffered: Vec<Arc<LogBuffer>>,
}

/// Where a record is read.
enum Site {
    Memory(Arc<LogBuffer>),
    Device(FragmentSeal),
}

impl Segments {
    fn add(&mut self, segment: SegmentId, sequence: u64) {
        let at = segment.0 as usize;
        if self.sequences.len() <= at {
            self.sequences.resize(at + 1, 0);
        }
        self.sequences[at] = sequence;
    }

    fn sequence(&self, segment: SegmentId) -> Option<u64> {
        let found = self.sequences.get(segment.0 as usize).copied();
        found.filter(|sequence| *sequence > 0)
    }
}

impl VolumeLog {
    /// A log that has these segments, in the order of the log, and goes on in a new one.
    ///
    /// # Errors
    /// `OutOfSpace` without a segment.
    pub(super) fn new(home: Home, known: &[(SegmentId, u64)]) -> Result<Self> {
        let mut segments = Segments::default();
        for (segment, sequence) in known {
            segments.add(*segment, *sequence);
        }
        let last = known.last().map_or(0, |(_, sequence)| *sequence);
        // An opening that was lost has perhaps used the numbers behind the last one that is known, at the same places of the
        // device: its records must not verify as those of this one.
        let sequence = (last + 1).max(home.incarnation.0 << OPENING_BITS);
        // Of the reserve, if need be: a full volume is opened nonetheless, to be read and to be emptied.
        let first = open_segment(&home, sequence, Purpose::Maintenance)?;
        segments.add(first.segment, first.sequence);
        segments.buffered.push(Arc::clone(&first));
        Ok(Self {
            home,
            current: ArcSwap::new(first),
            segments: RwLock::new(segments),
            turn: Mutex::new(()),
            poison: OnceLock::new(),
        })
    }

    /// Writes everything that was appended before the call to the device, without a flush. Returns the end of it.
    ///
    /// # Errors
    /// Those of the device. The log takes no more records then.
    pub(super) fn write_out(&self) -> Result<Lsn> {
        let _turn = self.turn.lock();
        self.check()?;
        let current = self.current.load_full();
        planted!(LogBehindTree => return Ok(current.tail()));
        if current.is_empty() {
            return Ok(current.tail());
        }
        let end = current.end_page()?;
        self.write(&current, end)?;
        Ok(current.tail())
    }

    fn check(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::new(ErrorKind::Poisoned, cause.to_string())),
            None => Ok(()),
        }
    }

    fn write(&self, buffer: &LogBuffer, end: u32) -> Result<()> {
        // Pages of the log never change, and what was written last is read soonest.
        let mapping = &self.home.mapping;
        let keep = |first, bytes: &[u8]| mapping.admit(first, LOG_PRIORITY, bytes);
        let written = buffer.write(self.home.device.as_ref(), end, keep);
        written.inspect_err(|error| drop(self.poison.set(error.clone())))
    }

    /// Opens the segment behind `full`, unless another thread did, and writes that one out.
    fn roll(&self, full: &Arc<LogBuffer>, purpose: Purpose) -> Result<()> {
        let _turn = self.turn.lock();
        if !Arc::ptr_eq(&self.current.load(), full) {
            return Ok(());
        }
        self.check()?;
        let next = open_segment(&self.home, full.sequence + 1, purpose)?;
        {
            let mut segments = self.segments.write();
            segments.add(next.segment, next.sequence);
            segments.buffered.push(Arc::clone(&next));
        }
        self.current.store(next);
        full.end()?;
        self.write(full, SEGMENT)?;
        let mut segments = self.segments.write();
        segments.buffered.retain(|other| !Arc::ptr_eq(other, full));
        Ok(())
    }

    fn site(&self, segment: SegmentId) -> Option<Site> {
        let segments = self.segments.read();
        let sequence = segments.sequence(segment)?;
        let buffered = segments
            .buffered
            .iter()
            .find(|buffer| buffer.segment == segment);
        let store = self.home.store;
        Some(match buffered {
            Some(buffer) => Site::Memory(Arc::clone(buffer)),
            None => Site::Device(FragmentSeal { store, sequence }),
        })
    }
}

/// Takes a segment of the volume for the log.
fn open_segment(home: &Home, sequence: u64, purpose: Purpose) -> Result<Arc<LogBuffer>> {
    if sequence > LOG_SEQUENCE_MAX / 4 {
        return Err(Error::new(
            ErrorKind::OutOfSpace,
            "all numbers of log segments were used",
        ));
    }
    let segment = {
        let mut allocator = home.allocator.lock();
        let segment = allocator.allocate_log_segment(LOG, sequence, purpose)?;
        if let Err(error) = allocator.back_log(segment, (0, SEGMENT), purpose) {
            allocator.give_up_log_segment(segment)?;
            return Err(error);
        }
        segment
    };
    // What stood there before must not be found in frames.
    home.mapping.discard(segment.first_page(), SEGMENT_PAGES);
    let buffer = LogBuffer::new(home.store, home.incarnation, segment, sequence)?;
    Ok(Arc::new(buffer))
}

/// The record that a fragment is.
fn record_of<'a>(fragment: Fragment<'a>) -> Option<Record<'a>> {
    let Fragment::Record { header, payload } = fragment else {
        return None;
    };
    let (key, value) = payload.split_at_checked(header.key_bytes as usize)?;
    let value = match header.kind {
        RecordKind::Put => Some(value),
        RecordKind::Delete => None,
        _ => return None,
    };
    let is_whole = header.starts_record && header.ends_record;
    is_whole.then_some(Record {
        region: header.region,
        key,
        value,
    })
}

/// Bytes that hold a record, within its segment.
fn extent_of(location: Location) -> usize {
    let rest = SEGMENT_BYTES as usize - location.offset.within_segment() as usize;
    location.extent_bytes().min(rest)
}

fn missing(location: Location) -> Error {
    Error::corruption(format!("no record of the log at {}", location.offset))
}

impl RecordLog for VolumeLog {
    fn append(&self, record: &Record<'_>) -> Result<Placed> {
        let payload_bytes = record.key.len() + record.value.map_or(0, <[u8]>::len);
        if fragment_bytes(payload_bytes) > LOG_PAYLOAD_BYTES as usize {
            return Err(Error::invalid(format!(
                "key and value have {payload_bytes} bytes, the most is {}",
                LOG_PAYLOAD_BYTES as usize - fragment_bytes(0)
            )));
        }
        self.check()?;
        let purpose = match record.value {
            Some(_) => Purpose::Put,
            None => Purpose::Delete,
        };
        loop {
            let current = self.current.load();
            if let Some(placed) = current.append(record) {
                return Ok(placed);
            }
            self.roll(&current, purpose)?;
        }
    }

    fn read<R>(&self, location: Location, use_record: impl FnOnce(Record<'_>) -> R) -> Result<R> {
        let site = self.site(location.offset.segment());
        match site.ok_or_else(|| missing(location))? {
            Site::Memory(buffer) => {
                let bytes = buffer.record(location.offset.within_segment());
                let fragment = bytes.and_then(Fragment::decode_verified);
                let record = fragment.and_then(record_of);
                Ok(use_record(record.ok_or_else(|| missing(location))?))
            }
            Site::Device(seal) => {
                let (offset, extent) = (location.offset.0, extent_of(location));
                let mapping = &self.home.mapping;
                mapping.with_bytes(offset, extent, LOG_PRIORITY, &mut Vec::new(), |bytes| {
                    let fragment = Fragment::decode(bytes, &seal, location.offset)?;
                    let record = record_of(fragment);
                    Ok(use_record(record.ok_or_else(|| missing(location))?))
                })?
            }
        }
    }

    fn read_resident<R>(
        &self,
        location: Location,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        match self.site(location.offset.segment())? {
            Site::Memory(buffer) => {
                let bytes = buffer.record(location.offset.within_segment())?;
                record_of(Fragment::decode_verified(bytes)?).map(use_record)
            }
            Site::Device(seal) => {
                let (offset, extent) = (location.offset.0, extent_of(location));
                let mapping = &self.home.mapping;
                let scratch = &mut Vec::new();
                let lent = |lent: kreon_mapping::LentRecord<'_>| {
                    let fragment = Fragment::decode(lent.bytes(), &seal, location.offset).ok()?;
                    record_of(fragment).map(use_record)
                };
                mapping.with_resident_record(offset, extent, LOG_PRIORITY, scratch, lent)?
            }
        }
    }

    fn lsn(&self, location: Location) -> Lsn {
        let sequence = self.segments.read().sequence(location.offset.segment());
        lsn_at(sequence.unwrap_or(0), location.offset.within_segment())
    }
}
