//! Tests of the log, over a device in memory that records what is done to it.

mod appending;
mod backgrounding;
mod crashing;
mod reading;
mod replaying;
mod resuming;
mod syncing;
mod threads;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kreon_base::{
    Error, ErrorKind, Incarnation, LogId, Lsn, PAGE_BYTES, RegionId, Result, SEGMENT_BYTES,
    SegmentId,
};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_format::{LogRecord, RecordKind, StoreId};
use parking_lot::Mutex;

use super::*;
use crate::volume::Purpose;

const STORE: StoreId = StoreId(0x5eed);
const REGION: RegionId = RegionId(7);
/// Segments of the test volume.
const SEGMENTS: u32 = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Write { start: u64, end: u64 },
    Flush,
}

/// A device in memory. Counts down to a failure of the n-th write or flush; can lose what was not
/// flushed.
struct MemoryDevice {
    block_bytes: u32,
    bytes: Mutex<Vec<u8>>,
    /// What stood in the sectors that were written since the last flush, by offset.
    unflushed: Mutex<Vec<(u64, [u8; 512])>>,
    done: Mutex<Vec<Done>>,
    writes_left: Mutex<Option<usize>>,
    flushes_left: Mutex<Option<usize>>,
}

impl MemoryDevice {
    fn new(block_bytes: u32, segments: u32) -> Self {
        Self {
            block_bytes,
            bytes: Mutex::new(vec![0; (u64::from(segments) * SEGMENT_BYTES) as usize]),
            unflushed: Mutex::default(),
            done: Mutex::default(),
            writes_left: Mutex::default(),
            flushes_left: Mutex::default(),
        }
    }

    /// Cuts the power: of the sectors written since the last flush, in their order, only those stay
    /// that `keeps`.
    fn crash(&self, mut keeps: impl FnMut(usize) -> bool) {
        let mut bytes = self.bytes.lock();
        for (index, (offset, old)) in self.unflushed.lock().drain(..).enumerate() {
            if !keeps(index) {
                bytes[offset as usize..offset as usize + 512].copy_from_slice(&old);
            }
        }
    }

    fn flushes(&self) -> usize {
        self.done.lock().iter().filter(|done| **done == Done::Flush).count()
    }

    fn writes(&self) -> Vec<(u64, u64)> {
        let done = self.done.lock();
        let writes = done.iter().filter_map(|done| match done {
            Done::Write { start, end } => Some((*start, *end)),
            Done::Flush => None,
        });
        writes.collect()
    }

    fn change(&self, at: u64, change: impl FnOnce(&mut u8)) {
        change(&mut self.bytes.lock()[at as usize]);
    }
}

fn count_down(left: &Mutex<Option<usize>>, what: &str) -> Result<()> {
    match left.lock().as_mut() {
        Some(0) => Err(Error::io(what, std::io::Error::from_raw_os_error(5))),
        Some(left) => {
            *left -= 1;
            Ok(())
        }
        None => Ok(()),
    }
}

impl Device for MemoryDevice {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }
    fn len_bytes(&self) -> u64 {
        self.bytes.lock().len() as u64
    }
    fn len_bytes_max(&self) -> u64 {
        self.len_bytes()
    }
    fn grow(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        let bytes = self.bytes.lock();
        for read in reads {
            let mut at = read.offset as usize;
            for buffer in &mut read.buffers {
                buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
                at += buffer.len();
            }
        }
        Ok(())
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        count_down(&self.writes_left, "write")?;
        for write in writes {
            let mut at = write.offset as usize;
            let end = write.offset + write.len_bytes();
            let block = u64::from(self.block_bytes);
            assert!(write.offset.is_multiple_of(block) && end.is_multiple_of(block));
            self.done.lock().push(Done::Write { start: write.offset, end });
            for buffer in &write.buffers {
                assert!(buffer.as_ptr().addr().is_multiple_of(self.block_bytes as usize));
                for sector in buffer.as_chunks::<512>().0 {
                    let stored = &mut self.bytes.lock()[at..at + 512];
                    let old = stored.as_chunks().0[0];
                    self.unflushed.lock().push((at as u64, old));
                    stored.copy_from_slice(sector);
                    at += 512;
                }
            }
        }
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        count_down(&self.flushes_left, "flush")?;
        self.done.lock().push(Done::Flush);
        self.unflushed.lock().clear();
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

/// Gives segments in an order that is not that of their numbers; the last few only to deletions.
struct Space {
    given: AtomicU32,
    limit: AtomicU32,
    asked: Mutex<Vec<(u64, Purpose)>>,
}

impl Space {
    fn new(limit: u32) -> Self {
        Self { given: AtomicU32::new(0), limit: AtomicU32::new(limit), asked: Mutex::default() }
    }
}

impl LogSpace for Space {
    fn allocate_segment(&self, _: LogId, sequence: u64, purpose: Purpose) -> Result<SegmentId> {
        self.asked.lock().push((sequence, purpose));
        let reserve = if purpose == Purpose::Put { 0 } else { 2 };
        if self.given.load(Ordering::SeqCst) >= self.limit.load(Ordering::SeqCst) + reserve {
            return Err(Error::new(ErrorKind::OutOfSpace, "no segment"));
        }
        let given = self.given.fetch_add(1, Ordering::SeqCst);
        // 17 and the number of usable segments have no common divisor: a permutation.
        Ok(SegmentId(1 + given * 17 % (SEGMENTS - 1)))
    }
}

/// Pages that are kept forever once they were read, as the mapping may: a page that was read before it
/// was final shows.
struct Pages {
    device: Arc<MemoryDevice>,
    kept: Mutex<HashMap<u64, Vec<u8>>>,
}

impl LogPages for Pages {
    fn with_bytes<R>(
        &self,
        offset_bytes: u64,
        len: usize,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        scratch.resize(len, 0);
        self.read_bytes(offset_bytes, scratch)?;
        Ok(f(scratch))
    }

    fn read_bytes(&self, offset_bytes: u64, into: &mut [u8]) -> Result<()> {
        let mut kept = self.kept.lock();
        for (at, byte) in (offset_bytes..).zip(into) {
            let page = at / PAGE_BYTES as u64;
            let bytes = kept.entry(page).or_insert_with(|| {
                let start = page as usize * PAGE_BYTES;
                self.device.bytes.lock()[start..start + PAGE_BYTES].to_vec()
            });
            *byte = bytes[(at % PAGE_BYTES as u64) as usize];
        }
        Ok(())
    }
}

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
    log: Log,
}

struct Setup {
    block_bytes: u32,
    segments: u32,
    options: LogOptions,
}

impl Default for Setup {
    fn default() -> Self {
        Self { block_bytes: 512, segments: SEGMENTS - 3, options: with_buffers(4) }
    }
}

impl Setup {
    fn open(self) -> Bench {
        let device = Arc::new(MemoryDevice::new(self.block_bytes, SEGMENTS));
        let space = Arc::new(Space::new(self.segments));
        Bench::open(device, space, LogHistory::empty(), 1, self.options)
    }
}

impl Bench {
    fn open(
        device: Arc<MemoryDevice>,
        space: Arc<Space>,
        history: LogHistory,
        incarnation: u64,
        options: LogOptions,
    ) -> Self {
        let home = LogHome {
            device: Arc::clone(&device) as Arc<dyn Device>,
            space: Arc::clone(&space) as Arc<dyn LogSpace>,
            store: STORE,
            log: LogId(0),
            incarnation: Incarnation(incarnation),
        };
        let pages = Pages { device: Arc::clone(&device), kept: Mutex::default() };
        let log = Log::open(home, history, options).unwrap();
        Self { device, space, pages, log }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> (Place, Lsn) {
        self.log.append_one(&put(key, value)).unwrap()
    }

    fn read(&self, place: Place, key: &[u8], value_bytes: usize) -> Result<Vec<u8>> {
        let at = value_at(place, key, value_bytes);
        self.log.with_value(&self.pages, &at, &mut Vec::new(), <[u8]>::to_vec)
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
        (Self::open(device, space, end.history, incarnation, self.log.options), seen)
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
    LogOptions { buffers_max, ..LogOptions::default() }
}

fn put<'a>(key: &'a [u8], value: &'a [u8]) -> NewRecord<'a> {
    NewRecord { region: REGION, kind: RecordKind::Put, key, value }
}

fn value_at(place: Place, key: &[u8], value_bytes: usize) -> ValueAt<'_> {
    ValueAt { offset: place.offset, region: REGION, key, value_bytes: value_bytes as u32 }
}

/// Bytes without a zero that differ by `seed`.
fn noise(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + seed * 7) % 255) as u8 + 1).collect()
}

/// A record as replay gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    lsn: Lsn,
    key: Vec<u8>,
    value_bytes: u32,
    value: Option<Vec<u8>>,
}

/// Replays what `device` holds from `record` on; the checkpoint knows `segments`.
fn replay_with(
    device: &MemoryDevice,
    record: &LogRecord,
    segments: &[(SegmentId, u64)],
) -> Result<(Vec<Seen>, ReplayEnd)> {
    let mut seen = Vec::new();
    let start = ReplayStart { device, store: STORE, record, segments, value_bytes_max: 100 };
    let end = replay(&start, |found| {
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
    seen.iter().map(|seen| String::from_utf8_lossy(&seen.key).into_owned()).collect()
}
