//! Loading the nodes that sorted keys lead to, level by level, each level at queue depth.

use std::ops::Range;

use kreon_base::{PageBytes, Result};
use kreon_format::{IndexNode, PagePointer, Pivot, Route, TreeRecord};

use super::NodeSource;

/// Nodes that one round loads together: deep enough for any device, few enough for a small mapping.
pub(super) const ROUND_NODES_MAX: usize = 128;

/// Loads the index nodes and leaves that `keys` (ascending) lead to, about 128 at a time. A hint: what
/// cannot be kept is read again when it is needed.
pub fn prefetch_paths<S: NodeSource>(source: &S, tree: &TreeRecord, keys: &[&[u8]]) -> Result<()> {
    let key = |index: usize| keys.get(index).copied().unwrap_or_default();
    let mut done = 0;
    while done < keys.len() {
        done = prefetch_round(source, tree, done..keys.len(), key)?;
    }
    Ok(())
}

/// Loads the nodes for the first of the keys `range`, up to [`ROUND_NODES_MAX`] of each level; returns
/// how far it got: at least one key, all of them in a tree that is one leaf.
pub(super) fn prefetch_round<'k, S: NodeSource>(
    source: &S,
    tree: &TreeRecord,
    range: Range<usize>,
    key: impl Fn(usize) -> &'k [u8],
) -> Result<usize> {
    let mut covered = range.end;
    let mut nodes: Vec<Visit> = tree.root.map(|root| (root, range)).into_iter().collect();
    for level in (1..tree.height).rev() {
        let mut children = Vec::new();
        for (node, range) in nodes {
            if children.len() >= ROUND_NODES_MAX {
                break;
            }
            source.read_node(&node, level, |page| {
                spread(page, range, &key, &mut children)
            })?;
        }
        let pointers: Vec<_> = children.iter().map(|(pointer, _)| *pointer).collect();
        source.prefetch(&pointers, level - 1)?;
        if let Some((_, range)) = children.last() {
            covered = range.end;
        }
        nodes = children;
    }
    Ok(covered)
}

/// A node and the keys that lead to it.
type Visit = (PagePointer, Range<usize>);

/// Adds the children that keys `range` lead to, up to [`ROUND_NODES_MAX`] in all.
fn spread<'k>(
    page: &PageBytes,
    range: Range<usize>,
    key: &impl Fn(usize) -> &'k [u8],
    children: &mut Vec<Visit>,
) -> Result<()> {
    let node = IndexNode::open(page)?;
    let mut pivot = Pivot::default();
    let mut at = range.start;
    while at < range.end && children.len() < ROUND_NODES_MAX {
        // Of tied children the first will do for a hint.
        let child = match node.route(key(at))? {
            Route::Child(child) => child,
            Route::Ambiguous { first, .. } => first,
        };
        let end = if child + 1 < node.len() {
            node.pivot_into(child + 1, &mut pivot)?;
            first_not_below(at + 1..range.end, key, &pivot.bytes)
        } else {
            range.end
        };
        children.push((node.child(child)?, at..end));
        at = end;
    }
    Ok(())
}

fn first_not_below<'k>(
    range: Range<usize>,
    key: &impl Fn(usize) -> &'k [u8],
    pivot: &[u8],
) -> usize {
    let (mut first, mut end) = (range.start, range.end);
    while first < end {
        let middle = first.midpoint(end);
        if key(middle) < pivot {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    first
}
