//! Merge of adjacent trees of a region into one, beside spills.
//!
//! The entries of the upper trees are merged into the lowest one by the partial merge that spills use, too. If the first
//! tree is among them, spills go into an empty tree on top meanwhile. The merge holds a lock on its trees and no view:
//! their pages are retired only when they leave the levels, by the merge itself or by a drop of the region, which waits
//! for the merge. So a long merge does not keep the pages of other trees from being reclaimed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

use kreon_base::{Error, ErrorKind, LogOffset, Lsn, PageNo, RegionId, Result, SegmentId, planted};
use kreon_format::TreeRecord;
use kreon_sync::RankedGuard;

use super::super::counts::PageCounts;
use super::super::ground::Ground;
use super::super::spill::Spiller;
use super::overlay::{Overlay, Upper};
use crate::events::Event;
use crate::level::{Levels, MappedNodes, View};
use crate::spill::sink::FreshNodes;
use crate::spill::{LEAF_FILL, Notes, Spilled};
use crate::tree::{self, Cursor, MergeRules};
use crate::tree_locks::TreeLock;
use crate::versions::TREES_MAX;
use kreon_volume::PageRuns;
use std::sync::Arc;

/// Most spills before a merge of trees that are hidden from some readers is put off.
const SPILLS_MAX: usize = 3;

/// Each merge of small trees takes in what was spilled during the one before. After so many, one holds spills up: it
/// has little left to do.
const ROUNDS_BESIDE_SPILLS: usize = 2;

/// Most merges of one region in a row, so that other regions get their turn and a load returns beside writers.
const ROUNDS_MAX: usize = 8;

/// Trees that are to become one, upper first.
pub struct Job {
    region: RegionId,
    trees: Vec<TreeRecord>,
    /// For each tree the position up to which readers do not see it.
    hidden_up_to: Vec<Lsn>,
    /// Level of the first of them, 1 for L1.
    level: u8,
    /// Nothing is beneath them.
    is_last: bool,
    /// The first one takes spills.
    has_first: bool,
    /// Every entry is written anew, that of the lowest tree, too.
    is_whole: bool,
    /// Spills wait for the end of this merge.
    holds_spills_up: bool,
}

/// A tree that takes the place of others.
struct Merged<'a> {
    record: TreeRecord,
    pages: PageRuns<'a>,
    dropped: Vec<PageNo>,
    charges: BTreeMap<SegmentId, i64>,
    dead: Vec<LogOffset>,
}

/// Outcome of a step of [`Merger::merge_region`].
enum Step {
    /// There is nothing to merge.
    Idle,
    /// Trees became one.
    Merged,
    /// Everything must be spilled first.
    Spill,
}

impl Job {
    /// The trees of `region` in `range`.
    fn new(view: &View, region: RegionId, range: Range<usize>) -> Option<Self> {
        let all = view.levels.of(region);
        let trees = all.get(range.clone())?.to_vec();
        let hidden_up_to = trees.iter().map(|tree| view.levels.hidden_up_to(tree));
        let is_last = range.end == all.len();
        planted!(DeletionsDroppedEarly => let is_last = true);
        Some(Self {
            region,
            hidden_up_to: hidden_up_to.collect(),
            level: range.start as u8 + 1,
            is_last,
            has_first: range.start == 0,
            is_whole: false,
            holds_spills_up: false,
            trees,
        })
    }

    /// All trees of `region`; each entry is written anew.
    pub fn of_all(view: &View, region: RegionId) -> Option<Self> {
        let trees = view.levels.of(region);
        let first = trees.iter().position(|tree| tree.root.is_some())?;
        let job = Self::new(view, region, first..trees.len())?;
        Some(Self {
            is_whole: true,
            ..job
        })
    }

    /// The position up to which some readers do not see some of them.
    pub fn hidden_up_to(&self) -> Lsn {
        self.hidden_up_to.iter().copied().max().unwrap_or_default()
    }

    fn roots(&self) -> BTreeSet<PageNo> {
        let roots = self.trees.iter().filter_map(|tree| tree.root);
        roots.map(|root| root.page).collect()
    }

    fn bytes(&self) -> u64 {
        self.trees.iter().map(TreeRecord::bytes).sum()
    }
}

/// Merges trees of regions. Several threads may, each other trees.
pub struct Merger {
    on: Ground,
    spiller: Arc<Spiller>,
    /// What merges did.
    pub counts: PageCounts,
}

impl Merger {
    /// Nothing was merged yet.
    pub fn new(on: &Ground, spiller: &Arc<Spiller>) -> Self {
        Self {
            on: on.clone(),
            spiller: Arc::clone(spiller),
            counts: PageCounts::default(),
        }
    }

    /// Merges what is due in any region that no other thread drops meanwhile.
    ///
    /// # Errors
    /// Those of a spill, the first of any region; what was not merged stays as it is.
    pub fn merge_due(&self) -> Result<()> {
        let view = self.on.storage.views.load_full();
        let due = self.on.versions.due_regions(&view);
        drop(view);
        let mut outcome = Ok(());
        for region in due {
            let merged = match self.merge_region(region) {
                // Of the region, which is being dropped, or of the store.
                Err(error) if error.kind() == ErrorKind::Closed => self.on.storage.check_writable(),
                merged => merged,
            };
            outcome = outcome.and(merged);
        }
        outcome
    }

    /// Merges trees of `region` while any are due that no other thread merges, a few times at most.
    ///
    /// # Errors
    /// Those of a spill; what was not merged stays as it is.
    pub fn merge_region(&self, region: RegionId) -> Result<()> {
        let (mut spills, mut rounds) = (0, 0);
        while rounds < ROUNDS_MAX {
            match self.merge_step(region, rounds)? {
                Step::Idle => return self.on.versions.reclaim(),
                Step::Merged => {
                    rounds += 1;
                    self.on.versions.reclaim()?;
                }
                Step::Spill if spills == SPILLS_MAX => return Ok(()),
                Step::Spill => {
                    spills += 1;
                    self.spiller.checkpoint()?;
                }
            }
        }
        Ok(())
    }

    /// The merge that is due next, after so many `rounds`.
    fn merge_step(&self, region: RegionId, rounds: usize) -> Result<Step> {
        let changes = self.on.versions.lock_changes();
        self.on.storage.check_writable()?;
        // A thread that waits for all trees of the region goes first.
        if !self.on.tree_locks.lets_merge(region) {
            return Ok(Step::Idle);
        }
        self.on.versions.tidy(region);
        let view = self.on.storage.views.load_full();
        let due = self
            .on
            .versions
            .scale(region)
            .next_merge(&self.on.versions.sizes(&view, region));
        let Some(mut job) = due.and_then(|range| Job::new(&view, region, range)) else {
            return Ok(Step::Idle);
        };
        if !self.is_spilled_up_to(job.hidden_up_to()) {
            return Ok(Step::Spill);
        }
        let Some(hold) = self.on.tree_locks.try_take(region, job.roots()) else {
            return Ok(Step::Idle);
        };
        // Were a merge to fail, as those before it, the next spill would have made one tree more.
        let is_crowded = view.levels.of(region).len() >= TREES_MAX;
        let is_short =
            rounds >= ROUNDS_BESIDE_SPILLS && self.on.versions.scale(region).is_short(job.bytes());
        job.holds_spills_up = job.has_first && (is_crowded || is_short);
        drop(view);
        self.run_merge(&job, &hold, changes, &mut |_| ())?;
        Ok(Step::Merged)
    }

    /// Merges, and puts the tree in the place of the others; false: they changed meanwhile, and stay. The caller has
    /// `hold` of them. `seen` is told how many entries were merged since the call before.
    pub fn run_merge(
        &self,
        job: &Job,
        hold: &TreeLock<'_>,
        changes: RankedGuard<'_, ()>,
        seen: &mut dyn FnMut(u64),
    ) -> Result<bool> {
        let storage = &self.on.storage;
        let region = self.on.regions.of(job.region);
        let region = region.map_or_else(|| "".into(), |region| Arc::clone(&region.name));
        let (level, levels, bytes) = (job.level, job.trees.len(), job.bytes());
        let _span = tracing::debug_span!("merge", %region, level, levels).entered();
        let begun = Instant::now();
        storage.tell(&Event::MergeBegan {
            region: Arc::clone(&region),
            level,
            levels,
            bytes,
        });
        let outcome = self.merge(job, hold, changes, seen);
        let (pages_read, pages_written) = outcome
            .as_ref()
            .map_or((0, 0), |pages| pages.unwrap_or_default());
        storage.tell(&Event::MergeEnded {
            region,
            level,
            pages_read,
            pages_written,
            took: begun.elapsed(),
            error: outcome.as_ref().err().cloned(),
        });
        outcome.map(|pages| pages.is_some())
    }

    /// Returns the numbers of pages that were taken apart and written; `None`: the trees stay.
    fn merge(
        &self,
        job: &Job,
        hold: &TreeLock<'_>,
        changes: RankedGuard<'_, ()>,
        seen: &mut dyn FnMut(u64),
    ) -> Result<Option<(u64, u64)>> {
        let mut changes = Some(changes);
        hold.begin_merge();
        if !job.holds_spills_up {
            if job.has_first {
                self.on.versions.put_empty_tree_on(job.region);
            }
            changes = None;
        }
        let merged = self.build(job, hold, seen).and_then(|merged| {
            let changes = changes.unwrap_or_else(|| self.on.versions.lock_changes());
            self.on.storage.check_writable()?;
            hold.check()?;
            self.install(job, merged).inspect(|_| drop(changes))
        });
        if hold.is_invalidated()
            && merged
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::Closed)
        {
            return self.on.storage.check_writable().map(|()| None);
        }
        merged.inspect_err(|error| {
            // A tree that does not verify harms only its readers; a failed write poisons the store.
            if error.kind() == ErrorKind::Io {
                self.on.storage.poison.set(error);
            }
        })
    }

    fn install(&self, job: &Job, merged: Merged<'_>) -> Result<Option<(u64, u64)>> {
        let mut levels = Levels::clone(&self.on.storage.views.load().levels);
        let mut trees = levels.of(job.region).to_vec();
        let count = job.trees.len();
        let Some(at) = trees.windows(count).position(|window| window == job.trees) else {
            // A spill took a range out of them meanwhile: what was merged has it still.
            return Ok(None);
        };
        trees.splice(at..at + count, [merged.record]);
        levels.set(job.region, trees);
        let change = Spilled {
            levels,
            kept: merged.pages.finish()?,
            dropped: merged.dropped,
            charges: merged.charges,
            dead: merged.dead,
        };
        let (written, read) = (change.kept.len(), change.dropped.len());
        self.on.versions.install(change, |_| {}, true)?;
        self.counts.count(read, written);
        self.on.versions.tidy(job.region);
        Ok(Some((read as u64, written as u64)))
    }

    /// Whether everything before `position` is in the levels. A merge gives the entries of a hidden tree the
    /// position up to which it is hidden: what was written before that and still is in L0 could not be
    /// spilled over them.
    pub fn is_spilled_up_to(&self, position: Lsn) -> bool {
        let marker = self.on.storage.ledger.lock().marker;
        position == Lsn(0) || marker > position || self.on.versions.quiet_tail().is_some()
    }

    fn build<'a>(
        &'a self,
        job: &Job,
        hold: &TreeLock<'_>,
        seen: &mut dyn FnMut(u64),
    ) -> Result<Merged<'a>> {
        let storage = &self.on.storage;
        // Snapshots that open from now on see all that is in the trees.
        let snapshots = self.on.visibility.snapshots.list();
        let expired_by = Some(self.on.visibility.horizon());
        let levels = (job.level..).take(job.trees.len());
        let nodes: Vec<MappedNodes<'_>> = levels
            .map(|level| storage.nodes_of_level(job.region, level))
            .collect();
        let (Some((lowest, others)), Some(source)) = (job.trees.split_last(), nodes.last()) else {
            return Err(Error::invalid("nothing to merge"));
        };
        // Entries of a hidden tree need its position, so all of them are written anew.
        let is_hidden = job.hidden_up_to.last().is_some_and(|last| *last > Lsn(0));
        let (lower, above) = match is_hidden || job.is_whole {
            false => (*lowest, others),
            true => (TreeRecord::default(), job.trees.as_slice()),
        };
        let (mut uppers, mut notes) = (Vec::new(), Notes::new(storage));
        for ((tree, nodes), hidden_up_to) in above.iter().zip(&nodes).zip(&job.hidden_up_to) {
            notes.dropped.extend(tree::pages(nodes, tree)?);
            uppers.push(Upper::new(Cursor::new(nodes, tree), *hidden_up_to)?);
        }
        let mut input = Overlay::new(storage, hold, uppers, seen);
        let (allocator, mapping) = (&storage.allocator, &storage.mapping);
        let mut pages = match job.is_whole {
            true => PageRuns::packed(allocator, mapping),
            false => PageRuns::new(allocator, mapping),
        };
        let epoch = storage.ledger.lock().epoch.next();
        let level = job.level + u8::from(job.has_first);
        let mut sink = FreshNodes::new(storage, &mut pages, (epoch, job.region, level));
        let rules = MergeRules {
            snapshots: &snapshots,
            expired_by,
            last_level: job.is_last,
            filter_bits_per_key: storage.options.filter_bits_per_key,
            fill: LEAF_FILL,
            rewrites_all: false,
        };
        let record = tree::merge(source, &mut sink, &lower, &mut input, &rules, &mut notes)?;
        let mut charges = input.finish();
        charges.add_all(notes.charges);
        Ok(Merged {
            record,
            pages,
            dropped: notes.dropped,
            charges: charges.finish(),
            dead: notes.dead,
        })
    }
}
