//! The first change of a node in an epoch: it gets a new page, and a frame of its own with its content
//! (copy-on-write: `Tucana 2.2.3`).
//!
//! The content of an old node never changes, so it is copied before any latch is taken; under the latch of the parent only
//! the pointer changes.

use std::sync::Arc;

use kreon_base::{PageBytes, Result};

use super::counters::Count;
use super::generation::Generation;
use super::node::{Body, Fences, NodeState, OldNode, OpenNode};
use super::parts::{Parts, Spare};
use super::reach::{Reached, at_level};
use crate::format::{Index, NodeHeader};

/// Makes `old`, a node on the way to `key`, one that can change, unless another thread did. Its parent can change, or it
/// is the root.
///
/// # Errors
/// `OutOfSpace` without a frame or page for it; those of the device.
pub(crate) fn touch<L>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
    old: &OldNode,
) -> Result<()> {
    let mut spare = parts.spare(generation.epoch)?;
    let children = copy(parts, old, spare.bytes())?;
    let pointer = spare.pointer;
    NodeHeader::move_to(spare.bytes(), pointer);
    let is_used = match generation.open_root() {
        None => generation.set_open_root(open(&mut spare, old, Fences::default(), children)),
        Some(_) => {
            let outcome = at_level(generation, key, old.level + 1, |parent| {
                install(parent, key, old, (&mut spare, children))
            });
            matches!(outcome, Reached::Done(true))
        }
    };
    if is_used {
        generation.replace(old.pointer);
        parts.counters.add(Count::Copy);
    }
    Ok(())
}

/// Lets the parent point at the copy, if it still points at the old node.
fn install(
    parent: &mut NodeState,
    key: &[u8],
    old: &OldNode,
    (spare, children): (&mut Spare, Vec<Option<Arc<OpenNode>>>),
) -> bool {
    let slot = parent.index().route(key);
    // A pointer names one content for ever, so the same pointer is the same node.
    if parent.index().child(slot) != old.pointer {
        return false;
    }
    let fences = parent.fences_of(slot);
    parent.index_mut().set_child(slot, spare.pointer);
    parent.children[slot] = Some(open(spare, old, fences, children));
    true
}

fn open(
    spare: &mut Spare,
    old: &OldNode,
    fences: Fences,
    children: Vec<Option<Arc<OpenNode>>>,
) -> Arc<OpenNode> {
    let state = NodeState {
        body: Body::Open(spare.take()),
        level: old.level,
        fences,
        children,
        deleted: Default::default(),
    };
    OpenNode::new(spare.pointer, state)
}

/// Copies the content of a node, and returns its open children.
fn copy<L>(
    parts: &Parts<L>,
    old: &OldNode,
    into: &mut PageBytes,
) -> Result<Vec<Option<Arc<OpenNode>>>> {
    if let Some(node) = &old.frozen {
        let state = node.read();
        match state.body.bytes() {
            Some(body) => into.copy_from_slice(body),
            None => parts.read_node(old.pointer, old.level, |bytes| into.copy_from_slice(bytes))?,
        }
        let is_open = |child: &&Arc<OpenNode>| !parts.published.covers(child.epoch());
        let children = state.children.iter();
        return Ok(children
            .map(|child| child.as_ref().filter(is_open).cloned())
            .collect());
    }
    parts.read_node(old.pointer, old.level, |bytes| into.copy_from_slice(bytes))?;
    Ok(match old.level {
        0 => Vec::new(),
        _ => vec![None; Index::of(into).count()],
    })
}
