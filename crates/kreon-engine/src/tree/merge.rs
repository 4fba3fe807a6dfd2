//! The partial merge (`Kreon 3.2.1`): inserts sorted entries into a tree by rewriting only the leaves with
//! new entries and the index nodes above them.
//!
//! The merge walks the old tree from left to right. A node without input joins the new tree unread; the
//! entries of other nodes go, merged with the input, through the version rules into fresh leaves.
//! Neighbouring changed leaves are repacked as one run; before an unchanged leaf the run is closed, and a
//! small remainder is balanced with a neighbour.
//!
//! The recursion needs only a node's pivot, its bound and the input between them, so several workers can
//! merge disjoint children (`merge_parts`). Deleted ranges of the input are in `merge_ranges`.

use std::ops::Range;

use kreon_base::{Error, Lsn, PAGE_BYTES, PageBytes, Result, Timestamp};
use kreon_format::{IndexNode, Leaf, LeafEntry, LeafFilter, PagePointer, Pivot, TreeRecord};

use super::child::{Bound, Child};
use super::leaf_keys::{first_under, is_long, key_of, lower_bound, record_of, stored_part};
use super::merge_counts::Counts;
use super::merge_rules::MergeRules;
use super::output::Output;
use super::prefetch::prefetch_round;
use super::search::root_of;
use super::version_filter::{Origin, VersionFilter};
use super::window::Window;
use super::{Changes, EntryStream, NodeSink, NodeSource, Version};

/// Merges `input` into `tree` and returns the new tree; the old one stays whole. Every version in `input`
/// must be newer than those of its key in `tree`, or be one of them (a replay).
///
/// After an error the old tree is still valid, the reported `changes` are void, and the pages from `sink` are
/// garbage. Takes about half a MiB of memory and a page per level, whatever the size of input and tree.
/// Without entries and deleted ranges the tree stays as it is.
pub fn merge<S: NodeSource, K: NodeSink, I: EntryStream, C: Changes>(
    source: &S,
    sink: &mut K,
    tree: &TreeRecord,
    input: &mut I,
    rules: &MergeRules<'_>,
    changes: &mut C,
) -> Result<TreeRecord> {
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
    /// See [`MergeRules::expired_by`].
    pub(super) expired_by: Option<Timestamp>,
    rewrites_all: bool,
    /// Nodes freed, and the totals of merged parts.
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
            filter: VersionFilter::new(output, changes, rules, ranges),
            expired_by: rules.expired_by,
            rewrites_all: rules.rewrites_all,
            counts: Counts::default(),
            spare_pages: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Rewrites a node of the old tree for its input or to balance the output. All input left of it is merged
    /// already.
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

    /// Whether a node must be rewritten: for versions of the open key, for input or deleted ranges, or to
    /// balance the run left of it. Otherwise it may join the output.
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

    /// Whether the versions of the open key continue under this node.
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
            // Newer versions of its first key may be in the previous leaf, which stays unchanged.
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

    /// Bulk build: the merge into an empty tree.
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

    /// Takes the versions of the open key, if any, from entry `at` on; returns their end. The key stays open if
    /// its versions may continue in the next leaf.
    fn take_versions(&mut self, leaf: &Leaf<'_>, mut at: usize) -> Result<usize> {
        while at < leaf.len() && self.filter.open_key().is_some() {
            let entry = leaf.entry(at)?;
            if !self.is_of_open_key(leaf, at, &entry)? {
                self.filter.close();
                break;
            }
            self.filter.take(Version::of(&entry), Origin::Tree)?;
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

    /// Copies entries of keys without input. Entries with an LSN are judged again, because their snapshots may
    /// be gone, and expired ones and those in deleted ranges as well.
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

    /// Copies all versions of the first key unchanged; returns their end.
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

    /// Prefetches the nodes for the next entries, unless those of the next entry are loaded.
    fn load_ahead(&mut self) -> Result<()> {
        if let Some(entries) = self.window.unloaded()? {
            let window = &self.window;
            let key = |index| window.key(index);
            let loaded = prefetch_round(self.source, self.tree, entries, key)?;
            self.window.set_loaded(loaded);
        }
        Ok(())
    }

    /// A copy of a node, so that no page of the source is pinned while the sink writes.
    pub(super) fn read(&mut self, pointer: &PagePointer, level: u8) -> Result<Box<PageBytes>> {
        let spare = self.spare_pages.pop();
        let mut copy = spare.unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
        self.source.read_node(pointer, level, |page| {
            copy.copy_from_slice(page);
            Ok(())
        })?;
        Ok(copy)
    }

    /// Reports a node that the new tree does not reach.
    pub(super) fn free(&mut self, node: &PagePointer, level: u8) {
        self.filter.changes.freed(node.page);
        match level {
            0 => self.counts.freed_leaves += 1,
            _ => self.counts.freed_indexes += 1,
        }
    }

    /// The totals of this merge and its parts.
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

/// A child of an old node, not the first one, with the pivot before it but without its filter.
pub(super) fn child_of(index: &IndexNode<'_>, child: usize) -> Result<Child> {
    Ok(Child {
        pivot: index.pivot(child)?,
        pointer: index.child(child)?,
        filter: LeafFilter::NONE,
        is_fresh: false,
    })
}

/// All children of `node`, whose page is `index`, with their filters.
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
