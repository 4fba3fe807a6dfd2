//! Scattered values that scans found, queued for the thread of reorganisation.

use std::collections::VecDeque;

use kreon_base::RegionId;
use kreon_sync::{AtomicU64, Mutex, Ordering};

use super::credits::Credits;
use super::scan_queue::ScanQueue;
use kreon_sync::Wakeup;

/// Most ranges that wait. Scans find those again that found no place.
const WAITING_MAX: usize = 256;

/// Ranges that are moved together, in the order of their keys: the last page of each such write is half empty on average.
const RANGES_TOGETHER: usize = 32;

/// A leaf whose values lie scattered.
pub struct Scattered {
    pub region: RegionId,
    /// A key in it.
    pub key: Vec<u8>,
}

/// Queues from scans to reorganisation. A scan never waits for that thread.
pub struct ScatteredValues {
    /// What each leaf has cost scans.
    pub credits: Credits,
    /// Values that scans have just read.
    pub queue: ScanQueue,
    waiting: Mutex<VecDeque<Scattered>>,
    /// Wakes the thread.
    pub wanted: Wakeup,
    found: AtomicU64,
}

impl ScatteredValues {
    /// Nothing is noted; the credits take `credit_bytes`.
    pub fn new(credit_bytes: usize) -> Self {
        Self {
            credits: Credits::new(credit_bytes),
            queue: ScanQueue::default(),
            waiting: Mutex::default(),
            wanted: Wakeup::default(),
            found: AtomicU64::new(0),
        }
    }

    /// Ranges that were found since the store was opened.
    pub fn ranges_found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// The values of this leaf are to be laid together.
    pub fn ask(&self, scattered: Scattered) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push_back(scattered);
            drop(waiting);
            self.found();
        }
    }

    /// Wakes the thread for one more.
    pub fn found(&self) {
        self.found.fetch_add(1, Ordering::Relaxed);
        self.wanted.call();
    }

    /// Whether anything waits.
    pub fn is_wanted(&self) -> bool {
        !self.waiting.lock().is_empty() || self.queue.is_wanted()
    }

    /// Those that wait longest, in the order of their keys.
    pub fn take(&self) -> VecDeque<Scattered> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(RANGES_TOGETHER);
        let mut taken: VecDeque<_> = waiting.drain(..count).collect();
        drop(waiting);
        let place = |range: &Scattered| (range.region, range.key.clone());
        taken.make_contiguous().sort_by_cached_key(place);
        taken
    }

    /// There was no room for these in a round: they are the next.
    pub fn put_back(&self, ranges: VecDeque<Scattered>) {
        let mut waiting = self.waiting.lock();
        for range in ranges.into_iter().rev() {
            waiting.push_front(range);
        }
    }
}
