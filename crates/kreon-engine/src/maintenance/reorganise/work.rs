//! Rounds of reorganisation, in a thread of the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use kreon_base::{ErrorKind, Result};

use super::super::gc::Gc;
use super::super::gc::candidates::Candidates;
use super::super::ground::Ground;
use super::super::spill::Spiller;
use super::copy::Copies;
use super::range::{Added, Ranges};
use super::stats::ReorganisationStats;
use crate::read::{Reader, ScanBuffer, Scattered, ScatteredValues};
use kreon_sync::{Mutex, Rank, RankedMutex};

/// With so many bytes there are enough of them.
const ROUND_BYTES: u64 = 2 << 20;

/// Lays scattered values of leaves together, one round at a time.
pub struct Reorganiser {
    on: Ground,
    reader: Arc<Reader>,
    scattered: Arc<ScatteredValues>,
    spiller: Arc<Spiller>,
    gc: Arc<Gc>,
    /// One round at a time.
    turn: RankedMutex<()>,
    done: Mutex<ReorganisationStats>,
}

impl Reorganiser {
    /// Nothing was done yet.
    pub fn new(
        on: &Ground,
        (reader, scattered): (&Arc<Reader>, &Arc<ScatteredValues>),
        (spiller, gc): (&Arc<Spiller>, &Arc<Gc>),
    ) -> Self {
        Self {
            on: on.clone(),
            reader: Arc::clone(reader),
            scattered: Arc::clone(scattered),
            spiller: Arc::clone(spiller),
            gc: Arc::clone(gc),
            turn: RankedMutex::new(Rank::Reorganisation, ()),
            done: Mutex::default(),
        }
    }

    fn moved(&self, ranges: u64, (records, bytes): (u64, u64), begun: Instant) {
        let mut done = self.done.lock();
        done.ranges_moved += ranges;
        done.records_moved += records;
        done.bytes_copied += bytes;
        done.seconds += begun.elapsed().as_secs_f64();
    }

    /// What was done so far.
    pub fn stats(&self) -> ReorganisationStats {
        ReorganisationStats {
            ranges_found: self.scattered.ranges_found(),
            ..self.done.lock().clone()
        }
    }
}

impl Reorganiser {
    /// Lays scattered values together while scans have found any and there is space.
    pub fn reorganise_all(&self) -> Result<()> {
        let is_wanted = || !self.on.storage.lifecycle.is_closed() && self.scattered.is_wanted();
        while is_wanted() {
            let has_space = self.on.space.has_space_to_reorganise();
            self.scattered.queue.open(has_space);
            if !has_space {
                self.spill_copies(true);
                break;
            }
            let handed = self.scattered.queue.take(ROUND_BYTES);
            let outcome = match handed.is_empty() {
                false => self.reorganise_handed(&handed),
                true => self.reorganise(self.scattered.take()),
            };
            outcome.inspect_err(|error| {
                if error.kind() != ErrorKind::Closed {
                    tracing::warn!(%error, "laying values together failed");
                }
            })?;
        }
        Ok(())
    }

    /// Asks for a spill of the copies when none came for a while, or when `is_full` says that there is no room for more. The
    /// spill makes the old places dead.
    pub fn spill_copies(&self, is_full: bool) {
        let excess = self.on.space.excess();
        if excess.wants_spill(is_full, Instant::now()) && self.on.versions.freeze(0) {
            self.spiller.ask();
        }
    }

    fn copies(&self) -> Copies<'_> {
        Copies {
            storage: &self.on.storage,
            reader: &self.reader,
        }
    }

    /// Lays together the values of some leaves.
    fn reorganise(&self, mut ranges: VecDeque<Scattered>) -> Result<()> {
        let _turn = self.turn.lock();
        let begun = Instant::now();
        let mut candidates = Candidates::default();
        let (mut moved_ranges, mut bytes) = (0, 0);
        let mut last: Option<Added> = None;
        let ranges_of = Ranges {
            storage: &self.on.storage,
            scattered: &self.scattered,
        };
        {
            let view = self.on.storage.views.load_full();
            while bytes < ROUND_BYTES
                && let Some(range) = ranges.pop_front()
            {
                // The one before may have brought it along.
                if last.as_ref().is_some_and(|last| last.covers(&range)) {
                    continue;
                }
                if let Some(added) = ranges_of.add_range(&view, &range, &mut candidates)? {
                    moved_ranges += 1;
                    bytes += added.bytes;
                    last = Some(added);
                }
            }
        }
        self.scattered.put_back(ranges);
        if moved_ranges == 0 {
            return Ok(());
        }
        let copies = self.copies();
        let moved = self.gc.move_by(&candidates, |stream, live| {
            copies.copy_scattered(stream, &candidates, live)
        })?;
        let moved = (moved.records, moved.bytes_copied);
        self.on.space.excess().copied(moved.1, Instant::now());
        self.moved(moved_ranges, moved, begun);
        Ok(())
    }

    /// Lays together values that scans have just read, from the memory of these scans.
    fn reorganise_handed(&self, handed: &[ScanBuffer]) -> Result<()> {
        let _turn = self.turn.lock();
        let begun = Instant::now();
        let mut candidates = Candidates::default();
        let (mut last, mut sources) = (None, Vec::new());
        for handed in handed {
            let added;
            (last, added) = handed.add_to(last, |region, key, offset| {
                candidates.push(region, key, offset);
            });
            sources.extend(std::iter::repeat_n(&handed.records, added));
        }
        let copies = self.copies();
        let moved = self.gc.move_by(&candidates, |stream, live| {
            copies.copy_handed(stream, &candidates, live, &sources)
        })?;
        let moved = (moved.records, moved.bytes_copied);
        self.on.space.excess().copied(moved.1, Instant::now());
        self.moved(handed.len() as u64, moved, begun);
        Ok(())
    }
}
