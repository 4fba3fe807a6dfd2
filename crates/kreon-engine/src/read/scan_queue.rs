//! Values that a scan has just read one by one, queued for reorganisation so that they need not be read again.

use std::collections::VecDeque;

use kreon_base::{LogOffset, RegionId};
use kreon_format::fragment_bytes;
use kreon_mapping::Fetched;

use super::Reader;
use super::batch::{Batch, Pair};
use super::scan_memory::ScanShare;
use crate::regions::RegionState;
use kreon_sync::{AtomicBool, Mutex, Ordering};

/// The fewest values that are worth it: their copies take a page of their own, half of it empty on average.
const VALUES_MIN: usize = 8;

/// Longer values are read alone just as well, and their copies cost more.
pub const RECORD_BYTES_MAX: usize = 3 << 10;

/// Records of which so many come in one transfer lie together.
const ALONE_MAX: usize = 3;

/// Records that one step of a scan read.
pub struct ScanBuffer {
    region: RegionId,
    /// Keys and places, ascending.
    values: Vec<(Vec<u8>, LogOffset)>,
    /// Most of the records.
    pub records: Fetched,
    /// What they take in the log.
    pub bytes: u64,
    _memory: ScanShare,
}

/// Buffers that wait for reorganisation.
#[derive(Default)]
pub struct ScanQueue {
    waiting: Mutex<VecDeque<ScanBuffer>>,
    /// There is no space for copies; a thread looks again when one was refused.
    is_closed: AtomicBool,
    was_refused: AtomicBool,
}

impl ScanQueue {
    /// Whether anybody waits, or would.
    pub fn is_wanted(&self) -> bool {
        !self.waiting.lock().is_empty() || self.was_refused.swap(false, Ordering::Relaxed)
    }

    /// There is space for copies, or none: then what waits is forgotten.
    pub fn open(&self, is_open: bool) {
        self.is_closed.store(!is_open, Ordering::Relaxed);
        if !is_open {
            self.waiting.lock().clear();
        }
    }

    fn accepts(&self) -> bool {
        let is_closed = self.is_closed.load(Ordering::Relaxed);
        if is_closed {
            self.was_refused.store(true, Ordering::Relaxed);
        }
        !is_closed
    }

    fn put(&self, handed: ScanBuffer) {
        self.waiting.lock().push_back(handed);
    }

    /// Those that wait longest, up to so many bytes, in the order of their keys.
    pub fn take(&self, bytes_max: u64) -> Vec<ScanBuffer> {
        let mut waiting = self.waiting.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < bytes_max
            && let Some(handed) = waiting.pop_front()
        {
            bytes += handed.bytes;
            taken.push(handed);
        }
        drop(waiting);
        taken.sort_by(|a, b| a.first().cmp(&b.first()));
        taken
    }
}

impl ScanBuffer {
    fn first(&self) -> (RegionId, Option<&[u8]>) {
        let first = self.values.first();
        (self.region, first.map(|(key, _)| key.as_slice()))
    }

    /// Adds the values behind `last` in their order by `push`; tells the last one of all then, and how many were
    /// added.
    pub fn add_to<'a>(
        &'a self,
        last: Option<(RegionId, &'a [u8])>,
        mut push: impl FnMut(RegionId, &[u8], LogOffset),
    ) -> (Option<(RegionId, &'a [u8])>, usize) {
        let (mut last, mut added) = (last, 0);
        for (key, offset) in &self.values {
            let at = (self.region, key.as_slice());
            // Two scans may have read the same.
            if last.is_none_or(|last| last < at) {
                push(self.region, key, *offset);
                last = Some(at);
                added += 1;
            }
        }
        (last, added)
    }
}

impl Reader {
    /// Hands the values of a step over that lie alone, if there are enough of them; whether it did.
    pub fn hand_over(&self, region: &RegionState, batch: &Batch, fetched: &Fetched) -> bool {
        let handing = &self.scattered.queue;
        if fetched.transfers() < VALUES_MIN || !handing.accepts() {
            return false;
        }
        let alone = alone(batch);
        let bytes: usize = alone.iter().map(|(_, len, _)| len).sum();
        if alone.len() < VALUES_MIN || self.tree_locks.is_loading(region.id) {
            return false;
        }
        // The keys stand in the records, too.
        let Some(memory) = self.scan_memory.take(2 * bytes) else {
            return false;
        };
        let mut records = Fetched::default();
        let mut pairs: Vec<usize> = Vec::with_capacity(alone.len());
        for (offset, len, pair) in alone {
            if let Some(record) = fetched.get(offset, len) {
                records.add(offset, record);
            }
            pairs.push(pair);
        }
        pairs.sort_unstable();
        let pairs = pairs.into_iter().filter_map(|at| batch.nth(at));
        let value = |pair: &Pair| Some((batch.key(pair).to_vec(), pair.record()?.0));
        handing.put(ScanBuffer {
            region: region.id,
            values: pairs.filter_map(value).collect(),
            records,
            bytes: bytes as u64,
            _memory: memory,
        });
        self.scattered.found();
        true
    }
}

/// Offset, length and pair of the records that do not lie beside others of the batch, by offset.
fn alone(batch: &Batch) -> Vec<(u64, usize, usize)> {
    let mut records: Vec<_> = (0..batch.len())
        .filter_map(|at| {
            let (offset, payload_bytes) = batch.nth(at)?.record()?;
            Some((offset.0, fragment_bytes(payload_bytes), at))
        })
        .collect();
    records.sort_unstable();
    let places: Vec<_> = records
        .iter()
        .map(|(offset, len, _)| (*offset, *len))
        .collect();
    let mut rest = records.as_slice();
    let mut alone = Vec::with_capacity(records.len());
    for count in Fetched::runs_of(&places) {
        let (run, behind) = rest.split_at(count.min(rest.len()));
        if count <= ALONE_MAX {
            let short = run.iter().filter(|(_, len, _)| *len <= RECORD_BYTES_MAX);
            alone.extend(short.copied());
        }
        rest = behind;
    }
    alone
}
