//! The catalogue: everything that a checkpoint makes durable besides pages and log.

use kreon_base::{Epoch, Incarnation, LogId, Lsn, RegionId, SegmentId};

use crate::PagePointer;

/// Most levels of one region.
pub const TREE_LEVELS_MAX: usize = 32;

/// The tree of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TreeRecord {
    /// The root; none: the tree is empty.
    pub root: Option<PagePointer>,
    /// 0: empty; 1: the root is a leaf; one more for each floor of index nodes.
    pub height: u8,
    /// Entries in its leaves.
    pub entries: u64,
    /// Pages of its leaves.
    pub leaf_pages: u64,
    /// Pages of its index nodes.
    pub index_pages: u64,
}

/// A region and its levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRecord {
    /// Its number, below [`Catalogue::next_region`].
    pub id: RegionId,
    /// Its name, at most [`REGION_NAME_BYTES_MAX`](kreon_base::REGION_NAME_BYTES_MAX) bytes.
    pub name: String,
    /// The log that its writes go to.
    pub log: LogId,
    /// L1, L2...; at most [`TREE_LEVELS_MAX`].
    pub levels: Vec<TreeRecord>,
}

/// The segment that a log is being written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSegment {
    /// Where it is.
    pub segment: SegmentId,
    /// Its place in the log.
    pub sequence: u64,
}

/// Where a run of the store took up a log that an earlier run had left. The bytes from `end` to
/// `resume` are nobody's: replay skips them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogResume {
    /// The records of the earlier run end here.
    pub end: Lsn,
    /// The records of the new run start here, at a page border.
    pub resume: Lsn,
    /// The new run.
    pub incarnation: Incarnation,
}

/// A log group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its number.
    pub id: LogId,
    /// Replay starts here.
    pub marker: Lsn,
    /// The run of the store whose records stand at the marker.
    pub incarnation: Incarnation,
    /// Where later runs took it up, in order, none before the marker.
    pub resumes: Vec<LogResume>,
    /// Everything before this was durable at the checkpoint.
    pub durable: Lsn,
    /// The segment being written; none: the log has no segment yet.
    pub open: Option<OpenSegment>,
    /// The segment reserved to follow it.
    pub next: Option<SegmentId>,
}

/// Which copy of a group's bitmap block is the durable one, and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPointer {
    /// 0 or 1.
    pub copy: u8,
    /// The epoch that wrote it.
    pub epoch: Epoch,
    /// Its checksum.
    pub checksum: u32,
}

/// Everything that a checkpoint makes durable besides pages and log. Encoded, it is one stream of
/// bytes in a chain of pages that each checkpoint writes anew.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// The number that the next new region gets.
    pub next_region: RegionId,
    /// All regions.
    pub regions: Vec<RegionRecord>,
    /// All log groups.
    pub logs: Vec<LogRecord>,
    /// The bitmap block of each group, by group number.
    pub groups: Vec<GroupPointer>,
}
