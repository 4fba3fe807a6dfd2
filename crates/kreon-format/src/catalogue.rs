//! The catalogue: everything that a checkpoint makes durable besides pages and log.

use kreon_base::{Epoch, Incarnation, LogId, Lsn, PAGE_BYTES, PageNo, RegionId, SegmentId};

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

impl TreeRecord {
    /// Its pages, in bytes.
    pub fn bytes(&self) -> u64 {
        let pages = self.leaf_pages.saturating_add(self.index_pages);
        pages.saturating_mul(PAGE_BYTES as u64)
    }
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

/// Consecutive pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The first.
    pub first: PageNo,
    /// How many.
    pub count: u32,
}

/// Each page of `runs`.
pub fn pages_of(runs: &[PageRun]) -> impl Iterator<Item = PageNo> {
    runs.iter()
        .flat_map(|run| (run.first.0..run.first.0 + u64::from(run.count)).map(PageNo))
}

/// A part of an image of L0: what L0 held of one stretch of the log, for an opening that does not want to
/// replay it. It replaces nothing: the log still has it all.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImagePart {
    /// It has the newest version before `end` of every key that was written from here on...
    pub start: Lsn,
    /// ... to here, but for keys that were written again before `needed`.
    pub end: Lsn,
    /// The log up to here belongs to it: it was durable before the part was.
    pub needed: Lsn,
    /// Trees, one for each region that has entries. Their nodes are sealed for
    /// [`StoreId::of_image`](crate::StoreId::of_image).
    pub trees: Vec<(RegionId, TreeRecord)>,
    /// All pages of the trees.
    pub pages: Vec<PageRun>,
}

/// A log group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its number.
    pub id: LogId,
    /// Everything before is in the levels: replay starts here, or where the image ends.
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
    /// The image of the L0s in front of this log: parts that follow one another from the marker, or from
    /// before it, on. All end behind the marker. Empty: there is none.
    pub image: Vec<ImagePart>,
}

impl LogRecord {
    /// Where a replay starts that takes the image.
    pub fn replay_start(&self) -> Lsn {
        self.image.last().map_or(self.marker, |part| part.end)
    }
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
/// bytes in a chain of pages that each checkpoint writes anew. Many regions stand in pages of their own, to which
/// the stream points: a checkpoint writes those anew whose regions have changed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// The number that the next new region gets.
    pub next_region: RegionId,
    /// The regions that stand in the stream; of a catalogue that was read as a whole, all.
    pub regions: Vec<RegionRecord>,
    /// Pages with further regions, each for
    /// [`decode_region_page`](crate::decode_region_page).
    pub region_pages: Vec<PagePointer>,
    /// All log groups.
    pub logs: Vec<LogRecord>,
    /// The bitmap block of each group, by group number.
    pub groups: Vec<GroupPointer>,
}
