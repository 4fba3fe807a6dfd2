//! Tests of the log, over a device in memory that records what is done to it.

mod appending;
mod backgrounding;
mod crashing;
mod keeping;
mod landing;
mod memory;
mod mirroring;
mod reading;
mod replaying;
mod resuming;
mod reusing;
mod runs;
mod syncing;
mod threads;
mod twin;
mod zeroing;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use kreon_base::{
    Attributes, Error, ErrorKind, Incarnation, LogId, Lsn, RegionId, Result, SEGMENT_BYTES,
    SegmentId,
};
use kreon_device::{Backing, Device};
use kreon_format::{LogRecord, RecordKind, StoreId};
use kreon_sync::Mutex;

use self::memory::{Done, MemoryDevice, Pages, Space, Told};
use crate::history::{LOG_START, LogHistory};
use crate::home::{LogHome, LogOptions, LogSpace};
use crate::log::Log;
use crate::mirror::LogMirror;
use crate::moved::MovedStream;
use crate::moved_record::MovedRecord;
use crate::pages::WrittenPages;
use crate::read::ValueAt;
use crate::reader::LogReader;
use crate::record::{NewRecord, Place};
use crate::replay::{ReplayEnd, ReplayStart, check as check_replay, replay};
use crate::take_value::{Own, Show};
use kreon_volume::Purpose;

const STORE: StoreId = StoreId(0x5eed);
const REGION: RegionId = RegionId(7);
/// Segments of the test volume.
const SEGMENTS: u32 = 40;

struct Checkpoint {
    record: LogRecord,
    segments: Vec<(SegmentId, u64)>,
}

impl Checkpoint {
    fn replay(&self, device: &MemoryDevice) -> Result<(Vec<Seen>, ReplayEnd)> {
        replay_with(device, &self.record, &self.segments)
    }
}

/// A log over a device in memory.
struct Bench {
    device: Arc<MemoryDevice>,
    space: Arc<Space>,
    pages: Pages,
    told: Arc<Told>,
    log: Log,
    options: LogOptions,
}

struct Setup {
    block_bytes: u32,
    segments: u32,
    options: LogOptions,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            block_bytes: 512,
            segments: SEGMENTS - 3,
            options: with_buffers(4),
        }
    }
}

impl Setup {
    fn open(self) -> Bench {
        self.open_with(None)
    }

    fn open_with(self, mirror: Option<Arc<dyn LogMirror>>) -> Bench {
        let device = Arc::new(MemoryDevice::new(self.block_bytes, SEGMENTS));
        let space = Arc::new(Space::new(self.segments));
        let opening = Opening {
            history: LogHistory::empty(),
            incarnation: 1,
            log_device: None,
            mirror,
        };
        Bench::try_open(device, space, opening, self.options).unwrap()
    }
}

/// What a log is opened with.
struct Opening {
    history: LogHistory,
    incarnation: u64,
    log_device: Option<Arc<dyn Device>>,
    mirror: Option<Arc<dyn LogMirror>>,
}

impl Bench {
    fn open(
        device: Arc<MemoryDevice>,
        space: Arc<Space>,
        history: LogHistory,
        incarnation: u64,
        options: LogOptions,
    ) -> Self {
        let opening = Opening {
            history,
            incarnation,
            log_device: None,
            mirror: None,
        };
        Self::try_open(device, space, opening, options).unwrap()
    }

    fn try_open(
        device: Arc<MemoryDevice>,
        space: Arc<Space>,
        opening: Opening,
        options: LogOptions,
    ) -> Result<Self> {
        let told = Arc::new(Told {
            device: Arc::clone(&device),
            runs: Mutex::default(),
            landed: Mutex::default(),
            positions: OnceLock::new(),
        });
        let home = LogHome {
            device: Arc::clone(&device) as Arc<dyn Device>,
            log_device: opening.log_device,
            mirror: opening.mirror,
            space: Arc::clone(&space) as Arc<dyn LogSpace>,
            pages: Arc::clone(&told) as Arc<dyn WrittenPages>,
            store: STORE,
            log: LogId(0),
            incarnation: Incarnation(opening.incarnation),
        };
        let pages = Pages {
            device: Arc::clone(&device),
            kept: Mutex::default(),
        };
        let log = Log::open(home, opening.history, options)?;
        let _ = told.positions.set(log.positions());
        Ok(Self {
            device,
            space,
            pages,
            told,
            log,
            options,
        })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> (Place, Lsn) {
        self.log.append_one(&put(key, value)).unwrap()
    }

    fn reader(&self) -> &LogReader {
        self.log.reader()
    }

    fn read(&self, place: Place, key: &[u8], value_bytes: usize) -> Result<Vec<u8>> {
        let at = value_at(place, key, value_bytes);
        self.reader().with_value(&self.pages, &at, Own)
    }

    /// A checkpoint, with replay to start at `marker`: what it says of the log, and the segments that
    /// it knows.
    fn checkpoint(&self, marker: Lsn) -> Checkpoint {
        self.log.sync(marker).unwrap();
        let record = self.log.checkpoint_record(marker);
        let segments = self.log.segments();
        self.device.flush().unwrap();
        Checkpoint { record, segments }
    }

    /// Opens the log again over the same device, as recovery does, with the next incarnation; also
    /// returns what was replayed. What is only in buffers is lost.
    fn reopen(&self, checkpoint: &Checkpoint) -> (Bench, Vec<Seen>) {
        let (seen, end) = checkpoint.replay(&self.device).unwrap();
        let (device, space) = (Arc::clone(&self.device), Arc::clone(&self.space));
        let incarnation = self.log.incarnation().0 + 1;
        (
            Self::open(device, space, end.history, incarnation, self.options),
            seen,
        )
    }

    /// Appends until every buffer holds newer segments, so that what is there now is on the device
    /// only.
    fn push_out(&self, buffers_max: usize) {
        for _ in 0..=buffers_max {
            self.put(b"filler", &vec![1; (2 << 20) - 8192]);
        }
        self.log.write_out(self.log.tail()).unwrap();
    }
}

fn with_buffers(buffers_max: usize) -> LogOptions {
    LogOptions {
        buffers_max,
        ..LogOptions::default()
    }
}

fn put<'a>(key: &'a [u8], value: &'a [u8]) -> NewRecord<'a> {
    NewRecord {
        region: REGION,
        kind: RecordKind::Put,
        key,
        value,
        attributes: Attributes::NONE,
    }
}

fn value_at(place: Place, key: &[u8], value_bytes: usize) -> ValueAt<'_> {
    ValueAt {
        offset: place.offset,
        region: REGION,
        key,
        value_bytes: value_bytes as u32,
        has_attributes: false,
    }
}

/// Bytes without a zero that differ by `seed`.
fn noise(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| ((i * 31 + seed * 7) % 255) as u8 + 1)
        .collect()
}

/// A record as replay gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    lsn: Lsn,
    key: Vec<u8>,
    value_bytes: u32,
    value: Option<Vec<u8>>,
}

/// The run that wrote `record`.
fn newest(record: &LogRecord) -> Incarnation {
    let last = record.resumes.last();
    last.map_or(record.incarnation, |last| last.incarnation)
}

/// Where a replay from `record` on begins; the checkpoint knows `segments`.
fn start_of<'a>(
    device: &'a MemoryDevice,
    record: &'a LogRecord,
    segments: &'a [(SegmentId, u64)],
) -> ReplayStart<'a> {
    ReplayStart {
        has_image: false,
        device,
        store: STORE,
        record,
        newest: newest(record),
        segments,
        taken: &[],
        value_bytes_max: 100,
        backing: Backing::Ahead,
    }
}

/// Replays what `device` holds from `record` on; the checkpoint knows `segments`. Sparse memory changes nothing.
fn replay_with(
    device: &MemoryDevice,
    record: &LogRecord,
    segments: &[(SegmentId, u64)],
) -> Result<(Vec<Seen>, ReplayEnd)> {
    let start = start_of(device, record, segments);
    // A read that is to fail is counted down to: once.
    if device.reads_left.lock().is_some() {
        return replay_from(&start);
    }
    let sparse = ReplayStart {
        backing: Backing::Sparse,
        ..start
    };
    let (found, again) = (replay_from(&start), replay_from(&sparse));
    assert_eq!(format!("{found:?}"), format!("{again:?}"));
    found
}

fn replay_from(start: &ReplayStart<'_>) -> Result<(Vec<Seen>, ReplayEnd)> {
    let mut seen = Vec::new();
    let end = replay(start, |found| {
        seen.push(Seen {
            lsn: found.lsn,
            key: found.key.to_vec(),
            value_bytes: found.value_bytes,
            value: found.value.map(<[u8]>::to_vec),
        });
        Ok(())
    })?;
    Ok((seen, end))
}

fn keys(seen: &[Seen]) -> Vec<String> {
    seen.iter()
        .map(|seen| String::from_utf8_lossy(&seen.key).into_owned())
        .collect()
}
