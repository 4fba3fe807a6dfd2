//! The trees of all regions at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::by_region::{ByRegion, Chunk, chunk_of};
use kreon_base::{Lsn, PageNo, RegionId};
use kreon_format::TreeRecord;
use kreon_sync::{AtomicU64, Ordering};

/// The trees of every region, upper level first. Immutable once in a view; a change clones it.
///
/// Small regions have one tree. Spills go into the first tree, and growing trees are merged downwards. A load adds a
/// tree above those from before it and below the tree that takes spills while it runs.
#[derive(Clone, Default)]
pub struct Levels {
    trees: ByRegion<Vec<TreeRecord>>,
    /// Sums over all trees.
    sums: Sums,
    /// Maxima over the regions of each chunk.
    most: BTreeMap<u32, Most>,
    /// Trees hidden from older snapshots, by their root page, which identifies a tree. No spill may go into a hidden
    /// tree, because its root would change.
    hidden_trees: BTreeMap<PageNo, VisibleFrom>,
}

/// Sums over trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Entries of leaves.
    pub entries: u64,
    /// Leaves.
    pub leaf_pages: u64,
    /// Leaves and index nodes.
    pub pages: u64,
    /// Pages of regions with several trees that are not empty.
    pub merged_pages: u64,
}

/// Maxima over the regions of a chunk: number of trees, bytes of the first tree.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    trees: usize,
    first_bytes: u64,
}

impl Sums {
    /// Sums over the trees of one region.
    fn of(trees: &[TreeRecord]) -> Self {
        let sum = |of: fn(&TreeRecord) -> u64| trees.iter().map(of).fold(0, u64::saturating_add);
        let leaf_pages = sum(|tree| tree.leaf_pages);
        let pages = leaf_pages.saturating_add(sum(|tree| tree.index_pages));
        Self {
            entries: sum(|tree| tree.entries),
            leaf_pages,
            pages,
            // An empty tree takes spills and is not merged.
            merged_pages: match trees.iter().filter(|tree| tree.root.is_some()).count() {
                0 | 1 => 0,
                _ => pages,
            },
        }
    }

    fn with(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            entries: join(self.entries, other.entries),
            leaf_pages: join(self.leaf_pages, other.leaf_pages),
            pages: join(self.pages, other.pages),
            merged_pages: join(self.merged_pages, other.merged_pages),
        }
    }

    /// Replaces the trees `old` of a region by trees with the sums `new`.
    fn replace(&mut self, old: &[TreeRecord], new: Self) {
        let grown = self.with(new, u64::saturating_add);
        *self = grown.with(Self::of(old), u64::saturating_sub);
    }
}

impl Most {
    fn of(chunk: &Chunk<Vec<TreeRecord>>) -> Self {
        let first = |trees: &[TreeRecord]| trees.first().map_or(0, TreeRecord::bytes);
        let all = chunk.iter();
        all.fold(Self::default(), |most, (_, trees)| Self {
            trees: most.trees.max(trees.len()),
            first_bytes: most.first_bytes.max(first(trees)),
        })
    }
}

/// Hides a tree from readers up to an LSN; at first from all.
#[derive(Clone, Debug)]
pub struct VisibleFrom(Arc<AtomicU64>);

impl VisibleFrom {
    /// Hides the tree from all readers.
    pub fn drawn() -> Self {
        Self(Arc::new(AtomicU64::new(Lsn::MAX.0)))
    }

    /// Shows the tree to readers behind `last`.
    pub fn open(&self, last: Lsn) {
        self.0.store(last.0, Ordering::SeqCst);
    }

    /// Readers up to this LSN do not see the tree.
    pub fn last(&self) -> Lsn {
        Lsn(self.0.load(Ordering::SeqCst))
    }
}

impl Levels {
    /// The trees of `region` from L1 downwards; empty for a region without any.
    pub fn of(&self, region: RegionId) -> &[TreeRecord] {
        self.trees.get(region).map_or(&[], Vec::as_slice)
    }

    /// The trees that a reader at `at` sees, with their levels.
    pub fn seen(&self, region: RegionId, at: Lsn) -> impl Iterator<Item = (u8, &TreeRecord)> {
        let is_seen = move |tree: &TreeRecord| self.hidden_up_to(tree) < at;
        let trees = (1..).zip(self.of(region));
        trees.filter(move |(_, tree)| self.hidden_trees.is_empty() || is_seen(tree))
    }

    /// Readers up to this LSN do not see `tree`; 0: all readers see it.
    pub fn hidden_up_to(&self, tree: &TreeRecord) -> Lsn {
        let visible_from = tree.root.and_then(|root| self.hidden_trees.get(&root.page));
        visible_from.map_or(Lsn(0), VisibleFrom::last)
    }

    /// How many trees of `region` are seen by readers of now and not by a reader at `at`: loads that were shown since.
    pub fn shown_since(&self, region: RegionId, at: Lsn) -> usize {
        if self.hidden_trees.is_empty() {
            return 0;
        }
        let hidden = self.of(region).iter().map(|tree| self.hidden_up_to(tree));
        let is_shown_since = |last: &Lsn| *last > Lsn(0) && *last >= at && *last < Lsn::MAX;
        hidden.filter(is_shown_since).count()
    }

    /// The visible-from position of `tree`; none if it is not hidden.
    pub fn visible_from(&self, tree: &TreeRecord) -> Option<VisibleFrom> {
        self.hidden_trees.get(&tree.root?.page).cloned()
    }

    /// The regions with several trees, or with a first tree for whose bytes `is_large` holds; `is_large` must be
    /// monotonic. Skips whole chunks by their maxima instead of testing each region.
    pub fn tall(&self, is_large: impl Fn(u64) -> bool) -> Vec<RegionId> {
        let chunks = self.most.iter();
        let chunks = chunks.filter(|(_, most)| most.trees > 1 || is_large(most.first_bytes));
        let regions = chunks.filter_map(|(number, _)| self.trees.chunk(*number));
        let is_tall = |trees: &[TreeRecord]| {
            trees.len() > 1 || trees.first().is_some_and(|tree| is_large(tree.bytes()))
        };
        regions
            .flat_map(|chunk| chunk.iter())
            .filter(|(_, trees)| is_tall(trees))
            .map(|(region, _)| *region)
            .collect()
    }

    /// Sums over all trees, in constant time.
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// The trees of the regions of a chunk; immutable while shared.
    pub fn chunk(&self, number: u32) -> Option<&Arc<Chunk<Vec<TreeRecord>>>> {
        self.trees.chunk(number)
    }

    /// Replaces the trees of `region`. Hidden trees that stay remain hidden.
    pub fn set(&mut self, region: RegionId, trees: Vec<TreeRecord>) {
        let roots = |trees: &[TreeRecord]| -> Vec<PageNo> {
            let roots = trees.iter().filter_map(|tree| tree.root);
            roots.map(|root| root.page).collect()
        };
        let kept = roots(&trees);
        let sums = Sums::of(&trees);
        let old = self.trees.insert(region, trees).unwrap_or_default();
        self.sums.replace(&old, sums);
        self.note_most(region);
        for root in roots(&old).iter().filter(|root| !kept.contains(root)) {
            self.hidden_trees.remove(root);
        }
    }

    fn note_most(&mut self, region: RegionId) {
        let number = chunk_of(region);
        match self.trees.chunk(number) {
            Some(chunk) => drop(self.most.insert(number, Most::of(chunk))),
            None => drop(self.most.remove(&number)),
        }
    }

    /// Hides `tree` from the readers that `visible_from` excludes.
    pub fn hide(&mut self, tree: &TreeRecord, visible_from: VisibleFrom) {
        if let Some(root) = tree.root {
            self.hidden_trees.insert(root.page, visible_from);
        }
    }

    /// Shows `tree` to all readers.
    pub fn show(&mut self, tree: &TreeRecord) {
        if let Some(root) = tree.root {
            self.hidden_trees.remove(&root.page);
        }
    }

    /// Removes a region; returns its trees.
    pub fn remove(&mut self, region: RegionId) -> Vec<TreeRecord> {
        let trees = self.trees.remove(region).unwrap_or_default();
        self.note_most(region);
        self.sums.replace(&trees, Sums::default());
        for tree in &trees {
            self.show(tree);
        }
        trees
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::{Epoch, PAGE_BYTES};
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
    fn readers_before_a_hidden_tree_is_shown_do_not_see_it() {
        let mut levels = Levels::default();
        levels.set(REGION, vec![tree(1), tree(2), tree(3)]);
        let visible_from = VisibleFrom::drawn();
        levels.hide(&tree(2), visible_from.clone());
        assert_eq!(seen(&levels, u64::MAX), [1, 3]);
        visible_from.open(Lsn(40));
        assert_eq!(seen(&levels, 40), [1, 3]);
        assert_eq!(seen(&levels, 41), [1, 2, 3]);
        // A spill into the first tree keeps the second one hidden.
        levels.set(REGION, vec![tree(9), tree(2), tree(3)]);
        assert_eq!(seen(&levels, 40), [1, 3]);
        // The root page of a removed tree may become the root of another.
        levels.set(REGION, vec![tree(4)]);
        levels.set(REGION, vec![tree(2)]);
        assert_eq!(seen(&levels, 1), [1]);
    }

    fn sized(pages: u64, entries: u64) -> TreeRecord {
        TreeRecord {
            entries,
            leaf_pages: pages,
            index_pages: 1,
            ..tree(pages)
        }
    }

    #[test]
    fn sums_are_those_of_all_trees_whatever_was_put_in_and_taken_out() {
        let mut levels = Levels::default();
        for id in 0..300 {
            levels.set(RegionId(id), vec![sized(10, 100)]);
        }
        levels.set(RegionId(3), vec![sized(1, 7), sized(20, 1)]);
        for id in 4..300 {
            levels.remove(RegionId(id));
        }
        let expected = Sums {
            entries: 308,
            leaf_pages: 3 * 10 + 1 + 20,
            pages: 3 * 11 + 2 + 21,
            merged_pages: 2 + 21,
        };
        assert_eq!(levels.sums(), expected);
    }

    #[test]
    fn regions_with_several_trees_or_a_large_one_are_found() {
        let mut levels = Levels::default();
        for id in 0..300 {
            levels.set(RegionId(id), vec![sized(10, 100)]);
        }
        let tall = |levels: &Levels| levels.tall(|bytes| bytes > 20 * PAGE_BYTES as u64);
        assert_eq!(tall(&levels), []);
        levels.set(RegionId(70), vec![sized(100, 1)]);
        levels.set(RegionId(299), vec![sized(1, 1), sized(2, 1)]);
        assert_eq!(tall(&levels), [RegionId(70), RegionId(299)]);
        levels.set(RegionId(70), vec![sized(1, 1)]);
        levels.remove(RegionId(299));
        assert_eq!(tall(&levels), []);
    }
}
