//! Prefetch of the nodes on the paths of sorted keys, level by level, each level with parallel reads.

use std::ops::Range;

use kreon_base::Result;
use kreon_format::{IndexNode, PagePointer, Pivot, Route, TreeRecord};

use super::leaf_keys::partition_point;
use super::{Filtering, NodeSource};

/// Nodes of one round: enough queue depth for any device, few enough for a small mapping.
pub(super) const ROUND_NODES_MAX: usize = 128;

/// Loads the index nodes and leaves for gets of `keys` (ascending), about 128 at a time, without leaves whose
/// filters exclude all their keys. A hint: evicted nodes are read again by the get. Returns the indices of
/// the keys that a filter passed, ascending; their leaves were not resident before.
pub fn prefetch_paths<S: NodeSource>(
    source: &S,
    tree: &TreeRecord,
    keys: &[&[u8]],
) -> Result<Vec<usize>> {
    let key = |index: usize| keys.get(index).copied().unwrap_or_default();
    let mut passed = Vec::new();
    let mut wants = |node: &IndexNode<'_>, child: usize, range: Range<usize>| {
        let leaf = node.child(child)?;
        if source.is_resident(&leaf) {
            return Ok(false);
        }
        let before = passed.len();
        for index in range {
            match node.may_hold(child, key(index))? {
                None => return Ok(true),
                Some(false) => {}
                Some(true) => {
                    source.filtered(&leaf, Filtering::Passed);
                    passed.push(index);
                }
            }
        }
        Ok(passed.len() > before)
    };
    let mut done = 0;
    while done < keys.len() {
        done = round(source, tree, done..keys.len(), &key, &mut wants)?;
    }
    Ok(passed)
}

/// Loads the nodes for the first keys of `range`, up to [`ROUND_NODES_MAX`] per level; returns the end of the
/// covered keys: at least one key, all keys in a tree of a single leaf.
pub(super) fn prefetch_round<'k, S: NodeSource>(
    source: &S,
    tree: &TreeRecord,
    range: Range<usize>,
    key: impl Fn(usize) -> &'k [u8],
) -> Result<usize> {
    round(source, tree, range, &key, &mut |_, _, _| Ok(true))
}

/// One round; `wants` decides for a leaf and its keys whether to load it.
fn round<'k, S: NodeSource>(
    source: &S,
    tree: &TreeRecord,
    range: Range<usize>,
    key: &impl Fn(usize) -> &'k [u8],
    wants: &mut impl FnMut(&IndexNode<'_>, usize, Range<usize>) -> Result<bool>,
) -> Result<usize> {
    let mut covered = range.end;
    let mut nodes: Vec<Visit> = tree.root.map(|root| (root, range)).into_iter().collect();
    for level in (1..tree.height).rev() {
        let mut children = Vec::new();
        for (node, range) in nodes {
            if children.len() >= ROUND_NODES_MAX {
                break;
            }
            covered = source.read_node(&node, level, |page| {
                let node = IndexNode::open(page)?;
                spread(&node, range, key, &mut children, |child, range| {
                    Ok(level > 1 || wants(&node, child, range)?)
                })
            })?;
        }
        let pointers: Vec<_> = children.iter().map(|(pointer, _)| *pointer).collect();
        source.prefetch(&pointers, level - 1)?;
        nodes = children;
    }
    Ok(covered)
}

/// A node and the indices of the keys below it.
type Visit = (PagePointer, Range<usize>);

/// Adds the wanted children for the keys `range`, up to [`ROUND_NODES_MAX`] in all; returns the end of the
/// covered keys.
fn spread<'k>(
    node: &IndexNode<'_>,
    range: Range<usize>,
    key: &impl Fn(usize) -> &'k [u8],
    children: &mut Vec<Visit>,
    mut wants: impl FnMut(usize, Range<usize>) -> Result<bool>,
) -> Result<usize> {
    let mut pivot = Pivot::default();
    let mut at = range.start;
    while at < range.end && children.len() < ROUND_NODES_MAX {
        // The first of tied children is good enough for a hint.
        let child = match node.route(key(at))? {
            Route::Child(child) => child,
            Route::Ambiguous { first, .. } => first,
        };
        let end = if child + 1 < node.len() {
            node.pivot_into(child + 1, &mut pivot)?;
            partition_point(at + 1..range.end, |index| Ok(key(index) < &*pivot.bytes))?
        } else {
            range.end
        };
        if wants(child, at..end)? {
            children.push((node.child(child)?, at..end));
        }
        at = end;
    }
    Ok(at)
}
