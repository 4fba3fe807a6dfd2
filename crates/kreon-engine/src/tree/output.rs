//! The output of a merge: fresh leaves and index nodes, built from left to right.
//!
//! Level 0 packs entries into leaves; level i packs nodes of level i - 1. Unchanged nodes of the old tree
//! join on their level. Before a node of level i joins, the open runs of levels 0 to i are closed, because
//! they belong left of it.

use std::ops::Range;

use kreon_base::{Lsn, Payload, Result};
use kreon_format::{Leaf, Pivot};

use super::child::Child;
use super::fresh_pages::FreshPages;
use super::index_packer::IndexPacker;
use super::leaf_packer::LeafPacker;
use super::limits::Limits;
use super::{MergeRules, NodeSink};

pub(super) struct Output<'k, K> {
    pub(super) pages: FreshPages<'k, K>,
    limits: Limits,
    leaves: LeafPacker,
    /// Item i packs nodes of level i + 1.
    floors: Vec<IndexPacker>,
}

impl<'k, K: NodeSink> Output<'k, K> {
    pub(super) fn new(sink: &'k mut K, rules: &MergeRules<'_>) -> Self {
        let limits = Limits::new(rules.fill);
        Self {
            pages: FreshPages::new(sink),
            limits,
            leaves: LeafPacker::new(limits, rules.filter_bits_per_key),
            floors: Vec::new(),
        }
    }

    /// The next entries are not left of `pivot`.
    pub(super) fn begin(&mut self, pivot: Pivot) {
        self.leaves.begin(pivot);
    }

    /// Adds an entry. `key` is whole.
    pub(super) fn push(&mut self, key: &[u8], lsn: Lsn, payload: Payload<'_>) -> Result<()> {
        self.leaves.push(&mut self.pages, key, lsn, payload)?;
        self.take_ready()
    }

    /// Copies entries of a leaf of the old tree.
    pub(super) fn push_run(&mut self, leaf: &Leaf<'_>, range: Range<usize>) -> Result<()> {
        self.leaves.push_run(&mut self.pages, leaf, range)?;
        self.take_ready()
    }

    /// Adds a node of `level`. For a node of the old tree, levels 0 to `level` must be closed.
    pub(super) fn add(&mut self, child: Child, level: u8) -> Result<()> {
        let mut next = Some((child, level));
        while let Some((child, level)) = next {
            let floor = self.floor(level);
            let (Some(packer), pages) = (self.floors.get_mut(floor), &mut self.pages) else {
                break;
            };
            next = packer.push(pages, child)?.map(|node| (node, level + 1));
        }
        Ok(())
    }

    /// Whether closing `level` would leave a small node that should be balanced with a neighbour.
    pub(super) fn is_scanty(&mut self, level: u8) -> Result<bool> {
        match level.checked_sub(1) {
            None => Ok(self.leaves.is_scanty()),
            Some(below) => match self.floors.get_mut(usize::from(below)) {
                Some(packer) => packer.is_scanty(),
                None => Ok(false),
            },
        }
    }

    /// Closes the open run of `level`.
    pub(super) fn close(&mut self, level: u8) -> Result<()> {
        let Some(below) = level.checked_sub(1) else {
            self.leaves.close(&mut self.pages)?;
            return self.take_ready();
        };
        let nodes = match self.floors.get_mut(usize::from(below)) {
            Some(packer) => packer.close(&mut self.pages)?,
            None => Vec::new(),
        };
        nodes.into_iter().try_for_each(|node| self.add(node, level))
    }

    /// Closes level 0 and balances the run with the leaf left of it. False, and the run stays open, if the two
    /// cannot be balanced.
    pub(super) fn close_with_left(&mut self, left: &Leaf<'_>, pivot: &Pivot) -> Result<bool> {
        let pages = &mut self.pages;
        let is_closed = self.leaves.close_with_left(pages, left, pivot)?;
        self.take_ready()?;
        Ok(is_closed)
    }

    /// Whether nodes of `level` or above wait for a parent.
    pub(super) fn has_nodes_from(&self, level: u8) -> bool {
        let above = self.floors.iter().skip(usize::from(level));
        above.into_iter().any(|packer| !packer.is_empty())
    }

    /// The packer with the nodes of `level` that wait for a parent.
    pub(super) fn waiting(&mut self, level: u8) -> Option<&mut IndexPacker> {
        self.floors.get_mut(usize::from(level))
    }

    /// Takes all nodes that wait for a parent, by level.
    pub(super) fn take_waiting(&mut self) -> Vec<Vec<Child>> {
        self.floors.iter_mut().map(IndexPacker::take).collect()
    }

    fn take_ready(&mut self) -> Result<()> {
        if self.leaves.ready.is_empty() {
            return Ok(());
        }
        let mut ready = std::mem::take(&mut self.leaves.ready);
        let added = ready.drain(..).try_for_each(|leaf| self.add(leaf, 0));
        self.leaves.ready = ready;
        added
    }

    /// The index in `floors` of the packer for nodes of `level`; created if missing.
    fn floor(&mut self, level: u8) -> usize {
        let floor = usize::from(level);
        while self.floors.len() <= floor {
            let level = self.floors.len() as u8 + 1;
            self.floors.push(IndexPacker::new(level, self.limits));
        }
        floor
    }
}
