//! Spills: the frozen L0 goes into the first tree of each region (`Kreon 3.2.1`), and the result becomes durable.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{ErrorKind, PageNo, Result, planted};

use super::counts::PageCounts;
use crate::level::{Frozen, Levels, View};
use crate::options::Background;
use crate::space::Space;
use crate::spill::{self, Orders, Spilled};
use crate::state::{Ledger, Storage};
use crate::throttle::Throttle;
use crate::tree_locks::TreeLocks;
use crate::versions::Versions;
use crate::visibility::Visibility;
use kreon_sync::Wakeup;

/// A log longer than this behind the marker is spilled at close, so that the next open is quick.
const REPLAY_BYTES_AT_CLOSE_MAX: u64 = 8 << 20;

/// Spills frozen L0s, one at a time.
pub struct Spiller {
    storage: Arc<Storage>,
    visibility: Arc<Visibility>,
    versions: Arc<Versions>,
    space: Arc<Space>,
    throttle: Arc<Throttle>,
    tree_locks: Arc<TreeLocks>,
    /// Wakes the thread of spills.
    pub wanted: Wakeup,
    /// Wakes a thread that merges levels.
    merge_wanted: Arc<Wakeup>,
    /// Counts of spills and their pages.
    pub counts: PageCounts,
}

/// The subsystems that a spill works on.
pub struct SpillsOn<'a> {
    /// Volume, log, levels.
    pub storage: &'a Arc<Storage>,
    /// Gate and snapshots.
    pub visibility: &'a Arc<Visibility>,
    /// Installs its result.
    pub versions: &'a Arc<Versions>,
    /// Decides whether L0' must be frozen early.
    pub space: &'a Arc<Space>,
    /// Gets the progress of the spill.
    pub throttle: &'a Arc<Throttle>,
    /// Merges that a spill may invalidate.
    pub tree_locks: &'a Arc<TreeLocks>,
    /// Woken when a tree has become too large.
    pub merge_wanted: &'a Arc<Wakeup>,
}

impl Spiller {
    /// Nothing was spilled yet.
    pub fn new(on: &SpillsOn<'_>) -> Self {
        Self {
            storage: Arc::clone(on.storage),
            visibility: Arc::clone(on.visibility),
            versions: Arc::clone(on.versions),
            space: Arc::clone(on.space),
            throttle: Arc::clone(on.throttle),
            tree_locks: Arc::clone(on.tree_locks),
            wanted: Wakeup::default(),
            merge_wanted: Arc::clone(on.merge_wanted),
            counts: PageCounts::default(),
        }
    }

    /// Freezes L0' as L0 if it is full or hides too many dead bytes; whether it did.
    pub fn rotate(&self) -> bool {
        let is_due = self.space.is_freeze_due(self.storage.log.tail());
        let bytes_min = match is_due && self.space.hides_too_much() {
            true => 0,
            false => self.storage.split.l0_bytes,
        };
        self.versions.freeze(bytes_min)
    }

    /// Asks the thread of spills to spill the frozen L0; spills here in a store with inline work. The throttle tells
    /// writers the outcome.
    pub fn ask(&self) {
        match self.storage.options.background {
            Background::Threads => self.wanted.call(),
            Background::Inline => drop(self.spill_frozen()),
            Background::Driven => {}
        }
    }

    /// Whether a spill is wanted or under way.
    pub fn is_due(&self) -> bool {
        self.storage.views.load().frozen.is_some()
    }

    /// One flush for everything that was written so far.
    pub fn sync(&self) -> Result<()> {
        let log = &self.storage.log;
        log.expect_wait();
        log.sync(log.tail())
            .inspect_err(|error| self.storage.poison.set(error))
    }

    /// Spills L0 and L0' and makes the result durable.
    pub fn checkpoint(&self) -> Result<()> {
        // First the L0 that is frozen already, then L0'.
        self.spill_frozen()?;
        self.versions.freeze(0);
        self.spill_frozen()?;
        self.take_in_made()
    }

    /// Checkpoints regions that were made after the last spill. Moves the marker behind their records if the log has
    /// nothing else there.
    fn take_in_made(&self) -> Result<()> {
        if self.storage.made.is_empty() {
            return Ok(());
        }
        let _changes = self.versions.lock_changes();
        let change = Spilled::nothing(Levels::clone(&self.storage.views.load().levels));
        let marker = self.versions.quiet_tail();
        match self
            .versions
            .install(change, |ledger| ledger.advance(marker), true)
        {
            // The log keeps the regions.
            Err(error) if error.kind() == ErrorKind::OutOfSpace => self.sync(),
            outcome => outcome,
        }
    }

    /// Before closing: makes everything acknowledged durable, and shortens a long replay by a spill.
    pub fn settle(&self) -> Result<()> {
        self.storage.poison.check()?;
        self.sync()?;
        let marker = self.storage.ledger.lock().marker;
        if self.storage.log.tail().0.saturating_sub(marker.0) > REPLAY_BYTES_AT_CLOSE_MAX {
            // A full volume cannot spill, but everything is durable in the log.
            match self.checkpoint() {
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// Spills the frozen L0, if there is one, and makes the result durable.
    pub fn spill_frozen(&self) -> Result<()> {
        let changes = self.versions.lock_changes();
        self.storage.poison.check()?;
        let view = self.storage.views.load_full();
        let Some(frozen) = view.frozen.clone() else {
            return Ok(());
        };
        let outcome = self.spill_and_commit(&view, &frozen);
        drop((view, frozen));
        if let Err(error) = &outcome {
            tracing::warn!(%error, "a spill failed");
            if error.kind() != ErrorKind::OutOfSpace {
                self.storage.poison.set(error);
            }
        }
        // Before the right is given up: the next spill must not start before this one has ended for the throttle.
        self.throttle.spill_ended(&outcome);
        drop(changes);
        if self.storage.options.background == Background::Threads && self.versions.is_merge_due() {
            self.merge_wanted.call();
        }
        outcome.and_then(|()| self.versions.reclaim())
    }

    fn spill_and_commit(&self, view: &Arc<View>, frozen: &Frozen) -> Result<()> {
        // Snapshots that open from now on are not before `frozen.end` and need only the newest versions.
        let snapshots = self.visibility.snapshots.list();
        let regions = self
            .storage
            .ledger
            .lock()
            .with_made(&self.storage.made)
            .regions;
        let exists = |region| regions.contains(region);
        self.throttle.spill_starts(frozen.l0.len() as u64);
        let orders = Orders {
            exists: &exists,
            snapshots: &snapshots,
            filter_bits_per_key: self.storage.options.filter_bits_per_key,
            workers: self.storage.options.spill_workers(),
            progress: &self.throttle.progress,
            rewrites_all: self.storage.options.full_compaction,
        };
        let spilled = spill::spill(&self.storage, frozen, &view.levels, &orders)?;
        self.throttle.commit_starts();
        let marker = frozen.end;
        planted!(MarkerTooFar => let marker = self.storage.log.tail());
        let (written, read) = (spilled.kept.len(), spilled.dropped.len());
        let moved_marker = frozen.moved_end;
        let advance = |ledger: &mut Ledger| {
            ledger.marker = marker;
            ledger.moved_marker = moved_marker;
        };
        self.versions.install(spilled, advance, false)?;
        self.counts.count(read, written);
        self.note_erased(view, frozen);
        Ok(())
    }

    /// Invalidates merges of trees to which the spill of `frozen` applied deleted ranges; `view` has the trees before it.
    /// The first tree takes the spills, so no merge has it.
    fn note_erased(&self, view: &Arc<View>, frozen: &Frozen) {
        let lower_roots = |view: &View, region| -> BTreeSet<PageNo> {
            let lower = view.levels.of(region).iter().skip(1);
            lower.filter_map(|tree| Some(tree.root?.page)).collect()
        };
        let (ranges, now) = (frozen.l0.ranges(), self.storage.views.load());
        for region in ranges.regions() {
            if let Some(ranges) = ranges.of(region) {
                let gone = &lower_roots(view, region) - &lower_roots(&now, region);
                self.tree_locks.erased(region, ranges, &gone, view);
            }
        }
    }
}
