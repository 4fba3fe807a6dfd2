//! The way to a node that is to be changed: through nodes that can change, latches hand over hand.

use kreon_base::Epoch;
use kreon_sync::RwLockReadGuard;

use super::generation::Generation;
use super::node::{NodeState, OldNode};

/// How far a descent came.
pub(crate) enum Reached<R> {
    /// To the node.
    Done(R),
    /// To a node that must be copied first.
    Old(OldNode),
    /// The whole tree is lower than the wanted height.
    Above,
}

/// Calls `change` with the node of this height on the way to `key`, latched exclusively.
pub(crate) fn at_level<R>(
    generation: &Generation,
    key: &[u8],
    level: u8,
    change: impl FnOnce(&mut NodeState) -> R,
) -> Reached<R> {
    let Some(root) = generation.open_root() else {
        return Reached::Old(generation.start().clone());
    };
    loop {
        let state = root.read();
        if state.level > level {
            return descend(generation.epoch, state, key, level, change);
        }
        if state.level < level {
            return Reached::Above;
        }
        drop(state);
        let mut state = root.write();
        if state.level == level {
            return Reached::Done(change(&mut state));
        }
        // It has grown or shrunk between the two latches.
    }
}

fn descend<R>(
    epoch: Epoch,
    state: RwLockReadGuard<'_, NodeState>,
    key: &[u8],
    level: u8,
    change: impl FnOnce(&mut NodeState) -> R,
) -> Reached<R> {
    let slot = state.index().route(key);
    // The child lives as long as this frame of the stack, whatever becomes of its parent.
    let child = match state.changeable_child(slot, epoch) {
        Ok(child) => child,
        Err(old) => return Reached::Old(old),
    };
    if state.level - 1 > level {
        let child_state = child.read();
        drop(state);
        return descend(epoch, child_state, key, level, change);
    }
    let mut child_state = child.write();
    drop(state);
    Reached::Done(change(&mut child_state))
}
