//! What a slot holds, and whether its partition knows it.

use std::ops::Bound;

use crate::format::{Found, Item, ItemHead, ItemKind, LargeValue, Slot};
use crate::index::{Direction, Index, Location, Run, Spot};
use crate::partition::Parts;

/// What a slot is.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has the newest item of its key, with so many bytes of value.
    Live(u32),
    /// It has a whole item that was replaced.
    Outdated,
    /// It has a tombstone that something depends on.
    Tombstone,
    /// It has a part of a large value.
    Part,
    /// Nothing depends on it.
    Free,
    /// The partition has no such slot any more.
    Gone,
    /// It should not be so. The key, as far as the slot tells it.
    Doubt(&'static str, Option<Vec<u8>>),
}

/// Compares what was read of `slot` with what the partition knows now.
pub fn judge(parts: &Parts, slot: Slot, found: &Found<'_>) -> Verdict {
    let slots = parts.room.slots();
    let place = Location::new(slot.offset).and_then(|at| slots.place(at));
    let Some(place) = place.filter(|place| place.slot == slot) else {
        return Verdict::Gone;
    };
    let is_used = slots.is_in_use(place.location);
    match found {
        Found::Blank if is_used => doubt("a slot in use holds nothing", None),
        Found::Blank => Verdict::Free,
        Found::BadHead => doubt("no item, and not blank", None),
        Found::Torn(head) => torn(parts, place.location, is_used, head),
        Found::Whole(item) => whole(parts, place.location, is_used, item),
    }
}

/// An item that nothing depends on may be torn: its slot was being used again when the power went, and the sector with its head
/// is still the old one.
fn torn(parts: &Parts, at: Location, is_used: bool, head: &ItemHead<'_>) -> Verdict {
    let has_copies = parts.room.stale().has_copies(head.key_hash);
    match head.kind {
        ItemKind::Large | ItemKind::Part | ItemKind::Tombstone if !is_used => Verdict::Free,
        ItemKind::Put | ItemKind::Large
            if is_used && has_copies && !head_leads_to(&parts.index, head, at) =>
        {
            Verdict::Outdated
        }
        _ => doubt("the body of the item does not verify", Some(head)),
    }
}

fn whole(parts: &Parts, at: Location, is_used: bool, item: &Item<'_>) -> Verdict {
    let head = &item.head;
    let stale = parts.room.stale();
    if head.timestamp > parts.last {
        return doubt("the item is newer than all of its partition", Some(head));
    }
    match head.kind {
        ItemKind::Tombstone if !is_used => Verdict::Free,
        ItemKind::Tombstone if stale.is_buried(head.key_hash) => Verdict::Tombstone,
        ItemKind::Tombstone => doubt("a slot in use has a tombstone without use", Some(head)),
        ItemKind::Part if is_used => Verdict::Part,
        ItemKind::Part => Verdict::Free,
        ItemKind::Put | ItemKind::Large if leads_to(&parts.index, item.key, at) => {
            match head.kind == ItemKind::Put || has_all_parts(parts, at, item) {
                true => Verdict::Live(head.value_bytes),
                false => doubt("a part of the large value is missing", Some(head)),
            }
        }
        ItemKind::Put | ItemKind::Large if is_used && stale.has_copies(head.key_hash) => {
            Verdict::Outdated
        }
        ItemKind::Put if is_used => doubt("nothing leads to the item", Some(head)),
        ItemKind::Put => doubt("a free slot has an item, which may come back", Some(head)),
        ItemKind::Large => Verdict::Free,
    }
}

/// Whether the partition knows as many parts as the head at `at` names. A recovery leaves damaged ones out.
fn has_all_parts(parts: &Parts, at: Location, head: &Item<'_>) -> bool {
    let named = LargeValue::decode(head.value).map(|value| value.parts.len());
    named.is_ok_and(|named| named == parts.large.parts_of(at))
}

/// Whether the index has an entry of `key` at `at`.
pub fn leads_to(index: &Index, key: &[u8], at: Location) -> bool {
    if index.is_whole(key) {
        return index.find(key).any(|found| found == at);
    }
    // Many keys may begin alike: the entry is looked up by its place.
    let spot = Spot {
        at: Some(at),
        ..index.spot(key)
    };
    has_entry(index, spot)
}

/// Whether the index has an entry at `at` for a key that begins as that of `head`.
fn head_leads_to(index: &Index, head: &ItemHead<'_>, at: Location) -> bool {
    let prefix = head.key_prefix;
    let spot = Spot {
        bytes: prefix.get(..index.key_bytes_max()).unwrap_or(prefix),
        whole: usize::from(head.key_bytes) <= index.key_bytes_max(),
        at: Some(at),
    };
    has_entry(index, spot)
}

/// Whether the index has exactly this entry.
pub fn has_entry(index: &Index, spot: Spot<'_>) -> bool {
    let mut run = Run::new();
    let from = Bound::Included(spot);
    index.run(from, Bound::Unbounded, Direction::Forward, 1, &mut run);
    run.get(0).is_some_and(|entry| entry.spot() == spot)
}

fn doubt(what: &'static str, head: Option<&ItemHead<'_>>) -> Verdict {
    let named = head.filter(|head| head.kind != ItemKind::Part);
    Verdict::Doubt(what, named.map(|head| head.key_prefix.to_vec()))
}
