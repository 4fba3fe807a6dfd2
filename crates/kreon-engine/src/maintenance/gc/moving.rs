//! Moving records: copy, compare and swap.
//!
//! Copies are on the device before anything points at them; [`insert`](super::insert) makes them count.
//!
//! A load takes all entries of its region in L0' for writes beside it, so nothing of that region is moved meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{RegionId, Result};
use kreon_device::AlignedBuf;

use super::candidates::Candidates;
use super::copy::{Copied, copy as copy_records};
use super::insert::{Insertion, Moved};
use super::judge::{Bench, Live, judge};
use super::state::Gc;
use kreon_log::MovedStream;

impl Gc {
    /// Moves those of `candidates` that are live to the end of the stream of moved records, where they will stand in
    /// the order of the candidates. Others are passed over. The bytes at the old places are dead after the next spill.
    ///
    /// # Errors
    /// `Corruption` of a tree or a record, `Io`: the store is poisoned if a write failed. `Closed`.
    pub fn move_records(&self, candidates: &Candidates, buffer: &mut AlignedBuf) -> Result<Moved> {
        self.move_by(candidates, |stream, live| {
            copy_records(&self.on.storage, stream, candidates, live, buffer)
        })
    }

    /// The same with the memory of collection; none: that is at work itself.
    ///
    /// # Errors
    /// Those of [`move_records`](Self::move_records).
    pub fn move_in_turn(&self, candidates: &Candidates) -> Result<Option<Moved>> {
        let Some(mut turn) = self.turn.try_lock() else {
            return Ok(None);
        };
        self.move_records(candidates, &mut turn.buffer).map(Some)
    }

    /// The same with copies that `copy` makes, in the order of what it is given.
    pub fn move_by(
        &self,
        candidates: &Candidates,
        copy: impl FnOnce(&mut MovedStream, &[Live]) -> Result<Vec<Copied>>,
    ) -> Result<Moved> {
        self.on.storage.check_writable()?;
        let mut stream = self.on.storage.moved.lock();
        let (levels, frozen, copied, is_cut_short) = {
            // This view keeps the segments from being reused.
            let view = self.on.storage.views.load_full();
            let (storage, bench) = (
                &self.on.storage,
                Bench::of(&self.on.storage, &self.on.visibility, &view),
            );
            let live = judge(bench, candidates, &candidates.by_key())?;
            let outcome = copy(&mut stream, &live);
            if let Err(error) = &outcome
                && stream.is_broken()
            {
                storage.poison.set(error);
            }
            let copied = outcome?;
            debug_assert!(copied.len() <= live.len(), "a record is copied once");
            let is_cut_short = copied.len() < live.len();
            let (levels, frozen) = (
                Arc::clone(&view.levels),
                view.frozen.as_ref().map(Arc::downgrade),
            );
            (levels, frozen, copied, is_cut_short)
        };
        let found = copied.iter().filter_map(|of| candidates.get(of.live.index));
        let ids: BTreeSet<RegionId> = found.map(|candidate| candidate.region).collect();
        let regions = ids.into_iter().filter_map(|id| self.on.regions.of(id));
        let mut insertion = Insertion {
            candidates,
            levels,
            frozen,
            regions: regions.map(|region| (region.id, region)).collect(),
            moved: Moved {
                bytes_copied: copied.iter().map(|copied| copied.bytes).sum(),
                is_cut_short,
                ..Moved::default()
            },
            copied,
        };
        let count = insertion.copied.len() as u64;
        let outcome = self.insert_all(&mut insertion);
        let Moved {
            records, skipped, ..
        } = insertion.moved;
        debug_assert!(records + skipped <= count, "a copy counts once");
        // Copies that are not inserted by now never will be.
        self.on.versions.set_inserted(stream.end());
        outcome.map(|()| insertion.moved)
    }
}
