//! Merge of a tree in parts, by several workers.
//!
//! A cut divides the subtrees of one level into runs of neighbours; the nodes above them are rewritten. Parts
//! begin at exact pivots only, so that no key has versions in two parts. A merged part leaves nodes without a
//! parent on every level; [`join`] puts these in order under one root. The result is the tree of a single
//! merge, except that the last leaf and index nodes of a part may be small.

use std::ops::Range;

use kreon_base::Result;
use kreon_format::{IndexNode, PagePointer, TreeRecord};

use super::child::{Bound, Child};
use super::merge::{Merge, children_of};
use super::merge_counts::Counts;
use super::search::root_of;
use super::{Changes, Entry, EntryStream, MergeRules, NodeSink, NodeSource};

/// A tree, cut into parts.
pub struct Cut {
    level: u8,
    subtrees: Vec<Child>,
    /// Nodes above the subtrees, with their levels.
    above: Vec<(PagePointer, u8)>,
    parts: Vec<Range<usize>>,
}

/// The result of the merge of a part, for [`join`].
pub struct MergedPart {
    /// Nodes that wait for a parent, by level.
    waiting: Vec<Vec<Child>>,
    counts: Counts,
}

impl Cut {
    /// Cuts `tree` into about `count` parts; none if it is too small.
    pub fn new<S: NodeSource>(source: &S, tree: &TreeRecord, count: usize) -> Result<Option<Self>> {
        let Some((pointer, level)) = root_of(tree)? else {
            return Ok(None);
        };
        let root = Child::root(pointer);
        let mut cut = Self {
            level,
            subtrees: vec![root],
            above: Vec::new(),
            parts: Vec::new(),
        };
        while cut.subtrees.len() < count && cut.level > 0 {
            cut.go_down(source)?;
        }
        cut.divide(count);
        Ok((cut.parts.len() > 1).then_some(cut))
    }

    /// Replaces the subtrees by their children.
    fn go_down<S: NodeSource>(&mut self, source: &S) -> Result<()> {
        let mut below = Vec::new();
        for node in std::mem::take(&mut self.subtrees) {
            let pointer = node.pointer;
            self.above.push((pointer, self.level));
            source.read_node(&pointer, self.level, |page| {
                let index = IndexNode::open(page)?;
                below.extend(children_of(&index, node)?);
                Ok(())
            })?;
        }
        self.subtrees = below;
        self.level -= 1;
        Ok(())
    }

    fn divide(&mut self, count: usize) {
        let subtrees = self.subtrees.len();
        let mut start = 0;
        for part in 1..=count {
            let mut end = subtrees * part / count;
            while self
                .subtrees
                .get(end)
                .is_some_and(|child| child.pivot.ambiguous)
            {
                end += 1;
            }
            if end > start {
                self.parts.push(start..end);
                start = end;
            }
        }
        debug_assert!(
            count == 0 || start == subtrees,
            "each subtree is in one part"
        );
    }

    /// Number of parts, at least two.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// The bounds of a part: the least possible key (inclusive) and the end (exclusive); none: unbounded.
    pub fn keys(&self, part: usize) -> (Option<&[u8]>, Option<&[u8]>) {
        let pivot = |index: usize| Some(self.subtrees.get(index)?.pivot.bytes.as_slice());
        match self.parts.get(part) {
            Some(range) => (
                pivot(range.start).filter(|_| range.start > 0),
                pivot(range.end),
            ),
            None => (None, None),
        }
    }
}

/// Merges `input`, which must lie within [`Cut::keys`], into one part. Errors and `changes` are as in
/// [`merge`](super::merge()).
pub fn merge_part<S: NodeSource, K: NodeSink, I: EntryStream, C: Changes>(
    source: &S,
    sink: &mut K,
    (tree, cut, part): (&TreeRecord, &Cut, usize),
    input: &mut I,
    rules: &MergeRules<'_>,
    changes: &mut C,
) -> Result<MergedPart> {
    let mut merge = Merge::new(source, sink, tree, input, rules, changes);
    let range = cut.parts.get(part).cloned().unwrap_or_default();
    for index in range {
        let Some(child) = cut.subtrees.get(index) else {
            break;
        };
        let right = cut.subtrees.get(index + 1);
        let bound = right.map(|right| Bound::new(right.clone(), cut.level));
        merge.pass(child.clone(), cut.level, bound.as_ref())?;
    }
    merge.end_part()
}

/// Puts the merged parts, complete and in order, under one root.
pub fn join<S: NodeSource, K: NodeSink, C: Changes>(
    source: &S,
    sink: &mut K,
    (tree, cut): (&TreeRecord, &Cut),
    parts: Vec<MergedPart>,
    rules: &MergeRules<'_>,
    changes: &mut C,
) -> Result<TreeRecord> {
    let mut nothing = Nothing;
    let mut merge = Merge::new(source, sink, tree, &mut nothing, rules, changes);
    for (pointer, level) in &cut.above {
        merge.free(pointer, *level);
    }
    for part in parts {
        merge.counts.add(&part.counts);
        // Waiting nodes of a higher level belong left of those of a lower one.
        for (level, nodes) in part.waiting.into_iter().enumerate().rev() {
            let level = level as u8;
            for node in nodes {
                merge.close_below(level)?;
                merge.filter.output.add(node, level)?;
            }
        }
    }
    merge.finish()
}

struct Nothing;

impl EntryStream for Nothing {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        Ok(None)
    }
}

impl<S: NodeSource, K: NodeSink, I: EntryStream, C: Changes> Merge<'_, S, K, I, C> {
    /// Rewrites a node of the old tree if necessary; otherwise adds it to the output.
    fn pass(&mut self, node: Child, level: u8, bound: Option<&Bound>) -> Result<()> {
        if self.enters(&node, level, bound)? {
            self.visit(node, level, bound)
        } else {
            self.filter.output.add(node, level)
        }
    }

    /// Closes the leaves; the waiting nodes of all levels are left to [`join`].
    fn end_part(mut self) -> Result<MergedPart> {
        self.filter.close();
        self.close_below(0)?;
        let waiting = self.filter.output.take_waiting();
        Ok(MergedPart {
            waiting,
            counts: self.totals(),
        })
    }

    /// Closes the levels 0 to `level` and balances small remainders with the old nodes left of them, if any.
    fn close_below(&mut self, level: u8) -> Result<()> {
        for open in 0..=level {
            if self.filter.output.is_scanty(open)? {
                self.pull_left(open)?;
            }
            self.filter.output.close(open)?;
        }
        Ok(())
    }
}
