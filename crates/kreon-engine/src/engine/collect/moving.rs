//! Moving records: copy, compare and swap.
//!
//! The copies are on the device before anything points at them. Then, inside the gate as any writer, for each record:
//! neither L0' nor L0 knows its key, and the levels are those that said that it is live (if not, they are asked
//! again). So the trees' entry is still the newest, and an entry with the new place goes into L0' with the age of that:
//! - a put of the key, which comes at any time, is newer, and L0' orders versions by their age;
//! - every snapshot that saw the old place sees the new one, and no other;
//! - the next spill puts it in the place of the tree's entry, as a version that it has already, and counts its bytes;
//!   a crash before that forgets it, and the tree still points at the old place.
//!
//! A load into a region counts what is in L0' as written while it ran: nothing of that region is moved meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Bug, ErrorKind, Lsn, Payload, RegionId, Result};
use kreon_device::AlignedBuf;
use kreon_l0::Keep;

use crate::engine::core::Core;
use crate::engine::region::RegionState;
use crate::gc::judge::{Live, is_in_l0s};
use crate::gc::{self, Candidates, Copied, Judged};
use crate::keys::L0Key;
use crate::level::Levels;
use crate::log::MovedStream;
use crate::options::Background;

/// Entries that are inserted in one visit inside the gate: whoever closes it waits for no more.
const TOGETHER: usize = 64;

/// What was moved.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Moved {
    /// Records whose entries are in L0'.
    pub records: u64,
    /// Their bytes in the log.
    pub bytes: u64,
    /// Records that were copied in vain.
    pub skipped: u64,
    /// Bytes of all copies.
    pub bytes_copied: u64,
    /// Some were left where they are: there was no room for copies, or in L0'.
    pub is_cut_short: bool,
}

/// What came of a visit inside the gate.
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
struct Insertion<'a> {
    candidates: &'a Candidates,
    copied: Vec<Copied>,
    /// Those that said that the records are live.
    levels: Arc<Levels>,
    regions: BTreeMap<RegionId, Arc<RegionState>>,
    moved: Moved,
}

impl Core {
    /// Moves those of `candidates` that are live to the end of the stream of moved records, where they will stand in
    /// the order of the candidates. Others are passed over. The bytes at the old places are dead after the next spill.
    ///
    /// # Errors
    /// `Corruption` of a tree or a record, `Io`: the store is poisoned if a write failed. `Closed`.
    pub(in crate::engine) fn move_records(
        self: &Arc<Self>,
        candidates: &Candidates,
        buffer: &mut AlignedBuf,
    ) -> Result<Moved> {
        self.move_by(candidates, |stream, live| {
            gc::copy(&self.parts, stream, candidates, live, buffer)
        })
    }

    /// The same with copies that `copy` makes, in the order of what it is given.
    pub(in crate::engine) fn move_by(
        self: &Arc<Self>,
        candidates: &Candidates,
        copy: impl FnOnce(&mut MovedStream, &[Live]) -> Result<Vec<Copied>>,
    ) -> Result<Moved> {
        let mut stream = self.parts.moved.lock();
        let (levels, copied, is_cut_short) = {
            // As long as this view is held, none of the segments is handed out again.
            let view = self.parts.views.load_full();
            let marker = self.parts.ledger.lock().marker;
            let parts = &self.parts;
            let Judged { live, .. } =
                gc::judge(parts, &view, marker, candidates, &candidates.by_key())?;
            let copied =
                copy(&mut stream, &live).inspect_err(|error| self.note_failed_copy(error))?;
            let is_cut_short = copied.len() < live.len();
            (Arc::clone(&view.levels), copied, is_cut_short)
        };
        let found = copied.iter().filter_map(|of| candidates.get(of.live.index));
        let ids: BTreeSet<RegionId> = found.map(|candidate| candidate.region).collect();
        let regions = ids.into_iter().filter_map(|id| self.regions.of(id));
        let mut insertion = Insertion {
            candidates,
            levels,
            regions: regions.map(|region| (region.id, region)).collect(),
            moved: Moved {
                bytes_copied: copied.iter().map(|copied| copied.bytes).sum(),
                is_cut_short,
                ..Moved::default()
            },
            copied,
        };
        let outcome = self.insert_all(&mut insertion);
        // What was not inserted by now never will be.
        self.collector.set_inserted(stream.end());
        outcome.map(|()| insertion.moved)
    }

    fn note_failed_copy(&self, error: &kreon_base::Error) {
        if error.kind() == ErrorKind::Io {
            self.parts.poison.set(error);
        }
    }

    fn insert_all(self: &Arc<Self>, insertion: &mut Insertion<'_>) -> Result<()> {
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

    fn insert_some(
        &self,
        insertion: &mut Insertion<'_>,
        range: std::ops::Range<usize>,
    ) -> Result<Visit> {
        let _inside = self.gate.enter();
        self.check_writable()?;
        let view = self.parts.views.load();
        let blind = Bug::RelocationWithoutCompare.is_planted();
        if !Arc::ptr_eq(&view.levels, &insertion.levels) && !blind {
            return Ok(Visit::Changed);
        }
        // An empty one has some bytes, too, which may be more than a tiny L0 has; it cannot be spilled.
        if !view.active.is_empty() && view.active.bytes() >= self.split.l0_bytes {
            return Ok(Visit::Full);
        }
        if !self
            .parts
            .allocator
            .lock()
            .grant_entries(range.len() as u64)?
        {
            return Ok(Visit::OutOfSpace);
        }
        let keep = Keep {
            snapshot_max: self.snapshots.newest(),
            ..Keep::default()
        };
        let Insertion {
            candidates,
            copied,
            regions,
            moved,
            ..
        } = insertion;
        for copied in copied.get(range).unwrap_or_default() {
            let Some(candidate) = candidates.get(copied.live.index) else {
                continue;
            };
            let region = candidate.region;
            let exists = regions
                .get(&region)
                .is_some_and(|found| found.check().is_ok());
            let key = L0Key::new(region, candidates.key(candidate));
            let is_newest = !is_in_l0s(&view, key.as_slice());
            if !exists || !is_newest || self.holds.is_loading(region) {
                moved.skipped += 1;
                continue;
            }
            let payload = match copied.live.value_bytes {
                None => Payload::Tombstone {
                    offset: copied.offset,
                },
                Some(value_bytes) => Payload::Logged {
                    offset: copied.offset,
                    value_bytes,
                },
            };
            let lsn = match blind {
                true => Lsn(self.parts.log.tail().0.saturating_sub(1)),
                false => copied.live.lsn,
            };
            view.active.insert(key.as_slice(), lsn, payload, keep);
            moved.records += 1;
            moved.bytes += copied.bytes;
        }
        Ok(Visit::Done)
    }

    /// The levels changed: what is not inserted yet, from `from` on, may have newer versions by now.
    fn judge_again(&self, insertion: &mut Insertion<'_>, from: usize) -> Result<()> {
        let mut rest = insertion.copied.split_off(from);
        let view = self.parts.views.load_full();
        let marker = self.parts.ledger.lock().marker;
        let mut indexes: Vec<_> = rest.iter().map(|copied| copied.live.index).collect();
        let candidates = insertion.candidates;
        let key = |index: &usize| {
            let candidate = candidates.get(*index);
            candidate.map(|candidate| (candidate.region, candidates.key(candidate)))
        };
        indexes.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let Judged { live, .. } = gc::judge(&self.parts, &view, marker, candidates, &indexes)?;
        let before = rest.len();
        rest.retain_mut(|copied| {
            let found = live.binary_search_by_key(&copied.live.index, |live| live.index);
            let found = found.ok().and_then(|at| live.get(at));
            if let Some(found) = found {
                copied.live = *found;
            }
            found.is_some()
        });
        insertion.moved.skipped += (before - rest.len()) as u64;
        insertion.copied = rest;
        insertion.levels = Arc::clone(&view.levels);
        Ok(())
    }

    /// Has L0' spilled, if anybody here does that; whether it was worth the wait.
    fn wait_for_room_in_l0(self: &Arc<Self>) -> Result<bool> {
        if self.options.background == Background::Driven {
            return Ok(false);
        }
        self.rotate();
        let waited = self.pressure.wait_for_room(|| {
            self.check_writable()?;
            let view = self.parts.views.load();
            Ok(view.frozen.is_some() && view.active.bytes() >= self.split.l0_bytes)
        });
        match waited {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                crate::sync::sleep(Duration::from_millis(1));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
