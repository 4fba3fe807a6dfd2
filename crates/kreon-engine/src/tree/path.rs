//! The path from a root to a leaf, and the steps from that leaf to its neighbours.
//!
//! It holds pointers, not pages, so that an idle scan pins no frame. A step to a neighbour reads the
//! parent again, which is usually resident.

use kreon_base::{Error, Result};
use kreon_format::{IndexNode, PagePointer, Route, TreeRecord};

use super::NodeSource;
use super::leaf_keys::count_before;
use super::search::root_of;

/// The path to a leaf; empty for a tree of a single leaf.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// From the root down.
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    node: PagePointer,
    /// Index of the child on the path.
    child: usize,
    /// Number of children of the node.
    children: usize,
}

/// The destination of a descent.
#[derive(Clone, Copy)]
pub(super) enum Target<'k> {
    First,
    Last,
    /// The leaf for the newest version of the key; where a pivot ties with the key, maybe the leaf before.
    Key(&'k [u8]),
}

/// Direction of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

enum Choice {
    Child(Step, PagePointer),
    /// The key ties with the pivots between the children `tied`; the first of them has index `first`.
    Among {
        first: usize,
        children: usize,
        tied: Vec<PagePointer>,
    },
}

impl Path {
    /// Descends from the root and returns the leaf; none if the tree is empty.
    pub(super) fn go_down<S: NodeSource>(
        &mut self,
        source: &S,
        tree: &TreeRecord,
        target: Target<'_>,
    ) -> Result<Option<PagePointer>> {
        self.steps.clear();
        let Some((root, level)) = root_of(tree)? else {
            return Ok(None);
        };
        self.extend(source, root, level, target).map(Some)
    }

    /// Steps to the neighbour of the leaf and returns it; none, and the path unchanged, at the end of the tree.
    pub(super) fn go_beside<S: NodeSource>(
        &mut self,
        source: &S,
        side: Side,
    ) -> Result<Option<PagePointer>> {
        let can_turn = |step: &Step| match side {
            Side::Left => step.child > 0,
            Side::Right => step.child + 1 < step.children,
        };
        let Some(at) = self.steps.iter().rposition(can_turn) else {
            return Ok(None);
        };
        let level = (self.steps.len() - at) as u8;
        let Some(step) = self.steps.get(at).copied() else {
            return Ok(None);
        };
        let (child, target) = match side {
            Side::Left => (step.child - 1, Target::Last),
            Side::Right => (step.child + 1, Target::First),
        };
        let node = source.read_node(&step.node, level, |page| {
            IndexNode::open(page)?.child(child)
        })?;
        self.steps.truncate(at);
        self.steps.push(Step { child, ..step });
        self.extend(source, node, level - 1, target).map(Some)
    }

    /// Descends from `node` of `level`.
    fn extend<S: NodeSource>(
        &mut self,
        source: &S,
        mut node: PagePointer,
        level: u8,
        target: Target<'_>,
    ) -> Result<PagePointer> {
        for level in (1..=level).rev() {
            let (step, child) = match choose(source, &node, level, target)? {
                Choice::Child(step, child) => (step, child),
                Choice::Among {
                    first,
                    children,
                    tied,
                } => resolve(source, node, level, target, (first, children), &tied)?,
            };
            self.steps.push(step);
            node = child;
        }
        Ok(node)
    }
}

fn choose<S: NodeSource>(
    source: &S,
    node: &PagePointer,
    level: u8,
    target: Target<'_>,
) -> Result<Choice> {
    source.read_node(node, level, |page| {
        let index = IndexNode::open(page)?;
        let children = index.len();
        let child = match target {
            Target::First => 0,
            Target::Last => children - 1,
            Target::Key(key) => match index.route(key)? {
                Route::Child(child) => child,
                Route::Ambiguous { first, end } => {
                    let tied = (first..end).map(|child| index.child(child));
                    return Ok(Choice::Among {
                        first,
                        children,
                        tied: tied.collect::<Result<_>>()?,
                    });
                }
            },
        };
        let step = Step {
            node: *node,
            child,
            children,
        };
        Ok(Choice::Child(step, index.child(child)?))
    })
}

/// The last of the tied children that begins before `target`, or the first of them.
#[cold]
fn resolve<S: NodeSource>(
    source: &S,
    node: PagePointer,
    level: u8,
    target: Target<'_>,
    (first, children): (usize, usize),
    tied: &[PagePointer],
) -> Result<(Step, PagePointer)> {
    let key = match target {
        Target::Key(key) => key,
        Target::First | Target::Last => &[],
    };
    let others = tied.get(1..).unwrap_or_default();
    let before = count_before(source, others, level - 1, |first_key, _| first_key < key)?;
    let child = tied
        .get(before)
        .ok_or_else(|| Error::corruption(format!("{} has no child for a key", node.page)))?;
    let step = Step {
        node,
        child: first + before,
        children,
    };
    Ok((step, *child))
}
