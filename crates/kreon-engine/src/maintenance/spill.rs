//! Spills: the frozen L0 goes into the first tree of each region (`Kreon 3.2.1`), and the result becomes durable.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use kreon_base::{ErrorKind, PageNo, Result, planted};

use super::counts::PageCounts;
use super::ground::Ground;
use crate::events::Event;
use crate::level::{Frozen, View};
use crate::options::Background;
use crate::spill::{self, Orders};
use crate::state::Ledger;
use kreon_sync::Wakeup;

/// A log longer than this behind the marker is spilled at close, so that the next open is quick.
const REPLAY_BYTES_AT_CLOSE_MAX: u64 = 8 << 20;

/// Spills frozen L0s, one at a time.
pub struct Spiller {
    on: Ground,
    /// Wakes the thread of spills.
    pub wanted: Wakeup,
    /// Wakes a thread that merges levels.
    merge_wanted: Arc<Wakeup>,
    /// Counts of spills and their pages.
    pub counts: PageCounts,
}

impl Spiller {
    /// Nothing was spilled yet.
    pub fn new(on: &Ground, merge_wanted: &Arc<Wakeup>) -> Self {
        Self {
            on: on.clone(),
            wanted: Wakeup::default(),
            merge_wanted: Arc::clone(merge_wanted),
            counts: PageCounts::default(),
        }
    }

    /// Freezes L0' as L0 if it is full or hides too many dead bytes; whether it did.
    pub fn freeze_if_full(&self) -> bool {
        let is_due = self.on.space.is_freeze_due(self.on.storage.log.tail());
        let bytes_min = match is_due && self.on.space.hides_too_much() {
            true => 0,
            false => self.on.storage.split.l0_bytes,
        };
        self.on.versions.freeze(bytes_min)
    }

    /// Asks the thread of spills to spill the frozen L0; spills here in a store with inline work. The throttle tells
    /// writers the outcome.
    pub fn ask(&self) {
        match self.on.storage.options.background {
            Background::Threads => self.wanted.call(),
            Background::Inline => drop(self.spill_frozen()),
            Background::Driven => {}
        }
    }

    /// Whether a spill is wanted or under way.
    pub fn is_due(&self) -> bool {
        self.on.storage.views.load().frozen.is_some()
    }

    /// One flush for everything that was written so far.
    pub fn sync(&self) -> Result<()> {
        let log = &self.on.storage.log;
        log.expect_wait();
        log.sync(log.tail())
            .inspect_err(|error| self.on.storage.poison.set(error))
    }

    /// Spills L0 and L0' and makes the result durable.
    pub fn checkpoint(&self) -> Result<()> {
        // First the L0 that is frozen already, then L0'.
        self.spill_frozen()?;
        self.on.versions.freeze(0);
        self.spill_frozen()?;
        self.take_in_made()
    }

    /// Checkpoints regions that were made after the last spill. Moves the marker behind their records if the log has
    /// nothing else there.
    fn take_in_made(&self) -> Result<()> {
        if self.on.storage.made.is_empty() {
            return Ok(());
        }
        let _changes = self.on.versions.lock_changes();
        let (versions, marker) = (&self.on.versions, self.on.versions.quiet_tail());
        match versions.install_ledger(|ledger| ledger.advance(marker)) {
            // The log keeps the regions.
            Err(error) if error.kind() == ErrorKind::OutOfSpace => self.sync(),
            outcome => outcome,
        }
    }

    /// Before closing: makes everything acknowledged durable, and shortens a long replay by a spill.
    pub fn settle(&self) -> Result<()> {
        self.on.storage.poison.check()?;
        self.sync()?;
        let marker = self.on.storage.ledger.lock().marker;
        if self.on.storage.log.tail().0.saturating_sub(marker.0) > REPLAY_BYTES_AT_CLOSE_MAX {
            // A full volume cannot spill, but everything is durable in the log.
            match self.checkpoint() {
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {}
                outcome => outcome?,
            }
        }
        self.tell_durable()
    }

    /// Tells by a checkpoint how far the log is durable, for the change feed of a reader.
    fn tell_durable(&self) -> Result<()> {
        if !self.on.storage.feed.is_on() {
            return Ok(());
        }
        {
            let _closed = self.on.visibility.gate.close();
            self.on.storage.log.claim_all();
        }
        let _changes = self.on.versions.lock_changes();
        match self.on.versions.install_ledger(|_| ()) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => Ok(()),
            outcome => outcome,
        }
    }

    /// Spills the frozen L0, if there is one, and makes the result durable.
    pub fn spill_frozen(&self) -> Result<()> {
        let changes = self.on.versions.lock_changes();
        self.on.storage.poison.check()?;
        let view = self.on.storage.views.load_full();
        let Some(frozen) = view.frozen.clone() else {
            return Ok(());
        };
        let outcome = self.spill_and_tell(&view, &frozen);
        drop((view, frozen));
        if let Err(error) = &outcome {
            tracing::warn!(%error, "a spill failed");
            if error.kind() != ErrorKind::OutOfSpace {
                self.on.storage.poison.set(error);
            }
        }
        // Before the right is given up: the next spill must not start before this one has ended for the throttle.
        self.on.throttle.spill_ended(&outcome);
        drop(changes);
        if self.on.storage.options.background == Background::Threads
            && self.on.versions.is_merge_due()
        {
            self.merge_wanted.call();
        }
        outcome.and_then(|()| self.on.versions.reclaim())
    }

    fn spill_and_tell(&self, view: &Arc<View>, frozen: &Frozen) -> Result<()> {
        let (storage, entries) = (&self.on.storage, frozen.l0.len() as u64);
        let _span = tracing::debug_span!("spill", entries).entered();
        let begun = Instant::now();
        storage.tell(&Event::SpillBegan { entries });
        let outcome = self.spill_and_commit(view, frozen);
        let (pages_read, pages_written) = *outcome.as_ref().unwrap_or(&(0, 0));
        storage.tell(&Event::SpillEnded {
            pages_read,
            pages_written,
            took: begun.elapsed(),
            error: outcome.as_ref().err().cloned(),
        });
        outcome.map(drop)
    }

    /// Returns the numbers of tree pages that were taken apart and written.
    fn spill_and_commit(&self, view: &Arc<View>, frozen: &Frozen) -> Result<(u64, u64)> {
        // Snapshots that open from now on are not before `frozen.end` and need only the newest versions.
        let snapshots = self.on.visibility.snapshots.list();
        let expired_by = self.on.visibility.horizon();
        let regions = self
            .on
            .storage
            .ledger
            .lock()
            .with_made(&self.on.storage.made)
            .regions;
        let exists = |region| regions.contains(region);
        self.on.throttle.spill_starts(frozen.l0.len() as u64);
        let orders = Orders {
            exists: &exists,
            snapshots: &snapshots,
            expired_by,
            filter_bits_per_key: self.on.storage.options.filter_bits_per_key,
            workers: self.on.storage.options.spill_workers(),
            progress: &self.on.throttle.progress,
            rewrites_all: self.on.storage.options.designs.rewrites_all(),
        };
        let spilled = spill::spill(&self.on.storage, frozen, &view.levels, &orders)?;
        self.on.throttle.commit_starts();
        let marker = frozen.end;
        planted!(MarkerTooFar => let marker = self.on.storage.log.tail());
        let (written, read) = (spilled.kept.len(), spilled.dropped.len());
        let moved_marker = frozen.moved_end;
        let advance = |ledger: &mut Ledger| {
            ledger.marker = marker;
            ledger.moved_marker = moved_marker;
        };
        self.on.versions.install(spilled, advance, false)?;
        self.counts.count(read, written);
        self.note_erased(view, frozen);
        Ok((read as u64, written as u64))
    }

    /// Invalidates merges of trees to which the spill of `frozen` applied deleted ranges; `view` has the trees before it.
    /// The first tree takes the spills, so no merge has it.
    fn note_erased(&self, view: &Arc<View>, frozen: &Frozen) {
        let lower_roots = |view: &View, region| -> BTreeSet<PageNo> {
            let lower = view.levels.of(region).iter().skip(1);
            lower.filter_map(|tree| Some(tree.root?.page)).collect()
        };
        let (ranges, now) = (frozen.l0.ranges(), self.on.storage.views.load());
        for region in ranges.regions() {
            if let Some(ranges) = ranges.of(region) {
                let gone = &lower_roots(view, region) - &lower_roots(&now, region);
                self.on.tree_locks.erased(region, ranges, &gone, view);
            }
        }
    }
}
