//! Who lays values together: a thread of the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, RegionId, Result};

use super::credits::Credits;
use super::handed::{Handed, Handing};
use super::range::Added;
use super::space::Excess;
use super::stats::ReorganisationStats;
use crate::engine::core::Core;
use crate::engine::signal::Signal;
use crate::gc::Candidates;
use crate::sync::{Mutex, Ordering};

/// Most ranges that wait. Scans find those again that found no place.
const WAITING_MAX: usize = 256;

/// Ranges that are moved together, in the order of their keys: the last page of each such write is half empty on average.
const RANGES_TOGETHER: usize = 32;

/// With so many bytes there are enough of them.
const ROUND_BYTES: u64 = 2 << 20;

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
    pub(super) handing: Handing,
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
            handing: Handing::default(),
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
            self.found();
        }
    }

    /// Wakes the thread for one more.
    pub(super) fn found(&self) {
        self.done.lock().ranges_found += 1;
        self.wanted.call();
    }

    fn is_wanted(&self) -> bool {
        !self.waiting.lock().is_empty() || self.handing.is_wanted()
    }

    /// Those that wait longest, in the order of their keys.
    fn take(&self) -> VecDeque<Scattered> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(RANGES_TOGETHER);
        let mut taken: VecDeque<_> = waiting.drain(..count).collect();
        drop(waiting);
        let place = |range: &Scattered| (range.region, range.key.clone());
        taken.make_contiguous().sort_by_cached_key(place);
        taken
    }

    /// There was no room for these in a round: they are the next.
    fn put_back(&self, ranges: VecDeque<Scattered>) {
        let mut waiting = self.waiting.lock();
        for range in ranges.into_iter().rev() {
            waiting.push_front(range);
        }
    }

    fn moved(&self, ranges: u64, (records, bytes): (u64, u64), begun: Instant) {
        self.excess.copied(bytes, Instant::now());
        let mut done = self.done.lock();
        done.ranges_moved += ranges;
        done.records_moved += records;
        done.bytes_copied += bytes;
        done.seconds += begun.elapsed().as_secs_f64();
    }

    /// As if no scan had wanted anything for a long time.
    #[cfg(test)]
    pub fn let_rest(&self) {
        self.excess.let_rest();
    }

    /// As if there were no space.
    #[cfg(test)]
    pub fn close_handing(&self) {
        self.handing.open(false);
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
        while is_wanted() {
            let has_space = self.has_space_to_reorganise();
            self.reorganiser.handing.open(has_space);
            if !has_space {
                break;
            }
            let handed = self.reorganiser.handing.take(ROUND_BYTES);
            let outcome = match handed.is_empty() {
                false => self.reorganise_handed(&handed),
                true => self.reorganise(self.reorganiser.take()),
            };
            outcome.inspect_err(|error| {
                if error.kind() != ErrorKind::Closed {
                    tracing::warn!(%error, "laying values together failed");
                }
            })?;
        }
        Ok(())
    }

    fn reorganise(self: &Arc<Self>, mut ranges: VecDeque<Scattered>) -> Result<()> {
        let _turn = self.reorganiser.turn.lock();
        let begun = Instant::now();
        let mut candidates = Candidates::default();
        let (mut moved_ranges, mut bytes) = (0, 0);
        let mut last: Option<Added> = None;
        {
            let view = self.parts.views.load_full();
            while bytes < ROUND_BYTES
                && let Some(range) = ranges.pop_front()
            {
                // The one before may have brought it along.
                if last.as_ref().is_some_and(|last| last.covers(&range)) {
                    continue;
                }
                if let Some(added) = self.add_range(&view, &range, &mut candidates)? {
                    moved_ranges += 1;
                    bytes += added.bytes;
                    last = Some(added);
                }
            }
        }
        self.reorganiser.put_back(ranges);
        if moved_ranges == 0 {
            return Ok(());
        }
        let moved = self.move_by(&candidates, |stream, live| {
            self.copy_scattered(stream, &candidates, live)
        })?;
        let moved = (moved.records, moved.bytes_copied);
        self.reorganiser.moved(moved_ranges, moved, begun);
        Ok(())
    }

    /// Lays together what scans have just read: it is at hand still.
    fn reorganise_handed(self: &Arc<Self>, handed: &[Handed]) -> Result<()> {
        let _turn = self.reorganiser.turn.lock();
        let begun = Instant::now();
        let mut candidates = Candidates::default();
        let (mut last, mut sources) = (None, Vec::new());
        for handed in handed {
            let added;
            (last, added) = handed.add_to(last, &mut candidates);
            sources.extend(std::iter::repeat_n(&handed.records, added));
        }
        let moved = self.move_by(&candidates, |stream, live| {
            self.copy_handed(stream, &candidates, live, &sources)
        })?;
        let moved = (moved.records, moved.bytes_copied);
        self.reorganiser.moved(handed.len() as u64, moved, begun);
        Ok(())
    }
}
