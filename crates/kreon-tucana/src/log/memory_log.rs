//! A log in memory.
//!
//! Space is counted as on a device: a record takes whole units of 64 bytes, one reservation gives it place and order, and
//! threads that append share nothing else. The bytes of a record hang in the slot of its first unit.

use std::sync::OnceLock;

use kreon_base::{Error, ErrorKind, LogOffset, Lsn, RegionId, Result, SEGMENT_BYTES};
use kreon_mapping::Fetched;
use kreon_sync::{AtomicU64, Ordering::Relaxed};

use super::record_log::{Placed, Record, RecordLog};
use crate::format::{Location, RECORD_BYTES_MAX};

/// Bytes that a record takes beside key and value, as on a device.
const HEADER_BYTES: usize = 16;

/// A record begins at a multiple of this, in bytes.
const UNIT_BYTES: usize = 64;

/// Units of a segment.
const UNITS: u64 = SEGMENT_BYTES / UNIT_BYTES as u64;

/// Most segments: 32 GiB of records. A model under shuttle, which makes thousands of logs, needs little of one.
const SEGMENTS_MAX: usize = if cfg!(shuttle) { 1 } else { 1 << 14 };

/// Units of a segment that can be used.
const UNITS_USED: u64 = if cfg!(shuttle) { 1 << 12 } else { UNITS };

/// A log in memory. Nothing is ever freed.
pub struct MemoryLog {
    /// Units that were handed out.
    tail: AtomicU64,
    segments: Box<[OnceLock<Segment>]>,
}

type Segment = Box<[OnceLock<Stored>]>;

/// A record in memory.
struct Stored {
    region: RegionId,
    /// Key, then value.
    bytes: Box<[u8]>,
    key_bytes: usize,
    is_deletion: bool,
}

impl Default for MemoryLog {
    fn default() -> Self {
        Self {
            // Not 0: LSN 0 is no record's.
            tail: AtomicU64::new(1),
            segments: (0..SEGMENTS_MAX).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl MemoryLog {
    /// Bytes of log that records take.
    pub fn bytes(&self) -> u64 {
        self.tail.load(Relaxed) * UNIT_BYTES as u64
    }

    /// The LSN of the next record.
    #[cfg(test)]
    pub(crate) fn tail(&self) -> Lsn {
        Lsn(self.tail.load(Relaxed))
    }

    /// The newest record of every key: its value, or none if it was deleted.
    #[cfg(test)]
    pub(crate) fn newest(&self) -> std::collections::BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        self.newest_before(self.tail())
    }

    /// The same of the records before `end`.
    #[cfg(test)]
    pub(crate) fn newest_before(
        &self,
        end: Lsn,
    ) -> std::collections::BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        let records = (0..end.0).filter_map(|unit| self.slot(unit)?.get());
        let pair = |stored: &Stored| {
            let (key, value) = stored.bytes.split_at(stored.key_bytes);
            (key.to_vec(), (!stored.is_deletion).then(|| value.to_vec()))
        };
        records.map(pair).collect()
    }

    /// The slot of a unit.
    fn slot(&self, unit: u64) -> Option<&OnceLock<Stored>> {
        let segment = self.segments.get((unit / UNITS) as usize)?.get()?;
        segment.get((unit % UNITS) as usize)
    }

    fn stored(&self, location: Location) -> Option<&Stored> {
        let unit = location.offset.0 / UNIT_BYTES as u64;
        self.slot(unit)?.get()
    }
}

impl RecordLog for MemoryLog {
    fn make_room(&self, _: &Record<'_>) -> Result<()> {
        Ok(())
    }

    fn append(&self, record: &Record<'_>) -> Result<Option<Placed>> {
        let value = record.value.unwrap_or_default();
        let record_bytes = HEADER_BYTES + record.key.len() + value.len();
        if record_bytes > RECORD_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a record of {record_bytes} bytes, the most is {RECORD_BYTES_MAX}"
            )));
        }
        let units = record_bytes.div_ceil(UNIT_BYTES) as u64;
        let unit = self.tail.fetch_add(units, Relaxed);
        let full = || Error::new(ErrorKind::OutOfSpace, "the log in memory is full");
        let segment = self.segments.get((unit / UNITS) as usize);
        let segment = segment.ok_or_else(full)?;
        segment.get_or_init(|| (0..UNITS_USED).map(|_| OnceLock::new()).collect());
        let slot = self.slot(unit).ok_or_else(full)?;
        let stored = Stored {
            region: record.region,
            bytes: [record.key, value].concat().into(),
            key_bytes: record.key.len(),
            is_deletion: record.value.is_none(),
        };
        let is_first = slot.set(stored).is_ok();
        debug_assert!(is_first, "unit {unit} was handed out twice");
        let offset = LogOffset(unit * UNIT_BYTES as u64);
        Ok(Some(Placed {
            lsn: Lsn(unit),
            location: Location::new(offset, record_bytes),
        }))
    }

    fn read<R>(&self, location: Location, use_record: impl FnOnce(Record<'_>) -> R) -> Result<R> {
        self.read_resident(location, use_record)
            .ok_or_else(|| Error::corruption(format!("no record at {}", location.offset)))
    }

    #[inline]
    fn read_resident<R>(
        &self,
        location: Location,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        let stored = self.stored(location)?;
        let (key, value) = stored.bytes.split_at_checked(stored.key_bytes)?;
        Some(use_record(Record {
            region: stored.region,
            key,
            value: (!stored.is_deletion).then_some(value),
        }))
    }

    /// All records are in memory.
    fn fetch(&self, _: impl Iterator<Item = Location>, _: &mut Fetched) {}

    fn read_fetched<R>(
        &self,
        _: Location,
        _: &Fetched,
        _: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        None
    }

    #[inline]
    fn lsn(&self, location: Location) -> Lsn {
        Lsn(location.offset.0 / UNIT_BYTES as u64)
    }
}
