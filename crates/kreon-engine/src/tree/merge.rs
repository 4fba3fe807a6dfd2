//! The partial merge (`Kreon 3.2.1`): puts sorted entries into a tree by rewriting only the leaves
//! that receive entries, and the index nodes above them.
//!
//! The merge goes down the old tree from left to right. A node that no entry of the input belongs to
//! joins the new tree as it is and is not read; others are taken apart, their entries stream together
//! with the input through the version rules into fresh leaves. Where neighbouring leaves are all
//! touched the stream packs them anew; where a leaf that stays follows, the run before it is closed
//! and a small remainder balanced with a neighbour.
//!
//! The recursion knows of a node only its pivot, its bound and the input between the two, so disjoint
//! children can be merged by several workers: see `merge_parts`. Where the input deletes ranges of keys, see
//! `merge_ranges`.

use std::ops::Range;

use kreon_base::{Error, Lsn, PAGE_BYTES, PageBytes, Result};
use kreon_format::{IndexNode, Leaf, LeafEntry, LeafFilter, PagePointer, Pivot, TreeRecord};

use super::child::{Bound, Child};
use super::leaf_keys::{first_under, is_long, key_of, lower_bound, record_of, stored_part};
use super::merge_counts::Counts;
use super::merge_rules::MergeRules;
use super::output::Output;
use super::prefetch::prefetch_round;
use super::search::root_of;
use super::version_filter::{Origin, VersionFilter};
use super::version_rules::VersionRules;
use super::window::Window;
use super::{Changes, EntryStream, NodeSink, NodeSource, Version};

/// Merges `input` into `tree` and returns the new tree; the old one stays whole. All versions in
/// `input` must be newer than those of the same keys in `tree`, or be among them (a replay).
///
/// If it fails, the old tree is the tree, what `changes` was told did not happen, and the pages that
/// `sink` gave are garbage. Takes about half a MiB of memory and a page per level, whatever the size
/// of input and tree. An empty input changes nothing.
pub fn merge<S, K, I, C>(
    source: &S,
    sink: &mut K,
    tree: &TreeRecord,
    input: &mut I,
    rules: &MergeRules<'_>,
    changes: &mut C,
) -> Result<TreeRecord>
where
    S: NodeSource,
    K: NodeSink,
    I: EntryStream,
    C: Changes,
{
    let mut merge = Merge::new(source, sink, tree, input, rules, changes);
    if merge.window.peek()?.is_none() && merge.filter.ranges.is_none() {
        return Ok(*tree);
    }
    match root_of(tree)? {
        Some((pointer, level)) => {
            merge.visit(Child::root(pointer), level, None)?;
        }
        None => merge.take_whole_input()?,
    }
    merge.finish()
}

pub(super) struct Merge<'m, S, K, I, C> {
    pub(super) source: &'m S,
    pub(super) tree: &'m TreeRecord,
    window: Window<'m, I>,
    pub(super) filter: VersionFilter<'m, K, C>,
    rewrites_all: bool,
    /// Nodes freed, and all of merged parts.
    pub(super) counts: Counts,
    spare_pages: Vec<Box<PageBytes>>,
    pub(super) key: Vec<u8>,
}

impl<'m, S: NodeSource, K: NodeSink, I: EntryStream, C: Changes> Merge<'m, S, K, I, C> {
    pub(super) fn new(
        source: &'m S,
        sink: &'m mut K,
        tree: &'m TreeRecord,
        input: &'m mut I,
        rules: &MergeRules<'m>,
        changes: &'m mut C,
    ) -> Self {
        let output = Output::new(sink, rules);
        let ranges = input.ranges().filter(|ranges| !ranges.is_empty());
        Self {
            source,
            tree,
            window: Window::new(input),
            filter: VersionFilter::new(output, changes, VersionRules::new(rules), ranges),
            rewrites_all: rules.rewrites_all,
            counts: Counts::default(),
            spare_pages: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Takes apart a node of the old tree that the input or the balance of the output needs. All
    /// input left of it is done.
    pub(super) fn visit(&mut self, node: Child, level: u8, bound: Option<&Bound>) -> Result<()> {
        self.load_ahead()?;
        let pointer = node.pointer;
        let page = self.read(&pointer, level)?;
        if level == 0 {
            self.visit_leaf(&Leaf::open(&page)?, node.pivot, bound)?;
        } else {
            self.visit_index(&IndexNode::open(&page)?, node, level, bound)?;
        }
        self.free(&pointer, level);
        self.spare_pages.push(page);
        Ok(())
    }

    fn visit_index(
        &mut self,
        index: &IndexNode<'_>,
        node: Child,
        level: u8,
        bound: Option<&Bound>,
    ) -> Result<()> {
        let mut child = Child {
            pointer: index.child(0)?,
            ..node
        };
        self.load_erased(index, &child.pivot, level, bound)?;
        for next in 1..=index.len() {
            let own = if next < index.len() {
                Some(Bound::new(child_of(index, next)?, level - 1))
            } else {
                None
            };
            let bound = own.as_ref().or(bound);
            if self.enters(&child, level - 1, bound)? {
                self.visit(child, level - 1, bound)?;
            } else {
                let child = child.with_filter(index, next - 1)?;
                self.filter.output.add(child, level - 1)?;
            }
            match own {
                Some(own) => child = own.neighbour,
                None => break,
            }
        }
        Ok(())
    }

    /// Whether a node must be taken apart: for versions of the open key, for input, or to balance
    /// what stands left of it. If not, it may join the output.
    pub(super) fn enters(
        &mut self,
        node: &Child,
        level: u8,
        bound: Option<&Bound>,
    ) -> Result<bool> {
        if self.continues_in(node, level)? {
            return Ok(true);
        }
        if self.rewrites_all {
            self.filter.close();
            return Ok(true);
        }
        self.filter.close();
        Ok(self.has_input_before(bound)?
            || self.may_be_erased(&node.pivot, bound)
            || !self.make_way(level)?)
    }

    /// Whether the versions of the open key go on under this node.
    fn continues_in(&mut self, node: &Child, level: u8) -> Result<bool> {
        let pivot = &node.pivot;
        let Some(open) = self.filter.open_key() else {
            return Ok(false);
        };
        if !pivot.ambiguous || pivot.bytes != stored_part(open) {
            return Ok(false);
        }
        first_under(self.source, &node.pointer, level, &mut self.key)?;
        Ok(self.key == open)
    }

    fn has_input_before(&mut self, bound: Option<&Bound>) -> Result<bool> {
        match (self.window.peek()?, bound) {
            (None, _) => Ok(false),
            (Some(_), None) => Ok(true),
            (Some(entry), Some(bound)) => bound.is_right_of(self.source, entry.key),
        }
    }

    fn visit_leaf(&mut self, leaf: &Leaf<'_>, pivot: Pivot, bound: Option<&Bound>) -> Result<()> {
        let is_continued =
            pivot.ambiguous && self.filter.open_key().is_none() && !self.is_first_erased(leaf)?;
        self.filter.output.begin(pivot);
        let mut at = if is_continued {
            // Newer versions of its first key may stand in the leaf before, which stays as it is.
            self.copy_first_key(leaf)?
        } else {
            self.take_versions(leaf, 0)?
        };
        while self.has_input_before(bound)? {
            self.filter.close();
            let Some(entry) = self.window.peek()? else {
                break;
            };
            let (index, is_found) = lower_bound(self.source, leaf, entry.key)?;
            self.copy(leaf, at..index)?;
            self.take_input()?;
            at = index;
            if is_found {
                at = self.take_versions(leaf, index)?;
            } else if index < leaf.len() {
                self.filter.close();
            }
        }
        self.copy(leaf, at..leaf.len())
    }

    /// For an empty tree.
    fn take_whole_input(&mut self) -> Result<()> {
        while self.window.peek()?.is_some() {
            self.take_input()?;
        }
        Ok(())
    }

    /// Takes all versions of the input's next key.
    fn take_input(&mut self) -> Result<()> {
        self.filter.close();
        if let Some(entry) = self.window.peek()? {
            self.filter.open(entry.key);
        }
        while let Some(entry) = self.window.peek()?
            && self.filter.open_key() == Some(entry.key)
        {
            let version = Version {
                lsn: entry.lsn,
                payload: entry.payload,
            };
            self.filter.take(version, Origin::Input)?;
            self.window.advance();
        }
        Ok(())
    }

    /// Takes the versions of the open key from entry `at` on, if there is an open key; returns where
    /// they end. The key stays open if they may go on in the next leaf.
    fn take_versions(&mut self, leaf: &Leaf<'_>, mut at: usize) -> Result<usize> {
        while at < leaf.len() && self.filter.open_key().is_some() {
            let entry = leaf.entry(at)?;
            if !self.is_of_open_key(leaf, at, &entry)? {
                self.filter.close();
                break;
            }
            let version = Version {
                lsn: entry.lsn,
                payload: entry.payload,
            };
            self.filter.take(version, Origin::Tree)?;
            at += 1;
            if entry.lsn == Lsn(0) {
                self.filter.close();
            }
        }
        Ok(at)
    }

    fn is_of_open_key(
        &mut self,
        leaf: &Leaf<'_>,
        at: usize,
        entry: &LeafEntry<'_>,
    ) -> Result<bool> {
        let Some(open) = self.filter.open_key() else {
            return Ok(false);
        };
        if entry.key_bytes as usize != open.len() {
            return Ok(false);
        }
        leaf.key_into(at, &mut self.key)?;
        if self.key != stored_part(open) || !is_long(entry.key_bytes) {
            return Ok(self.key == open);
        }
        self.source
            .read_key(record_of(entry)?, entry.key_bytes, &mut self.key)?;
        Ok(self.key == open)
    }

    /// Copies entries whose keys receive none. Those that carry an LSN are judged anew: the snapshots
    /// that they were kept for may be gone. So are those in a deleted range.
    fn copy(&mut self, leaf: &Leaf<'_>, range: Range<usize>) -> Result<()> {
        let mut start = range.start;
        loop {
            let at = self.next_to_judge(leaf, start..range.end)?;
            self.filter.output.push_run(leaf, start..at)?;
            if at == range.end {
                return Ok(());
            }
            self.filter.close();
            key_of(self.source, leaf, at, &mut self.key)?;
            self.filter.open(&self.key);
            start = self.take_versions(leaf, at)?;
        }
    }

    /// Copies all versions of the first key as they are; returns where they end.
    fn copy_first_key(&mut self, leaf: &Leaf<'_>) -> Result<usize> {
        let mut first = Vec::new();
        key_of(self.source, leaf, 0, &mut first)?;
        let mut end = 1;
        while end < leaf.len() {
            key_of(self.source, leaf, end, &mut self.key)?;
            if self.key != first {
                break;
            }
            end += 1;
        }
        self.filter.output.push_run(leaf, 0..end)?;
        Ok(end)
    }

    /// Loads the nodes that the next entries lead to, if that was not done for the next one.
    fn load_ahead(&mut self) -> Result<()> {
        if let Some(entries) = self.window.unloaded()? {
            let window = &self.window;
            let key = |index| window.key(index);
            let loaded = prefetch_round(self.source, self.tree, entries, key)?;
            self.window.set_loaded(loaded);
        }
        Ok(())
    }

    /// A copy of a node: nothing of the source is held while the sink is at work.
    pub(super) fn read(&mut self, pointer: &PagePointer, level: u8) -> Result<Box<PageBytes>> {
        let spare = self.spare_pages.pop();
        let mut copy = spare.unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
        self.source.read_node(pointer, level, |page| {
            copy.copy_from_slice(page);
            Ok(())
        })?;
        Ok(copy)
    }

    /// The new tree does not reach this node.
    pub(super) fn free(&mut self, node: &PagePointer, level: u8) {
        self.filter.changes.freed(node.page);
        match level {
            0 => self.counts.freed_leaves += 1,
            _ => self.counts.freed_indexes += 1,
        }
    }

    /// All that was counted.
    pub(super) fn totals(&self) -> Counts {
        let pages = &self.filter.output.pages;
        let mut totals = self.counts;
        totals.add(&Counts {
            added: self.filter.added,
            removed: self.filter.removed,
            leaves: pages.leaves,
            indexes: pages.indexes,
            ..Counts::default()
        });
        totals
    }

    /// The record of the new tree.
    pub(super) fn record(&self, root: Option<(PagePointer, u8)>) -> Result<TreeRecord> {
        let totals = self.totals();
        let sum = |old: u64, added: u64, removed: u64| {
            let sum = old.checked_add(added).and_then(|n| n.checked_sub(removed));
            sum.ok_or_else(|| Error::corruption("a tree holds more than its record says"))
        };
        let old = self.tree;
        Ok(TreeRecord {
            root: root.map(|(pointer, _)| pointer),
            height: root.map_or(0, |(_, level)| level + 1),
            entries: sum(old.entries, totals.added, totals.removed)?,
            leaf_pages: sum(old.leaf_pages, totals.leaves, totals.freed_leaves)?,
            index_pages: sum(old.index_pages, totals.indexes, totals.freed_indexes)?,
        })
    }
}

/// A child of a node of the old tree, not the first, with the pivot before it; without its filter.
pub(super) fn child_of(index: &IndexNode<'_>, child: usize) -> Result<Child> {
    Ok(Child {
        pivot: index.pivot(child)?,
        pointer: index.child(child)?,
        filter: LeafFilter::default(),
        is_fresh: false,
    })
}

/// All children of `node`, which is `index`, with their filters.
pub(super) fn children_of(index: &IndexNode<'_>, node: Child) -> Result<Vec<Child>> {
    let first = Child {
        pointer: index.child(0)?,
        ..node
    };
    let mut children = vec![first.with_filter(index, 0)?];
    for child in 1..index.len() {
        children.push(child_of(index, child)?.with_filter(index, child)?);
    }
    Ok(children)
}
