//! All trees of a region to one, at once.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};

use super::holds::Purpose;
use super::merge::Job;
use crate::engine::core::Core;
use crate::engine::region::RegionState;

/// So often everything is spilled until a tree that some readers do not see lies beneath all that is older.
const SPILLS_MAX: usize = 4;

impl Core {
    /// Spills what L0 has and makes all trees of `region` one, every leaf of which is new and packed, and in which
    /// no deletion stays that hides nothing. What is written meanwhile comes to stand above it.
    ///
    /// # Errors
    /// Those of a spill: the region is as it was. `Busy` during a load. `Closed` if the region is dropped meanwhile.
    pub fn compact(self: &Arc<Self>, region: &RegionState) -> Result<()> {
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
            if self.is_spilled_up_to(job.hidden_up_to()) && self.run_merge(&job, &hold, upkeep)? {
                drop(hold);
                return self.give_back();
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            "a load has just ended and its region is written to all the time, or ranges are deleted in it",
        ))
    }
}
