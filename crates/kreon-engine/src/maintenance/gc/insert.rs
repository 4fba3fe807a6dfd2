//! Entries of copied records on their way into L0'.
//!
//! Inside the gate as any writer, the new place of a record goes into L0' with the LSN of the tree's entry, if neither L0'
//! nor L0 knows its key and the levels are those in which it was live (if not, it is judged again). So the tree's entry
//! is still the newest version, and:
//! - every later put of the key has a higher LSN and stands above the new place;
//! - exactly those snapshots that saw the old place see the new one;
//! - the next spill replaces the tree's entry by it, and counts its bytes; a crash before that forgets it, and the tree
//!   still points at the old place.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kreon_base::{ErrorKind, RegionId, Result, planted};
use kreon_l0::Keep;

use super::candidates::Candidates;
use super::copy::Copied;
use super::judge::{Bench, Live, judge};
use super::state::Gc;
use crate::keys::{L0Key, split};
use crate::level::{Frozen, Levels, View};
use crate::options::Background;
use crate::regions::RegionState;

/// Most entries that are inserted in one visit inside the gate, which bounds the wait of a closing.
const TOGETHER: usize = 64;

/// Outcome of moving some candidates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// Records whose entries are in L0'.
    pub records: u64,
    /// Their bytes in the log.
    pub bytes: u64,
    /// Records that were copied for nothing: a newer write, a drop or a load of their region came first.
    pub skipped: u64,
    /// Bytes of all copies.
    pub bytes_copied: u64,
    /// Some were left where they are: there was no room for copies, or in L0'.
    pub is_cut_short: bool,
}

impl Insertion<'_> {
    /// The keys of some copies.
    fn keys(&self, copied: &[Copied]) -> Vec<L0Key> {
        let found = copied
            .iter()
            .filter_map(|copied| self.candidates.get(copied.live.index));
        let keys = found.map(|found| L0Key::new(found.region, self.candidates.key(found)));
        keys.collect()
    }
}

/// Outcome of a visit inside the gate.
enum Visit {
    Done,
    /// The levels are others by now.
    Changed,
    /// L0' is full.
    Full,
    /// No spill could be sure of the space for more entries.
    OutOfSpace,
}

/// Copies on their way into L0'.
pub struct Insertion<'a> {
    pub candidates: &'a Candidates,
    pub copied: Vec<Copied>,
    /// Those that said that the records are live.
    pub levels: Arc<Levels>,
    /// L0 as it was then: it has none of their keys. Its memory is not kept.
    pub frozen: Option<Weak<Frozen>>,
    pub regions: BTreeMap<RegionId, Arc<RegionState>>,
    pub moved: Moved,
}

impl Gc {
    /// Inserts all copies, as far as there is room; counts those that are not inserted as skipped.
    ///
    /// # Errors
    /// `Corruption` of a tree, `Io`, `Closed`.
    pub(super) fn insert_all(&self, insertion: &mut Insertion<'_>) -> Result<()> {
        let mut at = 0;
        while at < insertion.copied.len() {
            let end = insertion.copied.len().min(at + TOGETHER);
            match self.insert_some(insertion, at..end)? {
                Visit::Done => at = end,
                Visit::Changed => {
                    self.judge_again(insertion, at)?;
                    at = 0;
                }
                Visit::Full if self.wait_for_room_in_l0()? => {}
                Visit::Full | Visit::OutOfSpace => {
                    insertion.moved.is_cut_short = true;
                    insertion.moved.skipped += (insertion.copied.len() - at) as u64;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn insert_some(&self, insertion: &mut Insertion<'_>, range: Range<usize>) -> Result<Visit> {
        let _inside = self.on.visibility.gate.enter();
        self.on.storage.check_writable()?;
        let view = self.on.storage.views.load();
        let is_unchanged = Arc::ptr_eq(&view.levels, &insertion.levels);
        planted!(RelocationWithoutCompare => let is_unchanged = true);
        if !is_unchanged {
            return Ok(Visit::Changed);
        }
        // An empty one has some bytes, too, which may be more than a tiny L0 has; it cannot be spilled.
        if !view.active.is_empty() && view.active.bytes() >= self.on.storage.split.l0_bytes {
            return Ok(Visit::Full);
        }
        if !self
            .on
            .storage
            .allocator
            .lock()
            .grant_entries(range.len() as u64)?
        {
            return Ok(Visit::OutOfSpace);
        }
        self.insert_together(&view, insertion, range);
        Ok(Visit::Done)
    }

    /// Inserts at most [`TOGETHER`] copies, where no L0 of `view` has their keys. L0 was asked when they were judged.
    fn insert_together(&self, view: &View, insertion: &mut Insertion<'_>, range: Range<usize>) {
        let together = insertion.copied.get(range).unwrap_or_default();
        let keys = insertion.keys(together);
        debug_assert_eq!(keys.len(), together.len(), "each copy is of a candidate");
        let judged = insertion.frozen.as_ref().map(Weak::as_ptr);
        let frozen = view.frozen.as_ref();
        let frozen_since = frozen.filter(|frozen| judged != Some(Arc::as_ptr(frozen)));
        let mut known = [false; TOGETHER];
        if let Some(frozen) = frozen_since {
            frozen.l0.mark_known(&keys, &mut known);
        }
        let spots: Vec<_> = keys
            .iter()
            .map(|key| view.active.approach(key.as_slice()))
            .collect();
        let (moved, log) = (&mut insertion.moved, &self.on.storage.log);
        for (((copied, key), spot), is_known) in together.iter().zip(&keys).zip(spots).zip(known) {
            let (lsn, payload) = (copied.live.lsn, copied.payload());
            let is_newest = !is_known && !view.active.covers(key);
            if is_newest
                && self.takes_moved(&insertion.regions, key)
                && spot.insert_absent(lsn, payload)
            {
                moved.records += 1;
                moved.bytes += copied.bytes;
            } else {
                moved.skipped += 1;
            }
            planted!(RelocationWithoutCompare => view.active.insert(key.as_slice(), log.tail(), payload, Keep::default()));
        }
    }

    /// Whether the region of `key` takes entries of moved records now.
    fn takes_moved(&self, regions: &BTreeMap<RegionId, Arc<RegionState>>, key: &L0Key) -> bool {
        let exists = |region| {
            let found = regions.get(&region);
            found.is_some_and(|found| found.check().is_ok())
        };
        split(key.as_slice())
            .is_some_and(|(region, _)| exists(region) && !self.on.tree_locks.is_loading(region))
    }

    /// Judges again the copies from `from` on, which are not inserted: the levels changed and may have newer versions.
    fn judge_again(&self, insertion: &mut Insertion<'_>, from: usize) -> Result<()> {
        let mut rest = insertion.copied.split_off(from);
        let view = self.on.storage.views.load_full();
        let mut indexes: Vec<_> = rest.iter().map(|copied| copied.live.index).collect();
        let candidates = insertion.candidates;
        let key = |index: &usize| {
            let candidate = candidates.get(*index);
            candidate.map(|candidate| (candidate.region, candidates.key(candidate)))
        };
        indexes.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let bench = Bench::of(&self.on.storage, &self.on.visibility, &view);
        let live = judge(bench, candidates, &indexes)?;
        let before = rest.len();
        debug_assert!(indexes.len() == before && live.len() <= before);
        rest.retain_mut(|copied| {
            let found = live.binary_search_by_key(&copied.live.index, |live| live.index);
            let found = found.ok().and_then(|at| live.get(at));
            if let Some(found) = found {
                // The copy of a value that has ended since is one of a value.
                copied.live = Live {
                    has_expired: copied.live.has_expired,
                    ..*found
                };
            }
            found.is_some()
        });
        insertion.moved.skipped += (before - rest.len()) as u64;
        insertion.copied = rest;
        insertion.levels = Arc::clone(&view.levels);
        insertion.frozen = view.frozen.as_ref().map(Arc::downgrade);
        Ok(())
    }

    /// Freezes L0', asks for its spill and waits for room, unless the store is driven; whether there may be room now.
    fn wait_for_room_in_l0(&self) -> Result<bool> {
        if self.on.storage.options.background == Background::Driven {
            return Ok(false);
        }
        if self.spiller.freeze_if_full() {
            self.spiller.ask();
        }
        let waited = self.on.throttle.wait_for_room(|| {
            self.on.storage.check_writable()?;
            let view = self.on.storage.views.load();
            Ok(view.frozen.is_some() && view.active.bytes() >= self.on.storage.split.l0_bytes)
        });
        match waited {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                kreon_sync::sleep(Duration::from_millis(1));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
