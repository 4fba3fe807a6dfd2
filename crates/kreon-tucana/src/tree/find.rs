//! The way to a leaf, for readers: latches of open nodes hand over hand, then pages of the mapping.

use std::sync::Arc;

use kreon_base::Result;
use kreon_sync::RwLockReadGuard;

use super::generation::Generation;
use super::node::{Fences, NodeState, OldNode, OpenNode};
use super::parts::Parts;
use crate::format::{Index, Leaf, NodePointer};

/// Which leaf is looked for.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// That of this key.
    Key(&'a [u8]),
    /// The last one with keys below this bound; `None` is above all keys. Only here the fences are told.
    Range(Side<'a>),
}

/// A leaf at one end of what a scan still wants.
#[derive(Clone, Copy)]
pub(crate) enum Side<'a> {
    /// The leaf of this key.
    From(&'a [u8]),
    /// The last leaf with keys below this bound; `None` is above all keys.
    Below(Option<&'a [u8]>),
}

/// Calls `use_leaf` with the leaf, as it is at one moment between the begin of the call and its end. The fences are those of
/// the leaf for a [`Target::Range`], else anything.
///
/// # Errors
/// Those of the device; `Corruption`.
pub(crate) fn at_leaf<L, R>(
    parts: &Parts<L>,
    generation: &Generation,
    target: Target<'_>,
    use_leaf: impl FnOnce(Leaf<'_>, &Fences) -> R,
) -> Result<R> {
    if let Some(root) = generation.open_root() {
        return in_open(parts, (root, root.read()), target, use_leaf);
    }
    let start = generation.start();
    match &start.frozen {
        Some(root) => in_open(parts, (root, root.read()), target, use_leaf),
        None => in_pages(parts, start.clone(), Fences::default(), target, use_leaf),
    }
}

/// Where a descent goes on.
struct Way {
    slot: usize,
    child: NodePointer,
    fences: Fences,
}

impl Target<'_> {
    fn route(&self, index: Index<'_>) -> usize {
        match self {
            Self::Key(key) | Self::Range(Side::From(key)) => index.route(key),
            Self::Range(Side::Below(bound)) => index.route_below(*bound),
        }
    }

    fn way(&self, index: Index<'_>, fences: &Fences) -> Way {
        let slot = self.route(index);
        Way {
            slot,
            child: index.child(slot),
            fences: match self {
                Self::Key(_) => Fences::default(),
                Self::Range(_) => fences.of_child(index, slot),
            },
        }
    }
}

fn in_open<L, R>(
    parts: &Parts<L>,
    (node, state): (&OpenNode, RwLockReadGuard<'_, NodeState>),
    target: Target<'_>,
    use_leaf: impl FnOnce(Leaf<'_>, &Fences) -> R,
) -> Result<R> {
    let level = state.level;
    if level == 0 {
        return match state.body.bytes() {
            Some(body) => Ok(use_leaf(Leaf::of(body), &state.fences)),
            None => parts.read_node(node.pointer, 0, |bytes| {
                use_leaf(Leaf::of(bytes), &state.fences)
            }),
        };
    }
    let (slot, child) = match state.body.bytes() {
        Some(body) => {
            let slot = target.route(Index::of(body));
            (slot, Index::of(body).child(slot))
        }
        None => parts.read_node(node.pointer, level, |bytes| {
            let slot = target.route(Index::of(bytes));
            (slot, Index::of(bytes).child(slot))
        })?,
    };
    if let Some(child) = state.child(slot) {
        let child = Arc::clone(child);
        let child_state = child.read();
        drop(state);
        return in_open(parts, (&child, child_state), target, use_leaf);
    }
    let fences = match (target, state.body.bytes()) {
        (Target::Key(_), _) => Fences::default(),
        (_, Some(body)) => state.fences.of_child(Index::of(body), slot),
        (_, None) => parts.read_node(node.pointer, level, |bytes| {
            state.fences.of_child(Index::of(bytes), slot)
        })?,
    };
    drop(state);
    let below = OldNode {
        pointer: child,
        level: level - 1,
        frozen: None,
    };
    in_pages(parts, below, fences, target, use_leaf)
}

/// The same through nodes that are nothing but pages.
fn in_pages<L, R>(
    parts: &Parts<L>,
    from: OldNode,
    mut fences: Fences,
    target: Target<'_>,
    use_leaf: impl FnOnce(Leaf<'_>, &Fences) -> R,
) -> Result<R> {
    let (mut pointer, mut level) = (from.pointer, from.level);
    while level > 0 {
        let way = parts.read_node(pointer, level, |bytes| {
            target.way(Index::of(bytes), &fences)
        })?;
        debug_assert!(way.slot < crate::format::CHILDREN_MAX);
        (pointer, fences, level) = (way.child, way.fences, level - 1);
    }
    parts.read_node(pointer, 0, |bytes| use_leaf(Leaf::of(bytes), &fences))
}
