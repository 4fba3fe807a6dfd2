//! The level trees of all regions at one moment.

use std::collections::BTreeMap;

use kreon_base::RegionId;
use kreon_format::TreeRecord;

/// The trees of every region, upper level first. Never changes: a spill makes a new one.
#[derive(Clone, Default)]
pub struct Levels {
    trees: BTreeMap<RegionId, Vec<TreeRecord>>,
}

impl Levels {
    /// The trees of `region` from L1 downwards; empty for a region without any.
    pub fn of(&self, region: RegionId) -> &[TreeRecord] {
        self.trees.get(&region).map_or(&[], Vec::as_slice)
    }

    /// All regions that have trees.
    pub fn regions(&self) -> impl Iterator<Item = (RegionId, &[TreeRecord])> {
        self.trees.iter().map(|(id, trees)| (*id, trees.as_slice()))
    }

    /// The same levels with other trees for `region`.
    pub fn set(&mut self, region: RegionId, trees: Vec<TreeRecord>) {
        self.trees.insert(region, trees);
    }

    /// Forgets a region.
    pub fn remove(&mut self, region: RegionId) -> Vec<TreeRecord> {
        self.trees.remove(&region).unwrap_or_default()
    }
}
