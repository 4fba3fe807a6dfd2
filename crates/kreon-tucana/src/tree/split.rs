//! Splits: the parent and the full node are latched exclusively, the new node and its frame are had beforehand.

use std::sync::Arc;

use kreon_base::{RegionId, Result};

use super::counters::Count;
use super::generation::Generation;
use super::known::KnownKeys;
use super::node::{Body, Fences, NodeState, OldNode, OpenNode};
use super::parts::{Parts, Spare};
use super::reach::{Reached, at_level};
use super::touch::touch;
use crate::format::{
    ENTRIES_MAX, HeadShift, IndexMut, LeafEntry, LeafMut, Location, NodeHeader, head_of, separator,
};
use crate::log::RecordLog;

/// How a split went.
enum Split {
    /// The node has room now.
    Done,
    /// The parent has no room for a pivot of this length.
    ParentFull(usize),
    /// The node must be copied first.
    Old(OldNode),
    /// This record must be read first.
    Absent(Location),
}

/// What needs room in a node.
#[derive(Clone, Copy)]
enum Need {
    /// An entry of a leaf.
    Entry,
    /// A child with a pivot of this length.
    Child(usize),
}

/// Splits the leaf on the way to `key` unless it has room for another entry.
///
/// # Errors
/// `OutOfSpace` without frames or pages; those of the device.
pub(crate) fn split_leaf<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
) -> Result<()> {
    make_room(parts, generation, key, 0, Need::Entry)
}

fn make_room<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
    level: u8,
    need: Need,
) -> Result<()> {
    let (mut spare, mut known) = (parts.spare(generation.epoch)?, KnownKeys::default());
    loop {
        let outcome = at_level(generation, key, level + 1, |parent| {
            split_child(parts, generation, (parent, key), (need, &known), &mut spare)
        });
        match outcome {
            Reached::Done(Split::Done) => return Ok(()),
            Reached::Done(Split::ParentFull(pivot_bytes)) => {
                make_room(parts, generation, key, level + 1, Need::Child(pivot_bytes))?;
            }
            Reached::Done(Split::Absent(location)) => known.read(&*parts.log, location)?,
            Reached::Done(Split::Old(old)) | Reached::Old(old) => {
                touch(parts, generation, key, &old)?;
            }
            Reached::Above => {
                if grow(generation, level, &mut spare) {
                    spare = parts.spare(generation.epoch)?;
                }
            }
        }
    }
}

/// Makes the root, if it has this height, the only child of a new root. The root stays the same open node: readers that
/// wait for its latch find its new content. False if another thread was quicker.
fn grow(generation: &Generation, level: u8, spare: &mut Spare) -> bool {
    let Some(root) = generation.open_root() else {
        return false;
    };
    let mut state = root.write();
    if state.level != level {
        return false;
    }
    let pointer = spare.pointer;
    spare.bytes().copy_from_slice(state.bytes());
    NodeHeader::move_to(spare.bytes(), pointer);
    let child = NodeState {
        body: Body::Open(spare.take()),
        level,
        fences: Fences::default(),
        children: std::mem::take(&mut state.children),
        deleted: state.deleted,
    };
    IndexMut::begin(state.bytes_mut(), level + 1, pointer);
    state.level = level + 1;
    state.children = vec![Some(OpenNode::new(pointer, child))];
    true
}

fn has_room(state: &NodeState, need: Need) -> bool {
    match need {
        Need::Entry => state.leaf().count() < ENTRIES_MAX,
        Need::Child(pivot_bytes) => state.index().has_room(pivot_bytes),
    }
}

fn split_child<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    (parent, key): (&mut NodeState, &[u8]),
    (need, known): (Need, &KnownKeys),
    spare: &mut Spare,
) -> Split {
    let slot = parent.index().route(key);
    let child = match parent.changeable_child(slot, generation.epoch) {
        Ok(child) => child,
        Err(old) => return Split::Old(old),
    };
    let mut left = child.write();
    if has_room(&left, need) {
        return Split::Done;
    }
    let cut = match need {
        Need::Entry => cut_of_leaf(parts, &left, (key, known)),
        Need::Child(_) => Ok(cut_of_index(&left)),
    };
    let (at, pivot) = match cut {
        Ok(cut) => cut,
        Err(absent) => return Split::Absent(absent),
    };
    if !parent.index().has_room(pivot.len()) {
        return Split::ParentFull(pivot.len());
    }
    let right = match need {
        Need::Entry => divide_leaf(parts, &mut left, at, &pivot, spare),
        Need::Child(_) => divide_index(parts.seal.region, &mut left, at, spare),
    };
    parent.index_mut().insert(slot + 1, right.pointer, &pivot);
    parent.children.insert(slot + 1, Some(right));
    parts.counters.add(Count::Split);
    Split::Done
}

/// The first entry of the right leaf, and the pivot between the two.
fn cut_of_leaf<L: RecordLog>(
    parts: &Parts<L>,
    state: &NodeState,
    (key, known): (&[u8], &KnownKeys),
) -> Result<(usize, Box<[u8]>), Location> {
    let leaf = state.leaf();
    let count = leaf.count();
    let key_at = |index| {
        let location = leaf.location(index);
        let read = known.with(&*parts.log, location, |key| Box::<[u8]>::from(key));
        read.ok_or(location)
    };
    let last = key_at(count - 1)?;
    if last[..] < *key {
        // Keys that come in order fill one leaf after the other.
        return Ok((count, separator(&last, key).into()));
    }
    let at = count / 2;
    let (before, behind) = (key_at(at - 1)?, key_at(at)?);
    Ok((at, separator(&before, &behind).into()))
}

/// The same of an index node.
fn cut_of_index(state: &NodeState) -> (usize, Box<[u8]>) {
    let index = state.index();
    let at = index.count() / 2;
    (at, index.pivot(at).into())
}

/// Cuts the range of a node in two; the node keeps the lower part.
fn cut_fences(left: &mut NodeState, pivot: &[u8]) -> Fences {
    debug_assert!(*left.fences.low < *pivot);
    let high = left.fences.high.replace(pivot.into());
    debug_assert!(high.as_ref().is_none_or(|high| *pivot < **high));
    Fences {
        low: pivot.into(),
        high,
    }
}

/// Starts the node of a spare.
fn begin(region: RegionId, level: u8, spare: &mut Spare) {
    let header = NodeHeader {
        pointer: spare.pointer,
        region,
        level,
    };
    header.begin(spare.bytes());
}

fn divide_leaf<L: RecordLog>(
    parts: &Parts<L>,
    left: &mut NodeState,
    at: usize,
    pivot: &[u8],
    spare: &mut Spare,
) -> Arc<OpenNode> {
    begin(parts.seal.region, 0, spare);
    let right_fences = cut_fences(left, pivot);
    let mut right = LeafMut::of(spare.bytes());
    right.set_prefix_bytes(left.leaf().prefix_bytes());
    right.append(left.leaf(), at..left.leaf().count(), HeadShift::Same);
    left.leaf_mut().truncate(at);
    lengthen_prefix(parts, &mut right, &right_fences);
    let fences = left.fences.clone();
    lengthen_prefix(parts, &mut left.leaf_mut(), &fences);
    let state = NodeState {
        body: Body::Open(spare.take()),
        level: 0,
        fences: right_fences,
        children: Vec::new(),
        deleted: left.deleted,
    };
    OpenNode::new(spare.pointer, state)
}

/// Gives a leaf the longest prefix that its range has, so that heads tell more keys apart. That needs all its keys; if one
/// is not in memory, the leaf keeps its prefix until the next split.
fn lengthen_prefix<L: RecordLog>(parts: &Parts<L>, leaf: &mut LeafMut<'_>, fences: &Fences) {
    let prefix_bytes = fences.common_bytes();
    if prefix_bytes <= leaf.as_leaf().prefix_bytes() {
        return;
    }
    let count = leaf.as_leaf().count();
    let head_at = |index| {
        let location = leaf.as_leaf().location(index);
        let log = &parts.log;
        log.read_resident(location, |record| head_of(record.key, prefix_bytes))
    };
    let heads: Option<Vec<u64>> = (0..count).map(head_at).collect();
    let Some(heads) = heads else {
        return;
    };
    debug_assert!(heads.is_sorted());
    for (index, head) in heads.into_iter().enumerate() {
        let entry = leaf.as_leaf().entry(index);
        leaf.set(index, LeafEntry { head, ..entry });
    }
    leaf.set_prefix_bytes(prefix_bytes);
}

fn divide_index(
    region: RegionId,
    left: &mut NodeState,
    at: usize,
    spare: &mut Spare,
) -> Arc<OpenNode> {
    let level = left.level;
    begin(region, level, spare);
    let pivot = left.index_mut().split_off(at, level, spare.bytes());
    let fences = cut_fences(left, &pivot);
    let state = NodeState {
        body: Body::Open(spare.take()),
        level,
        fences,
        children: left.children.split_off(at),
        deleted: Default::default(),
    };
    OpenNode::new(spare.pointer, state)
}
