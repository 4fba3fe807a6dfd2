//! The level trees of all regions at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sync::{AtomicU64, Ordering};
use kreon_base::{Lsn, PageNo, RegionId};
use kreon_format::TreeRecord;

/// The trees of every region, upper level first. Never changes: a spill makes a new one.
///
/// Small regions have one tree. Spills go into the first, and trees are merged downwards as they grow. A load puts one
/// beneath what is spilled while it runs, and above what was there before.
#[derive(Clone, Default)]
pub struct Levels {
    trees: BTreeMap<RegionId, Vec<TreeRecord>>,
    /// Trees that older snapshots do not see, by the page of their root: that tells a tree from all
    /// others. No spill may go into one, because its root would change.
    curtains: BTreeMap<PageNo, Curtain>,
}

/// Hides a tree from readers at or before a position; at first from all.
#[derive(Clone, Debug)]
pub struct Curtain(Arc<AtomicU64>);

impl Curtain {
    /// Hides the tree from everybody.
    pub fn drawn() -> Self {
        Self(Arc::new(AtomicU64::new(Lsn::MAX.0)))
    }

    /// From now on readers behind `last` see the tree.
    pub fn open(&self, last: Lsn) {
        self.0.store(last.0, Ordering::SeqCst);
    }

    /// Readers up to this position do not see the tree.
    pub fn last(&self) -> Lsn {
        Lsn(self.0.load(Ordering::SeqCst))
    }
}

impl Levels {
    /// The trees of `region` from L1 downwards; empty for a region without any.
    pub fn of(&self, region: RegionId) -> &[TreeRecord] {
        self.trees.get(&region).map_or(&[], Vec::as_slice)
    }

    /// Those of the trees that a reader at `at` sees, with their numbers.
    pub fn seen(&self, region: RegionId, at: Lsn) -> impl Iterator<Item = (u8, &TreeRecord)> {
        let is_seen = move |tree: &TreeRecord| self.hidden_up_to(tree) < at;
        let trees = (1..).zip(self.of(region));
        trees.filter(move |(_, tree)| self.curtains.is_empty() || is_seen(tree))
    }

    /// Readers up to this position do not see `tree`; 0: everybody does.
    pub fn hidden_up_to(&self, tree: &TreeRecord) -> Lsn {
        let curtain = tree.root.and_then(|root| self.curtains.get(&root.page));
        curtain.map_or(Lsn(0), Curtain::last)
    }

    /// What hides `tree`.
    pub fn curtain(&self, tree: &TreeRecord) -> Option<Curtain> {
        self.curtains.get(&tree.root?.page).cloned()
    }

    /// All regions that have trees.
    pub fn regions(&self) -> impl Iterator<Item = (RegionId, &[TreeRecord])> {
        self.trees.iter().map(|(id, trees)| (*id, trees.as_slice()))
    }

    /// The same levels with other trees for `region`.
    pub fn set(&mut self, region: RegionId, trees: Vec<TreeRecord>) {
        let roots = |trees: &[TreeRecord]| -> Vec<PageNo> {
            let roots = trees.iter().filter_map(|tree| tree.root);
            roots.map(|root| root.page).collect()
        };
        let kept = roots(&trees);
        let old = self.trees.insert(region, trees).unwrap_or_default();
        for root in roots(&old).iter().filter(|root| !kept.contains(root)) {
            self.curtains.remove(root);
        }
    }

    /// Puts `curtain` before `tree`.
    pub fn hide(&mut self, tree: &TreeRecord, curtain: Curtain) {
        if let Some(root) = tree.root {
            self.curtains.insert(root.page, curtain);
        }
    }

    /// Lets everybody see `tree`.
    pub fn show(&mut self, tree: &TreeRecord) {
        if let Some(root) = tree.root {
            self.curtains.remove(&root.page);
        }
    }

    /// Forgets a region.
    pub fn remove(&mut self, region: RegionId) -> Vec<TreeRecord> {
        let trees = self.trees.remove(&region).unwrap_or_default();
        for tree in &trees {
            self.show(tree);
        }
        trees
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::Epoch;
    use kreon_format::PagePointer;

    use super::*;

    const REGION: RegionId = RegionId(7);

    fn tree(page: u64) -> TreeRecord {
        let root = PagePointer {
            page: PageNo(page),
            epoch: Epoch(1),
            checksum: 0,
        };
        TreeRecord {
            root: Some(root),
            height: 1,
            ..TreeRecord::default()
        }
    }

    fn seen(levels: &Levels, at: u64) -> Vec<u8> {
        levels
            .seen(REGION, Lsn(at))
            .map(|(level, _)| level)
            .collect()
    }

    #[test]
    fn readers_before_a_curtain_opens_do_not_see_its_tree() {
        let mut levels = Levels::default();
        levels.set(REGION, vec![tree(1), tree(2), tree(3)]);
        let curtain = Curtain::drawn();
        levels.hide(&tree(2), curtain.clone());
        assert_eq!(seen(&levels, u64::MAX), [1, 3]);
        curtain.open(Lsn(40));
        assert_eq!(seen(&levels, 40), [1, 3]);
        assert_eq!(seen(&levels, 41), [1, 2, 3]);
        // A spill into the first tree leaves the curtain where it is.
        levels.set(REGION, vec![tree(9), tree(2), tree(3)]);
        assert_eq!(seen(&levels, 40), [1, 3]);
        // The page of a tree that is gone can become the root of another.
        levels.set(REGION, vec![tree(4)]);
        levels.set(REGION, vec![tree(2)]);
        assert_eq!(seen(&levels, 1), [1]);
    }
}
