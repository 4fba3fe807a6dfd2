//! Where the pages of trees and of the catalogue go.
//!
//! New pages go into the longest run of unused ones, so that the writes of a spill stay large. Trees that are made anew
//! one after the other are *packed*: into segments apart from those of other trees, so that the segments which the old
//! trees leave become free as a whole.

use std::collections::BTreeSet;

use kreon_base::{PageNo, Result, SEGMENT_PAGES, SegmentId};

use super::purpose::Purpose;
use super::segment::{Segment, Usage};
use super::supply::Supply;
use super::tuning::RUN_PAGES_ENOUGH;

/// What decides where pages go.
#[derive(Default)]
pub struct PagePlacement {
    /// Segments that trees are packed into.
    pub packed: BTreeSet<SegmentId>,
    /// Pages are taken one by one, the lowest first.
    pub is_scattered: bool,
}

impl PagePlacement {
    pub fn take(
        &self,
        supply: &mut Supply,
        pages_max: u64,
        purpose: Purpose,
    ) -> Result<(PageNo, u64)> {
        if self.is_scattered
            && let Some(page) = supply.take_lowest_page()?
        {
            return Ok((page, 1));
        }
        let wanted = pages_max.clamp(1, SEGMENT_PAGES);
        supply.check_room_for_pages(wanted, purpose)?;
        let id = segment_with_room(supply, wanted, purpose)?;
        supply.take_pages(id, wanted, purpose)
    }

    pub fn take_packed(&mut self, supply: &mut Supply, pages_max: u64) -> Result<(PageNo, u64)> {
        let wanted = pages_max.clamp(1, SEGMENT_PAGES);
        let run = |id: SegmentId| {
            let segment = supply.segments.get(id);
            let segment = segment.filter(|found| found.offers_pages());
            segment.map_or(0, Segment::longest_run)
        };
        let best = self.packed.iter().map(|id| (run(*id), *id)).max();
        let id = match best {
            Some((run, id)) if run > 0 => id,
            _ => supply.take_segment(Usage::Tree, Purpose::Maintenance)?,
        };
        self.packed.insert(id);
        supply.take_pages(id, wanted, Purpose::Maintenance)
    }
}

/// A segment with a run of `wanted` unused pages, or one that is as good; else the best there is.
fn segment_with_room(supply: &mut Supply, wanted: u64, purpose: Purpose) -> Result<SegmentId> {
    let best = supply.segments.longest_run();
    let enough = wanted.min(RUN_PAGES_ENOUGH);
    if let Some((run, id)) = best
        && run >= enough
    {
        return Ok(id);
    }
    if let Some(id) = supply.backing.back_a_head(&mut supply.segments)? {
        return Ok(id);
    }
    match (supply.take_segment(Usage::Tree, purpose), best) {
        (Ok(id), _) => Ok(id),
        (Err(_), Some((_, id))) => Ok(id),
        (Err(error), None) => Err(error),
    }
}
