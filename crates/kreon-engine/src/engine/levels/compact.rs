//! All trees of a region to one, at once.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};

use super::holds::Purpose;
use super::merge::Job;
use crate::engine::core::Core;
use crate::engine::open::Engine;
use crate::engine::progress::{Meter, Progress};
use crate::engine::region::RegionState;

/// So often everything is spilled until a tree that some readers do not see lies beneath all that is older.
const SPILLS_MAX: usize = 4;

impl Engine {
    /// As [`compact`](Self::compact), and tells how far it has come.
    ///
    /// # Errors
    /// As there.
    pub fn compact_with(&self, region: &RegionState, tell: &mut dyn FnMut(Progress)) -> Result<()> {
        self.core().compact(region, tell)
    }
}

impl Core {
    /// Spills what L0 has and makes all trees of `region` one, every leaf of which is new and packed, and in which
    /// no deletion stays that hides nothing. What is written meanwhile comes to stand above it.
    ///
    /// # Errors
    /// Those of a spill: the region is as it was. `Busy` during a load. `Closed` if the region is dropped meanwhile.
    pub fn compact(
        self: &Arc<Self>,
        region: &RegionState,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let may_go_on = || self.check_writable().and_then(|()| region.check());
        may_go_on()?;
        let mut meter = Meter::new(tell, "spill", self.entries_of(region));
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
                meter.finish();
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
                meter.finish();
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            "a load has just ended and its region is written to all the time, or ranges are deleted in it",
        ))
    }

    /// Entries that a compaction of the region meets, about: those of other regions in L0 count, too.
    fn entries_of(&self, region: &RegionState) -> u64 {
        let view = self.parts.views.load();
        let frozen = view.frozen.as_ref().map_or(0, |frozen| frozen.l0.len());
        let trees = view.levels.of(region.id).iter();
        trees.map(|tree| tree.entries).sum::<u64>() + (view.active.len() + frozen) as u64
    }
}
