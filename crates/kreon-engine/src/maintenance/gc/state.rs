//! The state of garbage collection: one round at a time, and the segments that it tried.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::SegmentId;
use kreon_device::AlignedBuf;

use super::super::ground::Ground;
use super::super::spill::Spiller;
use super::stats::CollectionStats;
use crate::space::Victim;
use kreon_sync::{Mutex, Rank, RankedMutex};

/// Spills until a segment is freed whose records were all moved: the one that was under way perhaps, and the next.
const SPILLS_TO_FREE: u64 = 2;

/// Most spills before a segment is tried again that snapshots keep.
const SPILLS_LEFT_ALONE_MAX: u64 = 256;

/// Garbage collection of the value log.
pub struct Gc {
    pub(super) on: Ground,
    pub(super) spiller: Arc<Spiller>,
    /// One round at a time.
    pub(super) turn: RankedMutex<GcState>,
    done: Mutex<CollectionStats>,
}

/// What one round of collection works with.
pub struct GcState {
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

impl Gc {
    /// Nothing was moved yet.
    pub fn new(on: &Ground, spiller: &Arc<Spiller>) -> Self {
        let (options, split) = (&on.storage.options, &on.storage.split);
        let buffer = AlignedBuf::with_backing(split.collector_bytes / 2, options.backing);
        Self {
            on: on.clone(),
            spiller: Arc::clone(spiller),
            turn: RankedMutex::new(
                Rank::Collection,
                GcState {
                    buffer,
                    tried: BTreeMap::new(),
                },
            ),
            done: Mutex::default(),
        }
    }

    /// What was done so far.
    pub(super) fn done(&self) -> CollectionStats {
        self.done.lock().clone()
    }

    /// Counts a round.
    pub(super) fn count(&self, victims: usize, moved: &super::insert::Moved, took: Duration) {
        let mut done = self.done.lock();
        done.rounds += 1;
        done.victims += victims as u64;
        done.records_moved += moved.records;
        done.records_skipped += moved.skipped;
        done.bytes_copied += moved.bytes_copied;
        done.seconds += took.as_secs_f64();
    }
}

impl GcState {
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
