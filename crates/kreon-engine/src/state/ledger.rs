//! What the last checkpoint recorded, beside the allocator's bitmap.

use std::collections::BTreeMap;

use kreon_base::{Epoch, Incarnation, Lsn, PageNo, RegionId};
use kreon_format::ImagePart;

/// A region that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    /// Its name, unique among those that exist.
    pub name: String,
}

/// The durable state's bookkeeping. Its lock is held for a whole checkpoint: checkpoints do not
/// overlap.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The durable epoch.
    pub epoch: Epoch,
    /// This run's number.
    pub incarnation: Incarnation,
    /// The number that the next region gets.
    pub next_region: RegionId,
    /// The regions that exist.
    pub regions: BTreeMap<RegionId, RegionEntry>,
    /// Every write before is in the levels: replay starts here, or where the image ends.
    pub marker: Lsn,
    /// Every moved record before is in the levels, or nothing points at it. In memory alone: no run knows which
    /// records the one before it had moved and not spilled.
    pub moved_marker: Lsn,
    /// The image of L0 and L0', as far as there is one.
    pub image: Vec<ImagePart>,
    /// The one that this run found could not be read.
    pub found_damaged_image: bool,
    /// Pages of the durable catalogue.
    pub catalogue_pages: Vec<PageNo>,
    /// From where on loads under way have records in the log that no tree points at yet, by region. In
    /// memory alone: a load does not outlive its run.
    pub loads: BTreeMap<RegionId, Lsn>,
}

impl Ledger {
    /// Moves the replay marker to `position`, if there is one and it lies further on.
    pub fn advance(&mut self, position: Option<Lsn>) {
        self.marker = position.map_or(self.marker, |position| position.max(self.marker));
    }

    /// Log segments before this that have no live byte can be freed.
    pub fn log_needed_from(&self) -> Lsn {
        let loads = self.loads.values().copied().min();
        loads.map_or(self.marker, |from| from.min(self.marker))
    }
}

impl Ledger {
    /// Where a replay would start.
    pub fn replay_start(&self) -> Lsn {
        self.image.last().map_or(self.marker, |part| part.end)
    }
}
