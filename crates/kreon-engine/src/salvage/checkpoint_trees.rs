//! The trees of the last checkpoint, region by region, with orphans: leaves without a readable index node.
//!
//! The upper of two trees with the same key has the newer version, so orphans must be taken together with their tree. A
//! leaf does not name its tree; but if only one tree of a region has lost index nodes, all orphans are its leaves, and
//! if their number matches the tree's record, no leaf is lost.

use std::collections::BTreeMap;

use kreon_base::{RegionId, Result};
use kreon_format::{Catalogue, RegionRecord};

use super::found::{FoundLeaf, FoundPage, Live, scan};
use super::orphans;
use super::run::Work;
use super::tree_reach::{Lost, reach};
use super::trees::{LeafTaker, TreeWalk};
use crate::inspect::PageSet;

/// Leaves without a readable index node.
#[derive(Default)]
struct Orphans {
    /// In use at the checkpoint.
    sure: Vec<FoundLeaf>,
    /// Unknown whether in use, because their bitmap block is damaged.
    unsure: Vec<FoundLeaf>,
}

/// Trees of a region with lost index nodes, by their position from the top.
type Broken = BTreeMap<usize, Lost>;

impl Work<'_, '_> {
    /// Takes all readable leaves of the trees.
    pub(super) fn trees(&mut self, catalogue: &Catalogue, live: &Live) -> Result<()> {
        self.target.step("trees");
        let mut reached = PageSet::default();
        let mut broken: BTreeMap<RegionId, Broken> = BTreeMap::new();
        for region in &catalogue.regions {
            self.target.region(region.id)?;
            for (place, tree) in region.levels.iter().enumerate() {
                let (source, store) = (self.at.source, self.at.store);
                let lost = reach(source, store, region.id, tree, &mut reached)?;
                if lost.index_nodes > 0 {
                    broken.entry(region.id).or_default().insert(place, lost);
                }
            }
        }
        let mut orphans = match broken.is_empty() {
            true => BTreeMap::new(),
            false => self.find_orphans(&broken, &reached, live),
        };
        let mut reached = PageSet::default();
        for region in &catalogue.regions {
            let broken = broken.remove(&region.id).unwrap_or_default();
            let orphans = orphans.remove(&region.id).unwrap_or_default();
            self.trees_of(region, &broken, &orphans, &mut reached)?;
        }
        Ok(())
    }

    fn find_orphans(
        &mut self,
        broken: &BTreeMap<RegionId, Broken>,
        reached: &PageSet,
        live: &Live,
    ) -> BTreeMap<RegionId, Orphans> {
        self.target.step("leaves without index");
        let mut orphans: BTreeMap<RegionId, Orphans> = BTreeMap::new();
        let newest = self.report.epoch;
        let out = |segment| !live.may_have_trees(segment);
        scan(self.at.source, self.at.store, out, |found| {
            let FoundPage::Node(node) = found else {
                return;
            };
            let is_wanted = |leaf: &FoundLeaf| {
                broken.contains_key(&leaf.region)
                    && !reached.contains(leaf.page)
                    && newest.is_none_or(|newest| leaf.epoch <= newest)
            };
            let Some(leaf) = FoundLeaf::of(&node).filter(is_wanted) else {
                return;
            };
            let of_region = orphans.entry(leaf.region).or_default();
            match live.is_live(leaf.page) {
                Some(true) => of_region.sure.push(leaf),
                None => of_region.unsure.push(leaf),
                Some(false) => {}
            }
        });
        orphans
    }

    fn trees_of(
        &mut self,
        region: &RegionRecord,
        broken: &Broken,
        orphans: &Orphans,
        reached: &mut PageSet,
    ) -> Result<()> {
        let is_one = broken.len() == 1;
        let uppermost = broken.keys().next().copied();
        let (mut entries, mut is_above) = (0, false);
        // From the lowest tree up.
        for (place, tree) in region.levels.iter().enumerate().rev() {
            let found = orphans.sure.len() as u64;
            let is_whole = |lost: &Lost| is_one && lost.leaves_reached + found == tree.leaf_pages;
            let mut taker = LeafTaker::new(self.at, &mut self.target, is_above);
            let mut walk = TreeWalk {
                region: region.id,
                taker: &mut taker,
                reached,
                report: &mut self.report,
                has_all_leaves: broken.get(&place).is_some_and(is_whole),
                is_cut: false,
            };
            walk.run(tree)?;
            entries += taker.entries;
            if uppermost == Some(place) {
                entries += self.take_orphans(region.id, orphans, is_above)?;
            }
            is_above = true;
        }
        if broken.len() > 1 && !orphans.sure.is_empty() {
            self.report.may_be_stale = true;
            self.report.notes.push(format!(
                "{}: several trees have lost index nodes, and nothing tells which of them leaves without \
                 index belong to: deleted pairs and old values may be back",
                region.id
            ));
        }
        let all: u64 = region.levels.iter().map(|tree| tree.entries).sum();
        let told = &mut self.target.region(region.id)?.told;
        told.missing_entries = Some(all.saturating_sub(entries));
        Ok(())
    }

    /// Takes the orphans that were in use; returns their number of entries.
    fn take_orphans(&mut self, region: RegionId, orphans: &Orphans, is_above: bool) -> Result<u64> {
        let Orphans { sure, unsure } = orphans;
        if !unsure.is_empty() {
            self.report.notes.push(format!(
                "{region}: {} leaves were left out, because with their bitmap block damaged nothing \
                 tells whether they are current",
                unsure.len()
            ));
        }
        let mut sure = sure.clone();
        sure.sort_unstable();
        let mut taker = LeafTaker::new(self.at, &mut self.target, is_above);
        orphans::take(&mut taker, &sure, false)?;
        Ok(taker.entries)
    }
}
