//! A store as small as it gets: one packed tree a region, hardly a dead byte in the log, nothing kept ready.
//!
//! 1. Regions with several trees get one: what deletions and newer versions hide is dead from then on.
//! 2. Live records leave the segments of the log that have dead ones.
//! 3. Regions get one packed tree each, in segments apart from all other pages, which become free as a whole.
//! 4. What the log has taken ahead, spare segments and the ends of segments go back to the file system.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};

use super::holds::Purpose;
use super::merge::Job;
use crate::engine::core::Core;
use crate::engine::open::Engine;
use crate::engine::progress::{Meter, Progress};
use crate::engine::region::RegionState;
use crate::spill::Spilled;
use crate::state::Ledger;

/// So often everything is spilled until a tree that some readers do not see lies beneath all that is older.
const SPILLS_MAX: usize = 4;

impl Core {
    /// Compacts `regions` and the log. What is written meanwhile comes to stand above it.
    ///
    /// # Errors
    /// Those of a spill: what was not done yet is as it was. `Busy` during a load into one of them. `Closed` if one is
    /// dropped meanwhile.
    pub fn compact(
        self: &Arc<Self>,
        regions: &[Arc<RegionState>],
        tell: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        self.check_writable()?;
        regions.iter().try_for_each(|region| region.check())?;
        let mut meter = Meter::new(tell, "spill", self.entries_of(regions));
        self.close_moved()?;
        self.checkpoint()?;
        self.parts.allocator.lock().begin_packing();
        let mut left = Vec::new();
        for region in regions {
            match self.has_several_trees(region) {
                true => self.compact_trees(region, &mut meter)?,
                false => left.push(region),
            }
        }
        meter.step("log");
        if self.collect_all()? > 0 {
            left = regions.iter().collect();
            self.parts.allocator.lock().begin_packing();
        }
        for region in left {
            self.compact_trees(region, &mut meter)?;
        }
        self.shrink()?;
        meter.finish();
        Ok(())
    }

    fn has_several_trees(&self, region: &RegionState) -> bool {
        let view = self.parts.views.load();
        let trees = view.levels.of(region.id).iter();
        trees.filter(|tree| tree.root.is_some()).count() > 1
    }

    /// Makes all trees of `region` one, every leaf of which is new and packed, and in which no deletion stays that hides
    /// nothing.
    fn compact_trees(self: &Arc<Self>, region: &RegionState, meter: &mut Meter<'_>) -> Result<()> {
        let may_go_on = || self.check_writable().and_then(|()| region.check());
        may_go_on()?;
        let hold = self
            .holds
            .take_whole(region.id, Purpose::Compaction, may_go_on)?;
        for _ in 0..SPILLS_MAX {
            hold.check_region()?;
            self.checkpoint()?;
            let upkeep = self.upkeep.lock();
            may_go_on()?;
            self.tidy(region.id);
            let view = self.parts.views.load_full();
            let Some(job) = Job::of_all(&view, region.id) else {
                return Ok(());
            };
            drop(view);
            meter.step("merge");
            let mut seen = |entries| meter.add(entries);
            if self.is_spilled_up_to(job.hidden_up_to())
                && self.run_merge(&job, &hold, upkeep, &mut seen)?
            {
                drop(hold);
                self.give_back()?;
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            "a load has just ended and its region is written to all the time, or ranges are deleted in it",
        ))
    }

    /// Entries that a compaction of the regions meets, about.
    fn entries_of(&self, regions: &[Arc<RegionState>]) -> u64 {
        let view = self.parts.views.load();
        let frozen = view.frozen.as_ref().map_or(0, |frozen| frozen.l0.len());
        let trees = regions.iter().flat_map(|region| view.levels.of(region.id));
        trees.map(|tree| tree.entries).sum::<u64>() + (view.active.len() + frozen) as u64
    }

    /// Gives back what is kept ready for writes to come.
    fn shrink(&self) -> Result<()> {
        self.close_moved()?;
        let ahead = self.parts.log.give_up_ahead()?;
        let mut allocator = self.parts.allocator.lock();
        for segment in &ahead {
            allocator.retire_log_segment(*segment)?;
        }
        drop(allocator);
        // No replay takes the segments for the log's once this is durable.
        let moved_end = self.collector.inserted();
        let is_quiet = self.quiet_tail().is_some();
        self.commit_nothing(|ledger| {
            if is_quiet {
                ledger.moved_marker = moved_end;
            }
        })?;
        let mut allocator = self.parts.allocator.lock();
        for segment in ahead {
            allocator.reuse_segment(segment)?;
        }
        drop(allocator);
        {
            let _closed = self.gate.close();
            self.parts.log.restrain();
        }
        self.give_back()?;
        self.set_reserve();
        self.parts.allocator.lock().trim_all()
    }

    fn commit_nothing(&self, change_ledger: impl FnOnce(&mut Ledger)) -> Result<()> {
        let _upkeep = self.upkeep.lock();
        let change = Spilled {
            levels: crate::level::Levels::clone(&self.parts.views.load().levels),
            kept: Vec::new(),
            dropped: Vec::new(),
            charges: Default::default(),
        };
        self.commit_spill(change, change_ledger, true)
    }
}

impl Engine {
    /// Makes one packed tree of all levels of each of `regions`, empties segments of the log that have dead records, and
    /// gives back what is not needed. Tells how far it has come.
    ///
    /// # Errors
    /// Those of a spill: what was not done is as it was; `Busy` during a load into one of them.
    pub fn compact(
        &self,
        regions: &[Arc<RegionState>],
        tell: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        self.core().compact(regions, tell)
    }

    /// The same with all regions. Those that are dropped meanwhile are passed over.
    ///
    /// # Errors
    /// Those of [`compact`](Self::compact).
    pub fn compact_all(&self, tell: &mut dyn FnMut(Progress)) -> Result<()> {
        loop {
            let regions = self.core().regions.list();
            match self.core().compact(&regions, tell) {
                Err(error)
                    if error.kind() == ErrorKind::Closed
                        && self.core().check_writable().is_ok()
                        && regions.iter().any(|region| region.check().is_err()) => {}
                outcome => return outcome,
            }
        }
    }
}
