//! Gaps: stretches of keys without values, which scans skip instead of passing their tombstones one by one. A gap covers
//! all levels together and is in memory only, so an opening begins without any.
//!
//! A gap is valid for snapshots from an LSN on, until a key in it is put: each put looks for a gap around its key and cuts
//! it. For a gap to be valid, every put since the gap was found empty must have looked:
//! - A scan that passes many dead entries has the keys *watched*, and closings of the gate that begin later have
//!   higher numbers than the watch.
//! - Writers that enter the gate after such a closing find the watch and cut it. What they write is in no snapshot of
//!   that closing, and what those before them wrote is in L0.
//! - So what a scan at a snapshot of such a closing finds empty is a gap, as far as it is still watched: for that
//!   snapshot and all later ones.
//! - A deletion of a range has the range watched and closes the gate before it takes its position: what is left of
//!   the watch behind it is a gap without any look.
//!
//! Spills, merges of levels and collection change nothing that a snapshot sees, so gaps outlast them. A load forgets
//! all gaps of its region while the gate is closed.

mod known;
mod walk;

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use kreon_base::{Lsn, planted};

pub use known::{Gap, Keys, Known};
pub use walk::{DeadRun, Passing};

use crate::keys::Direction;
use crate::visibility::{Gate, Moment, Snapshots};
use known::Watch;
use kreon_sync::{AtomicBool, AtomicU32, Mutex, Ordering};

/// So many dead entries in a row are worth a gap: as much as changing the set costs.
pub const RUN_ENTRIES_MIN: u64 = if cfg!(shuttle) { 2 } else { 16 };

/// After so many deletions the keys around the last one are looked at.
const SWEEP_DELETIONS: u32 = if cfg!(shuttle) { 4 } else { 64 };

/// Keys beyond this length bound no gap, in bytes: gaps are not in the budget of memory.
const KEY_BYTES_MAX: usize = 1024;

/// What the deletion of a range is taken to hide, in entries.
const RANGE_ENTRIES: u64 = 1 << 20;

/// The gaps and watches of one region.
#[derive(Default)]
pub struct Gaps {
    /// Whether there are any, or watches: a put without pays one load.
    is_any: AtomicBool,
    known: ArcSwap<Known>,
    /// One change of `known` at a time.
    turn: Mutex<()>,
    deletions: Deletions,
}

/// Apart from what puts read.
#[derive(Default)]
#[repr(align(128))]
struct Deletions(AtomicU32);

impl Gaps {
    /// What is known at this moment; `None`: nothing.
    pub fn known(&self) -> Option<Guard<Arc<Known>>> {
        let is_any = self.is_any.load(Ordering::Acquire);
        is_any.then(|| self.known.load())
    }

    /// `key` was put, by a writer that is inside the gate still.
    #[inline]
    pub fn note_put(&self, key: &[u8]) {
        planted!(GapNotCut => return);
        if self.is_any.load(Ordering::Acquire) && self.known.load().has(key) {
            self.cut(key);
        }
    }

    #[cold]
    fn cut(&self, key: &[u8]) {
        self.change(|known| known.cut(key));
    }

    /// A key was deleted. Whether the keys around it are to be looked at.
    pub fn note_deletion(&self) -> bool {
        let before = self.deletions.0.fetch_add(1, Ordering::Relaxed);
        before % SWEEP_DELETIONS == SWEEP_DELETIONS - 1
    }

    /// Forgets all gaps, because a load adds keys without puts. The gate is closed.
    pub fn clear(&self) {
        self.change(|known| *known = Known::default());
    }

    /// A scan at `moment` found no value in a run of dead entries. What was watched is a gap; dead keys are expected
    /// on the `ways` of the others.
    pub fn note_run(
        &self,
        run: &DeadRun,
        moment: Moment,
        ways: &[Direction],
        (gate, snapshots): (&Gate, &Snapshots),
    ) {
        let Some(keys) = run.keys().filter(is_short) else {
            return;
        };
        let _turn = self.turn.lock();
        let mut known = Known::clone(&self.known.load());
        known.confirm(&keys, moment.at, moment.closing, run.entries());
        known.join(|from, to| snapshots.is_any_within(from, to));
        let unwatched = known.unwatched(&keys, ways);
        if unwatched.is_empty() {
            return self.store(known);
        }
        self.watch(known, unwatched, gate);
    }

    /// Has `watched` watched; the caller has the turn. Returns the mark of the last.
    fn watch(&self, known: Known, watched: Vec<(Keys, Direction)>, gate: &Gate) -> u64 {
        let with = |mark| {
            let mut known = known.clone();
            for (keys, way) in &watched {
                let (keys, way) = (keys.clone(), *way);
                known.watch(Watch { keys, mark, way });
            }
            known
        };
        // Found by writers first, then numbered: closings with higher numbers come behind.
        self.store(with(u64::MAX));
        let mark = gate.mark();
        self.store(with(mark));
        mark
    }

    /// A range of keys is about to be deleted. Writers that take their positions behind the deletion's find the watch.
    pub fn watch_range(&self, start: &[u8], end: Option<&[u8]>, gate: &Gate) -> Option<u64> {
        let (start, end) = (start.into(), end.map(Into::into));
        let keys = Some(Keys { start, end }).filter(is_short)?;
        let mark = {
            let _turn = self.turn.lock();
            let known = Known::clone(&self.known.load());
            self.watch(known, vec![(keys, Direction::Forward)], gate)
        };
        drop(gate.close());
        Some(mark)
    }

    /// The range of the watch `mark` was deleted by the write that ends at `end`.
    pub fn note_deleted_range(&self, mark: u64, end: Lsn, snapshots: &Snapshots) {
        self.change(|known| {
            known.confirm_watch(mark, end, RANGE_ENTRIES);
            known.join(|from, to| snapshots.is_any_within(from, to));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let _turn = self.turn.lock();
        let mut known = Known::clone(&self.known.load());
        change(&mut known);
        self.store(known);
    }

    /// The caller has the turn.
    fn store(&self, known: Known) {
        let is_any = !known.is_empty();
        self.known.store(Arc::new(known));
        // After `known`: a put that sees the flag must find the set.
        self.is_any.store(is_any, Ordering::Release);
    }
}

fn is_short(keys: &Keys) -> bool {
    let end_bytes = keys.end.as_ref().map_or(0, |end| end.len());
    keys.start.len().max(end_bytes) <= KEY_BYTES_MAX
}

impl std::fmt::Debug for Gaps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gaps")
            .field("known", &self.known.load())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
