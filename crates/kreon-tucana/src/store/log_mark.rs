//! A position of the log as a commit records it.

use kreon_base::{Incarnation, Lsn, RegionId};
use kreon_format::OpenSegment;

/// What nodes and records name for their region. They are those of all regions of the store, whose numbers stand in the keys.
pub(super) const REGION: RegionId = RegionId(1);

/// Where a replay begins that follows a state of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogMark {
    /// All earlier records are in the tree, and none behind it.
    pub marker: Lsn,
    /// The segment that takes records there: dead segments with smaller numbers are not needed.
    pub open: OpenSegment,
    /// The opening that wrote the log behind it.
    pub incarnation: Incarnation,
    /// Segments of moved records with smaller numbers took their last record before it.
    pub moved_from: u64,
}
