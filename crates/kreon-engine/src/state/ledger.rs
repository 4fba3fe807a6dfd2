//! What the last checkpoint recorded, beside the allocator's bitmap.

use std::collections::BTreeMap;

use kreon_base::{Epoch, Incarnation, Lsn, PageNo, RegionId};

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
    /// Replay starts here: every write before is in the levels.
    pub marker: Lsn,
    /// Pages of the durable catalogue.
    pub catalogue_pages: Vec<PageNo>,
}
