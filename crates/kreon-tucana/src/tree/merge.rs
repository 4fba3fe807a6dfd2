//! Merges: a node that has become small is merged with a neighbour below the same parent. The parent and the two are
//! latched exclusively.

use kreon_base::Result;

use super::counters::Count;
use super::generation::Generation;
use super::node::{NodeState, OldNode};
use super::parts::Parts;
use super::reach::{Reached, at_level};
use super::touch::touch;
use crate::format::{CHILDREN_MAX, ENTRIES_MAX, HeadShift, NodeHeader};

/// A leaf with fewer entries is small, and so is an index node with fewer children.
const ENTRIES_MIN: usize = ENTRIES_MAX / 4;
const CHILDREN_MIN: usize = CHILDREN_MAX / 8;

/// Most entries of a leaf that two are merged into: the next insertions are not to split it at once.
const MERGED_MAX: usize = ENTRIES_MAX * 3 / 4;

/// How a merge went.
enum Merge {
    Done,
    /// It has no neighbour.
    Alone,
    /// It is not small, or the two together are too large.
    Left,
    /// One of the two, on the way to this key, must be copied first.
    Old(Box<[u8]>, OldNode),
}

/// Whether a leaf with so many entries is to be merged.
pub(crate) fn is_small(entries: usize) -> bool {
    entries < ENTRIES_MIN
}

/// Merges the leaf on the way to `key` with neighbours while it is small, and the nodes above it.
///
/// # Errors
/// `OutOfSpace` without a frame or page for the neighbour; those of the device. The tree is as good as before.
pub(crate) fn merge_leaf<L>(parts: &Parts<L>, generation: &Generation, key: &[u8]) -> Result<()> {
    // A node that had no neighbour may get one when its parent is merged.
    while merge_path(parts, generation, key)? {}
    while shrink(generation) {}
    Ok(())
}

/// Merges each small node on the way to `key` once. Whether there was one.
fn merge_path<L>(parts: &Parts<L>, generation: &Generation, key: &[u8]) -> Result<bool> {
    let (mut level, mut is_merged) = (0, false);
    loop {
        let merged = at_level(generation, key, level + 1, |parent| {
            merge_child(parts, generation, parent, key)
        });
        match merged {
            Reached::Done(Merge::Done) => {
                is_merged = true;
                level += 1;
            }
            Reached::Done(Merge::Alone) => level += 1,
            Reached::Done(Merge::Old(key, old)) => touch(parts, generation, &key, &old)?,
            Reached::Old(old) => touch(parts, generation, key, &old)?,
            Reached::Done(Merge::Left) | Reached::Above => return Ok(is_merged),
        }
    }
}

fn merge_child<L>(
    parts: &Parts<L>,
    generation: &Generation,
    parent: &mut NodeState,
    key: &[u8],
) -> Merge {
    let count = parent.index().count();
    if count < 2 {
        return Merge::Alone;
    }
    let slot = parent.index().route(key);
    let left_slot = slot.min(count - 2);
    let mut pair = Vec::with_capacity(2);
    for slot in [left_slot, left_slot + 1] {
        match parent.changeable_child(slot, generation.epoch) {
            Ok(child) => pair.push(child),
            Err(old) => return Merge::Old(parent.fences_of(slot).low, old),
        }
    }
    let (mut left, mut right) = (pair[0].write(), pair[1].write());
    let small = match slot == left_slot {
        true => &left,
        false => &right,
    };
    let pivot: Box<[u8]> = parent.index().pivot(left_slot + 1).into();
    let is_merged = match small.level {
        0 => is_small(small.leaf().count()) && merge_leaves(&mut left, &mut right),
        _ => small.index().count() < CHILDREN_MIN && merge_indexes(&mut left, &mut right, &pivot),
    };
    if !is_merged {
        return Merge::Left;
    }
    left.fences.high = right.fences.high.take();
    left.deleted = left.deleted.max(right.deleted);
    parent.index_mut().remove(left_slot + 1);
    parent.children.remove(left_slot + 1);
    generation.replace(pair[1].pointer);
    parts.counters.add(Count::Merge);
    Merge::Done
}

/// Moves the entries of the right leaf to the left one, if they have room.
fn merge_leaves(left: &mut NodeState, right: &mut NodeState) -> bool {
    if left.leaf().count() + right.leaf().count() > MERGED_MAX {
        return false;
    }
    let mut both = left.fences.clone();
    both.high = right.fences.high.clone();
    let prefixes = [left.leaf().prefix_bytes(), right.leaf().prefix_bytes()];
    let prefix_bytes = both.common_bytes().min(prefixes[0]).min(prefixes[1]);
    let right_part = right.fences.low[prefix_bytes..prefixes[1]].to_vec();
    if prefix_bytes < prefixes[0] {
        let left_part = left.fences.low[prefix_bytes..prefixes[0]].to_vec();
        let shift = HeadShift::Longer(&left_part);
        left.leaf_mut().shift(prefix_bytes, shift);
    }
    let shift = match right_part.is_empty() {
        true => HeadShift::Same,
        false => HeadShift::Longer(&right_part),
    };
    let count = right.leaf().count();
    left.leaf_mut().append(right.leaf(), 0..count, shift);
    true
}

/// The same of index nodes.
fn merge_indexes(left: &mut NodeState, right: &mut NodeState, pivot: &[u8]) -> bool {
    if !left.index().has_room_for(right.index(), pivot.len()) {
        return false;
    }
    left.index_mut().merge(right.index(), pivot);
    left.children.append(&mut right.children);
    true
}

/// Gives the root the content of its only child. False if it has several, or the child cannot change now.
fn shrink(generation: &Generation) -> bool {
    let Some(root) = generation.open_root() else {
        return false;
    };
    let mut state = root.write();
    if state.level == 0 || state.index().count() > 1 {
        return false;
    }
    let Ok(child) = state.changeable_child(0, generation.epoch) else {
        return false;
    };
    let mut below = child.write();
    state.bytes_mut().copy_from_slice(below.bytes());
    NodeHeader::move_to(state.bytes_mut(), root.pointer);
    state.level = below.level;
    state.children = std::mem::take(&mut below.children);
    state.deleted = state.deleted.max(below.deleted);
    generation.replace(child.pointer);
    true
}
