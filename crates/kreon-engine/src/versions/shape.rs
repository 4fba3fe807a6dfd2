//! The list of a region's trees between merges: the empty tree on top that takes spills, and hidden trees that become
//! visible.

use std::sync::Arc;

use kreon_base::{Lsn, RegionId};
use kreon_format::TreeRecord;

use super::Versions;
use crate::level::scale::{Scale, Tree};
use crate::level::{Levels, View};

/// A region that has so many trees gets no more of them but by loads: far from what a catalogue can hold. Merges that
/// would put a tree on top for spills hold them up instead.
pub const TREES_MAX: usize = 20;

impl Versions {
    /// How large the levels of `region` are.
    pub fn scale(&self, region: RegionId) -> Scale {
        let region = self.regions.of(region);
        let own = region.and_then(|region| region.own.growth_factor());
        self.scale_of(own.map(u32::from))
    }

    /// How large levels are where regions have `own` for a growth factor; none: that of the store.
    fn scale_of(&self, own: Option<u32>) -> Scale {
        let growth = own.or(self.storage.options.growth_factor);
        Scale::new(self.storage.split.l0_bytes, growth)
    }

    /// The trees of `region` as [`Scale::next_merge`] wants them.
    pub fn sizes(&self, view: &View, region: RegionId) -> Vec<Tree> {
        let busy = self.tree_locks.merged(region);
        let size = |tree: &TreeRecord| Tree {
            bytes: tree.bytes(),
            entries: tree.entries,
            is_busy: tree.root.is_some_and(|root| busy.contains(&root.page)),
        };
        view.levels.of(region).iter().map(size).collect()
    }

    /// Puts an empty tree on top of those of `region`, for spills, unless there is one. Returns how many are
    /// beneath it: at least one, or spills would take the first for the last and drop deletions, which a
    /// load needs. The caller holds the right to change the levels.
    pub fn put_empty_tree_on(&self, region: RegionId) -> usize {
        let view = self.storage.views.load_full();
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

    /// Takes out empty trees, lets everybody see trees that no open snapshot must not see, and puts an empty
    /// tree on top where no spill may go into the first one, or where that is too large for it. The caller
    /// holds the right to change the levels, and the lock on all trees of the region, or knows that no thread has that.
    pub fn tidy(&self, region: RegionId) {
        let view = self.storage.views.load_full();
        let oldest = self.visibility.snapshots.list().first().copied();
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
        let busy = self.tree_locks.merged(region);
        let is_crowded = trees.len() >= TREES_MAX;
        let scale = self.scale(region);
        let is_to_be_covered = |first: &TreeRecord| {
            let is_busy = first.root.is_some_and(|root| busy.contains(&root.page));
            let is_too_large = scale.is_too_large_for_spills(first.bytes());
            levels.hidden_up_to(first) > Lsn(0) || is_busy || (is_too_large && !is_crowded)
        };
        if trees.first().is_some_and(is_to_be_covered) {
            trees.insert(0, TreeRecord::default());
        }
        levels.set(region, trees);
        self.change_levels(levels);
    }

    /// Shows other levels to readers; the next checkpoint makes them durable.
    fn change_levels(&self, levels: Levels) {
        let levels = Arc::new(levels);
        self.storage
            .views
            .change(|view| (Arc::clone(&view.active), view.frozen.clone(), levels));
    }

    /// Whether trees of some region are due for a merge that is not under way.
    pub fn is_merge_due(&self) -> bool {
        !self.due_regions(&self.storage.views.load()).is_empty()
    }

    /// The regions with trees that are due for a merge.
    pub fn due_regions(&self, view: &View) -> Vec<RegionId> {
        let is_due = |region: RegionId| {
            let sizes = self.sizes(view, region);
            let scale = self.scale(region);
            let first = sizes.first().map_or(0, |first| first.bytes);
            let is_first_full = scale.is_too_large_for_spills(first) && sizes.len() < TREES_MAX;
            let is_due = is_first_full || scale.next_merge(&sizes).is_some();
            is_due && self.tree_locks.lets_merge(region)
        };
        // None is left out: the least growth factor makes the smallest trees large.
        let of_store = self.storage.options.growth_factor;
        let least = self.regions.growth_factor_min().into_iter().chain(of_store);
        let scale = self.scale_of(least.min());
        let is_large = |bytes| scale.is_too_large_for_spills(bytes);
        let mut due = view.levels.tall(is_large);
        due.retain(|region| is_due(*region));
        due
    }
}
