//! Many trees of a region to one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Lsn, PageNo, RegionId, Result, SegmentId};
use kreon_format::TreeRecord;

use super::overlay::{Overlay, Upper};
use crate::engine::core::Core;
use crate::level::{Levels, MappedNodes, View};
use crate::spill::charges::Charges;
use crate::spill::sink::FreshNodes;
use crate::spill::{LEAF_FILL, Spilled};
use crate::tree::{self, Changes, Cursor, MergeRules, Reference};
use crate::volume::PageRuns;

/// Each round folds what was spilled during the one before. The last one holds spills up: it has little
/// left to do.
const ROUNDS_MAX: usize = 3;

/// A region has at most so many trees when a load begins, and folds that fail again and again make no more of
/// them: far from what a catalogue can hold.
pub const TREES_MAX: usize = 12;

/// How long folds that fail, for lack of space perhaps, are left alone.
#[derive(Default)]
pub struct FoldPause {
    until: Option<Instant>,
    pause: Duration,
}

impl FoldPause {
    /// Whether it is time to try again.
    pub fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Twice as long after every failure, up to a minute.
    pub fn after(&mut self, outcome: &Result<()>) {
        let Err(error) = outcome else {
            *self = Self::default();
            return;
        };
        if error.kind() != ErrorKind::Closed {
            tracing::warn!(%error, "trees of a region could not be folded");
        }
        let pause = self.pause.max(Duration::from_millis(500)) * 2;
        self.pause = pause.min(Duration::from_secs(60));
        self.until = Some(Instant::now() + self.pause);
    }
}

/// A tree that takes the place of others.
struct Folded<'a> {
    record: TreeRecord,
    pages: PageRuns<'a>,
    dropped: Vec<PageNo>,
    charges: BTreeMap<SegmentId, i64>,
}

impl Core {
    /// Makes the trees of every region one, where nobody builds on them.
    ///
    /// # Errors
    /// Those of a spill, the first of any region; what was not folded stays as it is.
    pub fn fold_all(&self) -> Result<()> {
        let view = self.parts.views.load_full();
        let regions = view.levels.regions();
        let due: Vec<_> = regions
            .filter_map(|(region, trees)| (trees.len() > 1).then_some(region))
            .collect();
        drop(view);
        let mut outcome = Ok(());
        for region in due {
            if let Some(_hold) = self.holds.try_take_for_fold(region) {
                outcome = outcome.and(self.fold_held(region));
            }
        }
        outcome
    }

    /// Makes the trees of a region one; the caller holds it.
    pub fn fold_held(&self, region: RegionId) -> Result<()> {
        let upkeep = self.upkeep.lock();
        self.tidy(region);
        drop(upkeep);
        if !self.is_spilled_up_to(self.hidden_up_to(region)) {
            self.checkpoint()?;
        }
        for round in 1..=ROUNDS_MAX {
            let folded = self.fold_round(region, round == ROUNDS_MAX);
            let is_over = folded.inspect_err(|error| {
                // A tree that does not verify harms nobody who does not read it; a failed write does.
                if error.kind() == ErrorKind::Io {
                    self.parts.poison.set(error);
                }
            })?;
            if is_over {
                break;
            }
        }
        self.give_back()
    }

    /// Folds the trees that there are now; true if there is nothing to fold.
    fn fold_round(&self, region: RegionId, holds_spills_up: bool) -> Result<bool> {
        let mut upkeep = Some(self.upkeep.lock());
        self.check_writable()?;
        self.tidy(region);
        let view = self.parts.views.load_full();
        let trees = view.levels.of(region);
        let first = trees.iter().position(|tree| tree.root.is_some());
        let trees = trees
            .get(first.unwrap_or(trees.len())..)
            .unwrap_or_default();
        if trees.len() < 2 || !self.is_spilled_up_to(self.hidden_up_to(region)) {
            return Ok(true);
        }
        // Were this fold to fail, as those before it, the next spill would have made one tree more.
        let is_crowded = view.levels.of(region).len() >= TREES_MAX;
        if !holds_spills_up && !is_crowded {
            self.put_empty_tree_on(region);
            upkeep = None;
        }
        let folded = self.build_fold(region, &view, trees)?;
        let _upkeep = upkeep.unwrap_or_else(|| self.upkeep.lock());
        self.check_writable()?;
        let mut levels = Levels::clone(&self.parts.views.load().levels);
        let Some(above) = levels.of(region).strip_suffix(trees) else {
            // The region was dropped.
            return Ok(true);
        };
        levels.set(region, [above, &[folded.record]].concat());
        let change = Spilled {
            levels,
            kept: folded.pages.finish()?,
            dropped: folded.dropped,
            charges: folded.charges,
        };
        self.commit_spill(change, |_| {}, true)?;
        self.tidy(region);
        Ok(false)
    }

    /// The highest position up to which readers do not see some tree of `region`.
    fn hidden_up_to(&self, region: RegionId) -> Lsn {
        let view = self.parts.views.load();
        let hidden = |tree| view.levels.hidden_up_to(tree);
        let trees = view.levels.of(region).iter();
        trees.map(hidden).max().unwrap_or_default()
    }

    /// Whether everything before `position` is in the levels. A fold gives the entries of a hidden tree the
    /// position up to which it is hidden: what was written before that and still is in L0 could not be
    /// spilled over them.
    fn is_spilled_up_to(&self, position: Lsn) -> bool {
        let marker = self.parts.ledger.lock().marker;
        position == Lsn(0) || marker > position || self.quiet_tail().is_some()
    }

    fn build_fold<'a>(
        &'a self,
        region: RegionId,
        view: &View,
        trees: &[TreeRecord],
    ) -> Result<Folded<'a>> {
        let parts = &self.parts;
        // Snapshots that open from now on see all that is in the trees.
        let snapshots = self.snapshots.list();
        let nodes: Vec<MappedNodes<'_>> = (1..=trees.len())
            .map(|level| self.nodes_of_level(region, level as u8))
            .collect();
        let (Some((lowest, others)), Some(source)) = (trees.split_last(), nodes.last()) else {
            return Err(Error::invalid("nothing to fold"));
        };
        // Entries of a hidden tree need its position, so all of them are written anew.
        let (lower, above) = match view.levels.hidden_up_to(lowest) {
            Lsn(0) => (*lowest, others),
            _ => (TreeRecord::default(), trees),
        };
        let (mut uppers, mut dropped) = (Vec::new(), Vec::new());
        for (tree, nodes) in above.iter().zip(&nodes) {
            dropped.extend(tree::pages(nodes, tree)?);
            let hidden_up_to = view.levels.hidden_up_to(tree);
            uppers.push(Upper::new(Cursor::new(nodes, tree), hidden_up_to)?);
        }
        let mut input = Overlay::new(self, uppers);
        let mut pages = PageRuns::new(&parts.allocator, &parts.mapping);
        let epoch = parts.ledger.lock().epoch.next();
        let what = (parts.store, epoch, region, 1);
        let mut sink = FreshNodes::new(&parts.mapping, &mut pages, what);
        let rules = MergeRules {
            snapshots: &snapshots,
            last_level: true,
            fill: LEAF_FILL,
        };
        let mut changed = Changed {
            charges: Charges::new(&parts.log),
            dropped,
        };
        let record = tree::merge(source, &mut sink, &lower, &mut input, &rules, &mut changed)?;
        let mut charges = changed.charges.finish();
        for (segment, bytes) in input.finish().finish() {
            *charges.entry(segment).or_insert(0) += bytes;
        }
        Ok(Folded {
            record,
            pages,
            dropped: changed.dropped,
            charges,
        })
    }

    /// Puts an empty tree on top of those of `region`, for spills, unless there is one. Returns how many are
    /// beneath it: at least one, or spills would take the first for the last and drop deletions, which a
    /// load needs. The caller holds `upkeep`.
    pub fn put_empty_tree_on(&self, region: RegionId) -> usize {
        let view = self.parts.views.load_full();
        let mut trees = view.levels.of(region).to_vec();
        if trees.is_empty() {
            trees.push(TreeRecord::default());
        }
        let is_covered = trees.len() > 1 && trees.first().is_some_and(|tree| tree.root.is_none());
        if !is_covered {
            trees.insert(0, TreeRecord::default());
        }
        let beneath = trees.len() - 1;
        let mut levels = Levels::clone(&view.levels);
        levels.set(region, trees);
        self.change_levels(levels);
        beneath
    }

    /// Takes out empty trees, and lets everybody see trees that no open snapshot must not see. The caller
    /// holds `upkeep` and the region.
    pub fn tidy(&self, region: RegionId) {
        let view = self.parts.views.load_full();
        let oldest = self.snapshots.list().first().copied();
        let mut levels = Levels::clone(&view.levels);
        let old = view.levels.of(region);
        if old.is_empty() {
            return;
        }
        for tree in old {
            let hidden_up_to = levels.hidden_up_to(tree);
            // One that is hidden from everybody is not told to anybody yet.
            let is_told = hidden_up_to < Lsn::MAX;
            if is_told && oldest.is_none_or(|oldest| oldest > hidden_up_to) {
                levels.show(tree);
            }
        }
        let full = old.iter().filter(|tree| tree.root.is_some());
        let mut trees: Vec<_> = full.copied().collect();
        let is_first_hidden = |first| levels.hidden_up_to(first) > Lsn(0);
        if trees.first().is_some_and(is_first_hidden) {
            // A spill must not go into it.
            trees.insert(0, TreeRecord::default());
        }
        levels.set(region, trees);
        self.change_levels(levels);
    }

    fn change_levels(&self, levels: Levels) {
        let levels = Arc::new(levels);
        self.parts
            .views
            .change(|view| (Arc::clone(&view.active), view.frozen.clone(), levels));
    }
}

/// Collects what the merge reports.
struct Changed<'a> {
    charges: Charges<'a>,
    dropped: Vec<PageNo>,
}

impl Changes for Changed<'_> {
    fn freed(&mut self, page: PageNo) {
        self.dropped.push(page);
    }

    fn referenced(&mut self, record: Reference) {
        self.charges.add(&record);
    }

    fn dropped(&mut self, record: Reference) {
        self.charges.drop(&record);
    }
}
