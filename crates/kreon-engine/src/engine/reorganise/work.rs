//! Who lays values together: a thread of the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, RegionId, Result};

use super::credits::Credits;
use super::space::Excess;
use super::stats::ReorganisationStats;
use crate::engine::core::Core;
use crate::engine::signal::Signal;
use crate::gc::Candidates;
use crate::sync::{Mutex, Ordering};

/// Most ranges that wait. Scans find those again that found no place.
const WAITING_MAX: usize = 256;

/// Ranges whose values are moved together: the last page of each such write is half empty on average.
const RANGES_TOGETHER: usize = 8;

/// How long the thread sleeps when it has nothing to do, or no space.
const PATIENCE: Duration = Duration::from_millis(200);

/// A leaf whose values lie scattered.
pub struct Scattered {
    pub region: RegionId,
    /// A key in it.
    pub key: Vec<u8>,
}

/// See the module's text.
pub struct Reorganiser {
    pub(super) credits: Credits,
    pub(super) excess: Excess,
    waiting: Mutex<VecDeque<Scattered>>,
    /// Wakes the thread.
    pub(in crate::engine) wanted: Signal,
    /// One round at a time.
    turn: Mutex<()>,
    done: Mutex<ReorganisationStats>,
}

impl Reorganiser {
    /// One whose notes take `credit_bytes`.
    pub fn new(credit_bytes: usize) -> Self {
        Self {
            credits: Credits::new(credit_bytes),
            excess: Excess::default(),
            waiting: Mutex::default(),
            wanted: Signal::default(),
            turn: Mutex::default(),
            done: Mutex::default(),
        }
    }

    /// The values of this leaf are to be laid together.
    pub(super) fn ask(&self, scattered: Scattered) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push_back(scattered);
            drop(waiting);
            self.done.lock().ranges_found += 1;
            self.wanted.call();
        }
    }

    fn is_wanted(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    fn take(&self) -> Vec<Scattered> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(RANGES_TOGETHER);
        waiting.drain(..count).collect()
    }

    /// What was done so far.
    pub fn stats(&self) -> ReorganisationStats {
        self.done.lock().clone()
    }
}

impl Core {
    /// The body of the thread that lays values together.
    pub(in crate::engine) fn reorganise_loop(self: &Arc<Self>) {
        while !self.closed.load(Ordering::Acquire) {
            self.reorganiser.wanted.wait(PATIENCE);
            if self.parts.poison.check().is_ok() {
                // Told by then. The range is forgotten: scans find it again, or the damage in it.
                drop(self.reorganise_all());
                self.spill_copies(false);
            }
        }
    }

    /// Lays together what scans found scattered, as long as there is anything and space for it.
    pub(in crate::engine) fn reorganise_all(self: &Arc<Self>) -> Result<()> {
        let is_wanted = || !self.closed.load(Ordering::Acquire) && self.reorganiser.is_wanted();
        while is_wanted() && self.has_space_to_reorganise() {
            let ranges = self.reorganiser.take();
            let outcome = self.reorganise(&ranges);
            outcome.inspect_err(|error| {
                if error.kind() != ErrorKind::Closed {
                    tracing::warn!(%error, "laying values together failed");
                }
            })?;
        }
        Ok(())
    }

    fn reorganise(self: &Arc<Self>, ranges: &[Scattered]) -> Result<()> {
        let _turn = self.reorganiser.turn.lock();
        let begun = Instant::now();
        let mut candidates = Candidates::default();
        let mut moved_ranges = 0;
        {
            let view = self.parts.views.load_full();
            for range in ranges {
                moved_ranges += u64::from(self.add_range(&view, range, &mut candidates)?);
            }
        }
        if moved_ranges == 0 {
            return Ok(());
        }
        let moved = self.move_by(&candidates, |stream, live| {
            self.copy_scattered(stream, &candidates, live)
        })?;
        self.reorganiser
            .excess
            .copied(moved.bytes_copied, Instant::now());
        let mut done = self.reorganiser.done.lock();
        done.ranges_moved += moved_ranges;
        done.records_moved += moved.records;
        done.bytes_copied += moved.bytes_copied;
        done.seconds += begun.elapsed().as_secs_f64();
        Ok(())
    }
}
