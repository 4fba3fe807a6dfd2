//! Changes of one leaf, which is latched exclusively. Keys are read where hashes or prefixes are equal, in memory only:
//! no I/O happens under a latch.

use std::cmp::Ordering;
use std::ops::Range;

use super::counters::Count;
use super::known::KnownKeys;
use super::node::NodeState;
use super::parts::Parts;
use crate::format::{ENTRIES_MAX, Leaf, LeafEntry, Location, key_hash};
use crate::log::{Placed, RecordLog};

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafChange {
    /// It is done. The record that the key had before, if it had one.
    Done(Option<Location>),
    /// A newer write of the key is there: nothing is to be done.
    Superseded,
    /// The leaf has no room.
    Full,
    /// This record must be read first.
    Absent(Location),
    /// A key was deleted in this leaf after the record was appended, perhaps this one: it must be appended again.
    Outdated,
}

/// Where a key is in a leaf.
enum Spot {
    At(usize),
    /// Its place is here.
    Before(usize),
    Absent(Location),
}

/// Lets `key` point at its newest record.
pub(crate) fn put<L: RecordLog>(
    parts: &Parts<L>,
    state: &mut NodeState,
    (key, known): (&[u8], &KnownKeys),
    placed: &Placed,
) -> LeafChange {
    let hash = key_hash(key);
    let index = match spot_of(parts, state.leaf(), (key, known), hash) {
        Spot::Absent(location) => return LeafChange::Absent(location),
        Spot::At(index) => {
            let before = state.leaf().location(index);
            if parts.log.lsn(before) > placed.lsn {
                return LeafChange::Superseded;
            }
            state.leaf_mut().set_location(index, placed.location);
            return LeafChange::Done(Some(before));
        }
        Spot::Before(index) => index,
    };
    if placed.lsn < state.deleted {
        return LeafChange::Outdated;
    }
    if state.leaf().count() == ENTRIES_MAX {
        return LeafChange::Full;
    }
    let entry = LeafEntry {
        head: state.leaf().head_of(key),
        hash,
        location: placed.location,
    };
    state.leaf_mut().insert(index, entry);
    LeafChange::Done(None)
}

/// Removes `key`, whose deletion is `placed`.
pub(crate) fn remove<L: RecordLog>(
    parts: &Parts<L>,
    state: &mut NodeState,
    (key, known): (&[u8], &KnownKeys),
    placed: &Placed,
) -> LeafChange {
    let before = match spot_of(parts, state.leaf(), (key, known), key_hash(key)) {
        Spot::Absent(location) => return LeafChange::Absent(location),
        Spot::Before(_) => None,
        Spot::At(index) => {
            let before = state.leaf().location(index);
            if parts.log.lsn(before) > placed.lsn {
                return LeafChange::Superseded;
            }
            state.leaf_mut().remove(index);
            Some(before)
        }
    };
    state.deleted = state.deleted.max(placed.lsn);
    LeafChange::Done(before)
}

/// Lets the entry of `key` that points at `from` point at `to`, where the record was copied. False if no entry does.
pub(crate) fn relocate(state: &mut NodeState, key: &[u8], from: Location, to: Location) -> bool {
    let found = entry_at(state.leaf(), key, from);
    if let Some(index) = found {
        state.leaf_mut().set_location(index, to);
    }
    found.is_some()
}

/// The entry of `key` that points at `location`: no other record is there, so no key has to be read.
pub(crate) fn entry_at(leaf: Leaf<'_>, key: &[u8], location: Location) -> Option<usize> {
    let mut range = leaf.range_of(leaf.head_of(key));
    range.find(|index| leaf.location(*index) == location)
}

/// Finds the entry of a key, or its place.
fn spot_of<L: RecordLog>(
    parts: &Parts<L>,
    leaf: Leaf<'_>,
    (key, known): (&[u8], &KnownKeys),
    hash: u32,
) -> Spot {
    let range = leaf.range_of(leaf.head_of(key));
    for index in range.clone().filter(|&index| leaf.hash(index) == hash) {
        let location = leaf.location(index);
        match known.with(&*parts.log, location, |other| other == key) {
            None => return Spot::Absent(location),
            Some(is_it) => {
                parts.counters.add(Count::HashMatch);
                if is_it {
                    return Spot::At(index);
                }
                parts.counters.add(Count::HashMiss);
            }
        }
    }
    place_among(parts, leaf, range, (key, known))
}

/// Finds the place of a key that is not in the leaf among the entries with its head.
fn place_among<L: RecordLog>(
    parts: &Parts<L>,
    leaf: Leaf<'_>,
    range: Range<usize>,
    (key, known): (&[u8], &KnownKeys),
) -> Spot {
    let (mut first, mut end) = (range.start, range.end);
    while first < end {
        let middle = first.midpoint(end);
        let location = leaf.location(middle);
        match known.with(&*parts.log, location, |other| other.cmp(key)) {
            None => return Spot::Absent(location),
            Some(Ordering::Less) => first = middle + 1,
            Some(_) => end = middle,
        }
    }
    parts.counters.add(Count::Search);
    if !range.is_empty() {
        parts.counters.add(Count::Tie);
    }
    Spot::Before(first)
}
