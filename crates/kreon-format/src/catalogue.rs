//! The catalogue: all durable metadata besides pages and log.

use kreon_base::{
    Epoch, Incarnation, LogId, Lsn, PAGE_BYTES, PageNo, RegionId, RegionOptions, SegmentId,
};

use crate::PagePointer;

/// Most levels of one region.
pub const TREE_LEVELS_MAX: usize = 32;

/// The tree of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TreeRecord {
    /// The root; `None` for an empty tree.
    pub root: Option<PagePointer>,
    /// 0: empty; 1: the root is a leaf; each level of index nodes adds one.
    pub height: u8,
    /// Entries in the leaves.
    pub entries: u64,
    /// Number of leaves.
    pub leaf_pages: u64,
    /// Number of index nodes.
    pub index_pages: u64,
}

impl TreeRecord {
    /// Size of the tree in bytes.
    pub fn bytes(&self) -> u64 {
        let pages = self.leaf_pages.saturating_add(self.index_pages);
        pages.saturating_mul(PAGE_BYTES as u64)
    }
}

/// A region and its levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRecord {
    /// Number of the region, below [`Catalogue::next_region`].
    pub id: RegionId,
    /// Name, at most [`REGION_NAME_BYTES_MAX`](kreon_base::REGION_NAME_BYTES_MAX) bytes.
    pub name: String,
    /// What it has of its own.
    pub options: RegionOptions,
    /// The log of its writes.
    pub log: LogId,
    /// The trees of L1, L2 and so on; at most [`TREE_LEVELS_MAX`].
    pub levels: Vec<TreeRecord>,
}

/// The segment at the tail of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSegment {
    /// The segment.
    pub segment: SegmentId,
    /// Its sequence.
    pub sequence: u64,
}

/// The position where an incarnation continued the log of an earlier one. The bytes from `end` to `resume` belong to no
/// record; replay skips them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogResume {
    /// End of the records of the earlier incarnation.
    pub end: Lsn,
    /// Start of the records of the new incarnation, at a page boundary.
    pub resume: Lsn,
    /// The new incarnation.
    pub incarnation: Incarnation,
}

/// Consecutive pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The first page.
    pub first: PageNo,
    /// Number of pages.
    pub count: u32,
}

/// Each page of `runs`.
pub fn pages_of(runs: &[PageRun]) -> impl Iterator<Item = PageNo> {
    runs.iter()
        .flat_map(|run| (run.first.0..run.first.0 + u64::from(run.count)).map(PageNo))
}

/// A part of an image of L0: the content of L0 that stems from one stretch of the log, so that an opening need not
/// replay that stretch. The log keeps all of these records.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImagePart {
    /// Start of the stretch. The part has the newest version before `end` of each key written from here on,
    pub start: Lsn,
    /// and before here, except keys that were written again before `needed`.
    pub end: Lsn,
    /// The log up to here was durable before the part was; the part is valid only together with it.
    pub needed: Lsn,
    /// One tree for each region with entries. The nodes are sealed for [`StoreId::of_image`](crate::StoreId::of_image).
    pub trees: Vec<(RegionId, TreeRecord)>,
    /// All pages of the trees.
    pub pages: Vec<PageRun>,
}

/// A log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Number of the log.
    pub id: LogId,
    /// The replay marker: all earlier writes are in the trees. Replay starts here, or at the end of the image.
    pub marker: Lsn,
    /// The incarnation that wrote the records before the first resume; those at the marker if there is none before it.
    pub incarnation: Incarnation,
    /// Positions where later incarnations continued the log, in order: all behind the marker, and those before it in
    /// log that is kept for the change feed.
    pub resumes: Vec<LogResume>,
    /// From here on every incarnation kept the log for a change feed, so all loads and drops of regions have notices. `None`:
    /// the last one did not.
    pub followed_from: Option<Lsn>,
    /// All earlier bytes were durable at the checkpoint.
    pub durable: Lsn,
    /// The segment being written; `None` if the log has no segment yet.
    pub open: Option<OpenSegment>,
    /// The segment reserved as its successor.
    pub next: Option<SegmentId>,
    /// The image of the L0s of this log, or empty: consecutive parts, the first of which starts at or before the
    /// marker. All parts end behind the marker.
    pub image: Vec<ImagePart>,
}

impl LogRecord {
    /// Start of a replay that uses the image.
    pub fn replay_start(&self) -> Lsn {
        self.image.last().map_or(self.marker, |part| part.end)
    }

    /// The incarnation that wrote the records at the marker; none after it wrote before the marker.
    pub fn incarnation_at_marker(&self) -> Incarnation {
        let is_passed = |resume: &&LogResume| resume.resume <= self.marker;
        let passed = self.resumes.iter().take_while(is_passed).last();
        passed.map_or(self.incarnation, |resume| resume.incarnation)
    }
}

/// The durable copy of a group's bitmap block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPointer {
    /// Number of the copy, 0 or 1.
    pub copy: u8,
    /// The epoch whose checkpoint wrote it.
    pub epoch: Epoch,
    /// Its checksum.
    pub checksum: u32,
}

/// All durable metadata besides pages and log. It is encoded as one stream of bytes in a chain of pages, which each
/// checkpoint writes anew. If there are many regions, they are in pages of their own that the stream points to, and a
/// checkpoint rewrites only the pages with changed regions.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// Number of the next new region.
    pub next_region: RegionId,
    /// The regions in the stream; all regions after the whole catalogue was read.
    pub regions: Vec<RegionRecord>,
    /// Pages with further regions, for [`decode_region_page`](crate::decode_region_page).
    pub region_pages: Vec<PagePointer>,
    /// All logs.
    pub logs: Vec<LogRecord>,
    /// Pointers to the bitmap blocks, by group number.
    pub groups: Vec<GroupPointer>,
}
