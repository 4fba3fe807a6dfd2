//! What the collector remembers.

use std::collections::BTreeMap;
use std::time::Duration;

use kreon_base::{Lsn, SEGMENT_BYTES, SegmentId};
use kreon_device::AlignedBuf;

use super::hidden::Hidden;
use super::plan::Plan;
use super::stats::CollectionStats;
use super::stock::Stock;
use crate::engine::signal::Signal;
use crate::gc::Victim;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Spills until a segment is freed whose records were all moved: the one that was under way perhaps, and the next.
const SPILLS_TO_FREE: u64 = 2;

/// A segment that is still there is left alone for so many spills at the most: snapshots hold it.
const SPILLS_LEFT_ALONE_MAX: u64 = 256;

/// Writers sleep at borders of this.
const STEP_BYTES: u64 = 16 << 10;

/// The longest sleep for one step: 4 MB/s for each writer.
const SLEEP_MAX: Duration = Duration::from_millis(4);

/// Writers look at the space at borders of this.
const LOOK_BYTES: u64 = 256 << 10;

/// See the module's text.
pub struct Collector {
    /// One round at a time.
    pub(super) turn: Mutex<Turn>,
    /// Moved records before this position of their stream are in L0' or in what came of it, or nothing will ever point
    /// at them. Changes inside the gate, if entries were inserted.
    inserted: AtomicU64,
    /// Where the log is when somebody looks whether L0' is to be frozen.
    freeze_at: AtomicU64,
    /// What it hides.
    pub(super) hidden: Mutex<Hidden>,
    /// How long a writer sleeps for each [`STEP_BYTES`] of the log, in nanoseconds.
    sleep_ns: AtomicU64,
    /// The end of the log at the last look.
    looked_at: AtomicU64,
    pub(super) stock: Stock,
    /// Wakes the thread that collects.
    pub(in crate::engine) wanted: Signal,
    done: Mutex<CollectionStats>,
}

/// What a round needs.
pub(super) struct Turn {
    pub buffer: AlignedBuf,
    tried: BTreeMap<SegmentId, Tried>,
}

/// A segment whose records were moved.
struct Tried {
    sequence: u64,
    /// Spills that had ended by then.
    spills: u64,
    /// Spills until it may be tried again.
    left_alone: u64,
}

impl Collector {
    /// Nothing was moved yet; the stream of moved records ends at `inserted`.
    pub fn new(inserted: Lsn, buffer: AlignedBuf) -> Self {
        Self {
            turn: Mutex::new(Turn {
                buffer,
                tried: BTreeMap::new(),
            }),
            inserted: AtomicU64::new(inserted.0),
            freeze_at: AtomicU64::new(u64::MAX),
            hidden: Mutex::default(),
            sleep_ns: AtomicU64::new(0),
            looked_at: AtomicU64::new(0),
            stock: Stock::default(),
            wanted: Signal::default(),
            done: Mutex::default(),
        }
    }

    /// See the field.
    pub fn inserted(&self) -> Lsn {
        Lsn(self.inserted.load(Ordering::Acquire))
    }

    /// See the field.
    pub(super) fn set_inserted(&self, position: Lsn) {
        self.inserted.store(position.0, Ordering::Release);
    }

    /// L0' begins at `end`, and may hide `bytes_max`. With the gate closed, or before any write.
    pub fn frozen_at(&self, end: Lsn, bytes_max: u64) {
        *self.hidden.lock() = Hidden::since(end);
        self.stock.frozen_at(end);
        self.freeze_at(end, bytes_max);
    }

    /// The log may grow by `bytes` from `end` until somebody looks.
    pub(super) fn freeze_at(&self, end: Lsn, bytes: u64) {
        let at = end.0.saturating_add(bytes);
        self.freeze_at.store(at, Ordering::Relaxed);
    }

    /// Whether the log has come so far that L0' may have to be frozen.
    pub fn is_freeze_due(&self, tail: Lsn) -> bool {
        tail.0 >= self.freeze_at.load(Ordering::Relaxed)
    }

    /// Bytes of a log that ends at `tail` since the last freeze.
    pub(in crate::engine) fn active_bytes(&self, tail: Lsn) -> u64 {
        self.stock.active_bytes(tail)
    }

    /// What of the space is for what.
    pub(in crate::engine) fn plan(&self) -> Plan {
        self.stock.plan()
    }

    /// Slows writers down by the square of `share`: 1 is as slow as it gets.
    pub(super) fn slow_down(&self, share: f64) {
        let sleep = SLEEP_MAX.as_nanos() as f64 * share * share;
        self.sleep_ns.store(sleep as u64, Ordering::Relaxed);
    }

    /// Whether the writer of a record from `start` to `end` is to look at the space.
    pub fn is_look_due(&self, start: Lsn, end: Lsn) -> bool {
        end.0 / LOOK_BYTES != start.0 / LOOK_BYTES
    }

    /// How long a writer sleeps whose record went from `start` to `end`.
    pub fn sleep_after(&self, start: Lsn, end: Lsn) -> Duration {
        let sleep_ns = self.sleep_ns.load(Ordering::Relaxed);
        let steps = end.0 / STEP_BYTES - start.0 / STEP_BYTES;
        match sleep_ns {
            0 => Duration::ZERO,
            _ => Duration::from_nanos(sleep_ns.saturating_mul(steps.min(16))),
        }
    }

    /// Whether the log has not grown since the last look.
    pub(super) fn is_quiet(&self, tail: Lsn) -> bool {
        self.looked_at.swap(tail.0, Ordering::Relaxed) == tail.0
    }

    /// What was done so far.
    pub(super) fn done(&self) -> CollectionStats {
        self.done.lock().clone()
    }

    /// Counts a round.
    pub(super) fn count(&self, victims: usize, moved: &super::moving::Moved, took: Duration) {
        let mut done = self.done.lock();
        done.rounds += 1;
        done.victims += victims as u64;
        done.records_moved += moved.records;
        done.records_skipped += moved.skipped;
        done.bytes_copied += moved.bytes_copied;
        done.seconds += took.as_secs_f64();
    }

    /// Counts segments that are free again.
    pub fn count_freed(&self, segments: usize) {
        self.done.lock().bytes_freed += segments as u64 * SEGMENT_BYTES;
    }
}

impl Turn {
    /// Whether a segment may be tried (again).
    pub fn may_try(&self, victim: &Victim, spills: u64) -> bool {
        let tried = self.tried.get(&victim.segment);
        let tried = tried.filter(|tried| tried.sequence == victim.sequence);
        tried.is_none_or(|tried| spills >= tried.spills + tried.left_alone)
    }

    /// Notes that the records of `victim` were moved, as far as they could.
    pub fn note(&mut self, victim: &Victim, spills: u64) {
        let before = self.tried.get(&victim.segment);
        let before = before.filter(|tried| tried.sequence == victim.sequence);
        let left_alone = before.map_or(SPILLS_TO_FREE + 1, |tried| {
            (tried.left_alone * 2).min(SPILLS_LEFT_ALONE_MAX)
        });
        let tried = Tried {
            sequence: victim.sequence,
            spills,
            left_alone,
        };
        self.tried.insert(victim.segment, tried);
    }

    /// Forgets segments that `is_there` no longer knows; returns how many of the others wait to be freed.
    pub fn pending(&mut self, spills: u64, is_there: impl Fn(SegmentId, u64) -> bool) -> u64 {
        self.tried
            .retain(|segment, tried| is_there(*segment, tried.sequence));
        let waits = |tried: &&Tried| spills < tried.spills + SPILLS_TO_FREE;
        self.tried.values().filter(waits).count() as u64
    }
}
