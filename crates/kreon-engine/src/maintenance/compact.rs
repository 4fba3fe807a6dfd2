//! Compaction: one packed tree a region, few dead bytes in the log, no space kept ready.
//!
//! 1. Regions with several trees get one, without tombstones and hidden versions, whose records are dead from then on.
//! 2. Live records leave the segments of the log that have dead ones.
//! 3. Regions get one packed tree each, in segments apart from all other pages, which become free as a whole.
//! 4. Segments taken ahead by the log, spare segments and the ends of segments go back to the file system.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};

use super::gc::Gc;
use super::ground::Ground;
use super::merge::{Job, Merger};
use super::spill::Spiller;
use crate::progress::{Meter, Progress};
use crate::regions::RegionState;
use crate::tree_locks::LockReason;

/// Most spills before a tree that is hidden from some readers can be merged with the others.
const SPILLS_MAX: usize = 4;

/// Compacts regions and the log.
pub struct Compactor {
    on: Ground,
    spiller: Arc<Spiller>,
    merger: Arc<Merger>,
    gc: Arc<Gc>,
}

impl Compactor {
    /// By these jobs, one after the other.
    pub fn new(
        on: &Ground,
        (spiller, merger, gc): (&Arc<Spiller>, &Arc<Merger>, &Arc<Gc>),
    ) -> Self {
        Self {
            on: on.clone(),
            spiller: Arc::clone(spiller),
            merger: Arc::clone(merger),
            gc: Arc::clone(gc),
        }
    }

    /// Compacts `regions` and the log. What is written meanwhile comes to stand above it.
    ///
    /// # Errors
    /// Those of a spill: what was not done yet is as it was. `Busy` during a load into one of them. `Closed` if one is
    /// dropped meanwhile.
    pub fn compact(
        &self,
        regions: &[Arc<RegionState>],
        tell: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        self.on.storage.check_writable()?;
        regions.iter().try_for_each(|region| region.check())?;
        let mut meter = Meter::new(tell, "spill", self.entries_of(regions));
        self.gc.close_moved()?;
        self.spiller.checkpoint()?;
        self.on.storage.allocator.lock().begin_packing();
        let mut left = Vec::new();
        for region in regions {
            match self.has_several_trees(region) {
                true => self.compact_trees(region, &mut meter)?,
                false => left.push(region),
            }
        }
        meter.step("log");
        if self.gc.collect_all()? > 0 {
            left = regions.iter().collect();
            self.on.storage.allocator.lock().begin_packing();
        }
        for region in left {
            self.compact_trees(region, &mut meter)?;
        }
        self.shrink()?;
        meter.finish();
        Ok(())
    }

    fn has_several_trees(&self, region: &RegionState) -> bool {
        let view = self.on.storage.views.load();
        let trees = view.levels.of(region.id).iter();
        trees.filter(|tree| tree.root.is_some()).count() > 1
    }

    /// Merges all trees of `region` into one, with new packed leaves and no tombstone that hides nothing.
    fn compact_trees(&self, region: &RegionState, meter: &mut Meter<'_>) -> Result<()> {
        let may_go_on = || {
            self.on
                .storage
                .check_writable()
                .and_then(|()| region.check())
        };
        may_go_on()?;
        let hold = self
            .on
            .tree_locks
            .take_whole(region.id, LockReason::Compaction, may_go_on)?;
        for _ in 0..SPILLS_MAX {
            hold.check_region()?;
            self.spiller.checkpoint()?;
            let changes = self.on.versions.lock_changes();
            may_go_on()?;
            self.on.versions.tidy(region.id);
            let view = self.on.storage.views.load_full();
            let Some(job) = Job::of_all(&view, region.id) else {
                return Ok(());
            };
            drop(view);
            meter.step("merge");
            let mut seen = |entries| meter.add(entries);
            if self.merger.is_spilled_up_to(job.hidden_up_to())
                && self.merger.run_merge(&job, &hold, changes, &mut seen)?
            {
                drop(hold);
                self.on.versions.reclaim()?;
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            "a load has just ended and its region is written to all the time, or ranges are deleted in it",
        ))
    }

    /// Estimate of the entries that a compaction of the regions reads.
    fn entries_of(&self, regions: &[Arc<RegionState>]) -> u64 {
        let view = self.on.storage.views.load();
        let frozen = view.frozen.as_ref().map_or(0, |frozen| frozen.l0.len());
        let trees = regions.iter().flat_map(|region| view.levels.of(region.id));
        trees.map(|tree| tree.entries).sum::<u64>() + (view.active.len() + frozen) as u64
    }

    /// Gives back what is kept ready for writes to come.
    fn shrink(&self) -> Result<()> {
        self.gc.close_moved()?;
        let ahead = self.on.storage.log.give_up_ahead()?;
        let mut allocator = self.on.storage.allocator.lock();
        for segment in &ahead {
            allocator.retire_log_segment(*segment)?;
        }
        drop(allocator);
        // Once this is durable, no replay takes the segments for the log's.
        self.commit_nothing()?;
        let mut allocator = self.on.storage.allocator.lock();
        for segment in ahead {
            allocator.reuse_segment(segment)?;
        }
        drop(allocator);
        {
            let _closed = self.on.visibility.gate.close();
            self.on.storage.log.restrain();
        }
        self.on.versions.reclaim()?;
        self.on.space.set_reserve();
        self.on.storage.allocator.lock().trim_all()
    }

    /// A checkpoint of the same levels. A spill may not come between the question whether all is spilled and the answer in
    /// the ledger: it moves the marker of moved records further.
    fn commit_nothing(&self) -> Result<()> {
        let versions = &self.on.versions;
        let _changes = versions.lock_changes();
        let moved_end = versions.inserted();
        let is_quiet = versions.quiet_tail().is_some();
        versions.install_ledger(|ledger| {
            if is_quiet {
                ledger.moved_marker = moved_end;
            }
        })
    }
}
