//! The spill of a whole L0.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon_base::{Epoch, LogOffset, Lsn, PageNo, RegionId, Result, SegmentId, Timestamp, planted};
use kreon_format::TreeRecord;

use super::erase::replace;
use super::notes::Notes;
use super::progress::Progress;
use super::sink::FreshNodes;
use super::stream::{RegionStream, regions_of};
use super::workers::spill_in_parts;
use crate::level::{Frozen, Levels, MappedNodes};
use crate::ranges::RegionRanges;
use crate::state::Storage;
use crate::tree::{self, Cut, MergeRules};
use kreon_volume::PageRuns;

/// Fill goal of leaves. Plain splits would leave them 0.7 full; packing saves about 30 % of a spill's leaf bytes.
pub const LEAF_FILL: f32 = 0.95;

/// Trees with fewer leaves than this are merged by one worker.
const PARTS_LEAVES_MIN: u64 = 256;

/// Parts of a tree per worker: more than one, to even out the different times of parts.
const PARTS_PER_WORKER: usize = 8;

/// Parameters of a spill.
pub struct Orders<'a> {
    /// Whether a region exists; entries of dropped regions are skipped.
    pub exists: &'a (dyn Fn(RegionId) -> bool + Sync),
    /// The open snapshots, ascending; the spill keeps the versions that they see.
    pub snapshots: &'a [Lsn],
    /// Values that end by then have ended for them and for all later readers.
    pub expired_by: Timestamp,
    /// Filter bits per key for fresh leaves.
    pub filter_bits_per_key: usize,
    /// Merging threads, including the caller's. With one, the spill is deterministic.
    pub workers: usize,
    /// Rewrite L1 completely.
    pub rewrites_all: bool,
    /// Receives the progress.
    pub progress: &'a Progress,
}

/// The result of a spill, not yet durable or visible.
pub struct Spilled {
    /// The new levels.
    pub levels: Levels,
    /// Fresh pages, all written to the mapping.
    pub kept: Vec<PageNo>,
    /// Pages of the old levels that the new levels do not reach.
    pub dropped: Vec<PageNo>,
    /// Change of live bytes by log segment.
    pub charges: BTreeMap<SegmentId, i64>,
    /// Records that no tree points at any more, as far as known.
    pub dead: Vec<LogOffset>,
}

impl Spilled {
    /// The result without any change of pages or live bytes.
    pub fn nothing(levels: Levels) -> Self {
        Self {
            levels,
            kept: Vec::new(),
            dropped: Vec::new(),
            charges: BTreeMap::new(),
            dead: Vec::new(),
        }
    }
}

/// One region of a spill.
pub(super) struct RegionSpill<'a> {
    pub storage: &'a Storage,
    pub frozen: &'a Frozen,
    pub orders: &'a Orders<'a>,
    pub rules: MergeRules<'a>,
    pub epoch: Epoch,
    pub region: RegionId,
    /// Its deleted ranges in this region.
    pub ranges: Option<Arc<RegionRanges>>,
}

/// Spills `frozen` into the first tree of each region of `levels`.
///
/// # Errors
/// `OutOfSpace`, `Corruption`, `Io`; all fresh pages are released.
pub fn spill(
    storage: &Storage,
    frozen: &Frozen,
    levels: &Levels,
    orders: &Orders<'_>,
) -> Result<Spilled> {
    let epoch = storage.ledger.lock().epoch.next();
    let mut changed = Changed::new(storage);
    let mut levels = levels.clone();
    let ranges = frozen.l0.ranges();
    let mut regions: BTreeSet<_> = regions_of(frozen.l0.cursor()).into_iter().collect();
    regions.extend(ranges.regions());
    for region in regions {
        if !(orders.exists)(region) {
            continue;
        }
        let mut trees = levels.of(region).to_vec();
        if trees.is_empty() {
            trees.push(TreeRecord::default());
        }
        let rules = MergeRules {
            snapshots: orders.snapshots,
            expired_by: Some(orders.expired_by),
            last_level: trees.len() == 1,
            fill: LEAF_FILL,
            rewrites_all: orders.rewrites_all,
            filter_bits_per_key: orders.filter_bits_per_key,
        };
        let deleted = ranges.of(region).cloned();
        planted!(RangeIgnoredBySpill => let deleted = None);
        let spill = RegionSpill {
            storage,
            frozen,
            orders,
            rules,
            epoch,
            region,
            ranges: deleted,
        };
        if let Some((first, others)) = trees.split_first_mut() {
            *first = spill.run(first, &mut changed)?;
            spill.erase(others, &mut changed)?;
        }
        replace(&mut levels, region, trees);
    }
    changed.finish(levels)
}

impl<'a> RegionSpill<'a> {
    fn run(&self, tree: &TreeRecord, changed: &mut Changed<'a>) -> Result<TreeRecord> {
        let workers = self.orders.workers;
        if workers > 1 && tree.leaf_pages >= PARTS_LEAVES_MIN {
            let wanted = workers * PARTS_PER_WORKER;
            if let Some(cut) = Cut::new(&self.source(1), tree, wanted)? {
                return spill_in_parts(self, tree, &cut, changed);
            }
        }
        let mut input = self.input((None, None));
        let mut sink = self.sink(&mut changed.pages, 1);
        let (source, rules, notes) = (self.source(1), &self.rules, &mut changed.notes);
        tree::merge(&source, &mut sink, tree, &mut input, rules, notes)
    }

    /// The reader of old nodes of a level.
    pub fn source(&self, level: u8) -> MappedNodes<'a> {
        self.storage.nodes_of_level(self.region, level)
    }

    /// The writer of fresh nodes of a level.
    pub fn sink<'p>(&self, pages: &'p mut PageRuns<'a>, level: u8) -> FreshNodes<'a, 'p> {
        FreshNodes::new(self.storage, pages, (self.epoch, self.region, level))
    }

    /// The entries with keys from the first bound up to, not including, the second.
    pub fn input(&self, keys: (Option<&[u8]>, Option<&[u8]>)) -> RegionStream<'a> {
        let cursor = self.frozen.l0.cursor();
        let ranges = self.ranges.clone();
        RegionStream::new(cursor, self.region, keys, ranges, self.orders.progress)
    }
}

/// The changes of one worker.
pub(super) struct Changed<'a> {
    pub pages: PageRuns<'a>,
    pub notes: Notes<'a>,
    /// Pages of other workers.
    kept: Vec<PageRuns<'a>>,
}

impl<'a> Changed<'a> {
    pub fn new(storage: &'a Storage) -> Self {
        Self {
            pages: PageRuns::new(&storage.allocator, &storage.mapping),
            notes: Notes::new(storage),
            kept: Vec::new(),
        }
    }

    /// Adds the changes of another worker.
    pub fn add(&mut self, other: Self) {
        self.kept.push(other.pages);
        self.kept.extend(other.kept);
        self.notes.add(other.notes);
    }

    fn finish(self, levels: Levels) -> Result<Spilled> {
        let mut kept = self.pages.finish()?;
        for pages in self.kept {
            kept.extend(pages.finish()?);
        }
        Ok(Spilled {
            levels,
            kept,
            dropped: self.notes.dropped,
            charges: self.notes.charges.finish(),
            dead: self.notes.dead,
        })
    }
}
