//! All the damage that a sweep does.

use std::collections::BTreeMap;

use kreon_base::PAGE_BYTES;
use kreon_sim::{Dice, Image, SECTOR_BYTES};

use super::atlas::Atlas;
use super::hurt::{Edit, Hurt};
use super::judge::Case;
use super::part::{Kind, Part};

/// Of a longer part only some bytes are hit: these at its start, few at its end, and samples between.
const WHOLE_BYTES_MAX: u64 = 4096;
const LONG_START_BYTES: u64 = 512;

/// Of the bytes of a page whose like was hit byte by byte already, one in so many is hit.
const LATER_STRIDE: usize = 16;

/// Of the bytes between, one in so many.
const SAMPLE_STRIDE: u64 = 4099;

/// Of the places of the same kind so many are taken for a misplaced page or sector.
const DONORS: usize = 3;

/// What a sweep does to `case`, each with the class it counts as. What stands in every store alike is
/// hit byte by byte in the first.
pub fn hurts(case: &Case, is_first: bool) -> Vec<(String, Hurt)> {
    let mut all = Vec::new();
    for (kind, parts) in by_kind(&case.atlas) {
        let class = |what: &str| format!("{}: {what}", kind.name());
        let is_known = !is_first && matches!(kind, Kind::Superblock | Kind::Catalogue | Kind::Leaf);
        let stride = if is_known { LATER_STRIDE } else { 1 };
        for hurt in bytes_of(kind, &parts).into_iter().step_by(stride) {
            all.push((class("flipped byte"), hurt));
        }
        for part in &parts {
            blocks_of(part, &parts, |what, edit| {
                all.push((class(what), Hurt::one(edit)))
            });
        }
    }
    let slots: Vec<_> = case
        .atlas
        .parts
        .iter()
        .filter(|p| matches!(p.kind, Kind::Superblock))
        .collect();
    let stride = if is_first { 1 } else { LATER_STRIDE };
    for hurt in all_slots(&slots).into_iter().step_by(stride) {
        all.push(("all superblock slots: flipped byte".to_owned(), hurt));
    }
    for edit in [
        Edit::Zero(0, PAGE_BYTES as u64),
        Edit::Zero(0, SECTOR_BYTES as u64),
    ] {
        let hurt = Hurt(
            slots
                .iter()
                .map(|slot| shifted(edit, slot.range.start))
                .collect(),
        );
        all.push(("all superblock slots: zeroed".to_owned(), hurt));
    }
    for hurt in unused(&case.atlas, &case.fixture.image) {
        all.push(("bytes of nothing in use".to_owned(), hurt));
    }
    all
}

fn by_kind(atlas: &Atlas) -> BTreeMap<Kind, Vec<&Part>> {
    let mut kinds: BTreeMap<Kind, Vec<&Part>> = BTreeMap::new();
    for part in &atlas.parts {
        kinds.entry(part.kind).or_default().push(part);
    }
    kinds
}

/// Two masks for a byte: all its bits, and one.
fn masks(place: u64) -> [u8; 2] {
    [0xff, 1 << (Dice::new(place).roll() % 8)]
}

/// Every byte of every part of a kind.
///
/// Parts that only readers of theirs need are hit together, one byte of each at a time: each must be
/// told by itself. The others end the open, and so they are hit one by one.
fn bytes_of(kind: Kind, parts: &[&Part]) -> Vec<Hurt> {
    let are_apart = matches!(
        kind,
        Kind::Index(_) | Kind::Leaf | Kind::Record | Kind::Header
    );
    let mut hurts = Vec::new();
    if !are_apart {
        for (number, part) in parts.iter().enumerate() {
            let is_later_page = number > 0 && is_page(part);
            let stride = if is_later_page { LATER_STRIDE } else { 1 };
            let places = places(part).skip(number % stride).step_by(stride);
            for place in places.map(|within| part.range.start + within) {
                hurts.extend(masks(place).map(|mask| Hurt::one(Edit::Flip(place, mask))));
            }
        }
        return hurts;
    }
    let mut rounds: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for part in parts {
        for within in places(part) {
            rounds
                .entry(within)
                .or_default()
                .push(part.range.start + within);
        }
    }
    for (within, places) in rounds {
        for mask in masks(within) {
            hurts.push(Hurt(
                places
                    .iter()
                    .map(|place| Edit::Flip(*place, mask))
                    .collect(),
            ));
        }
    }
    hurts
}

fn is_page(part: &Part) -> bool {
    part.range.end - part.range.start == PAGE_BYTES as u64
}

/// The bytes of a part that are hit.
fn places(part: &Part) -> impl Iterator<Item = u64> + use<> {
    let len_bytes = part.range.end - part.range.start;
    let end = len_bytes.saturating_sub(if len_bytes > WHOLE_BYTES_MAX {
        64
    } else {
        len_bytes
    });
    let whole = match len_bytes > WHOLE_BYTES_MAX {
        true => LONG_START_BYTES,
        false => len_bytes,
    };
    let between = (whole..end).step_by(SAMPLE_STRIDE as usize);
    (0..whole).chain(between).chain(end.max(whole)..len_bytes)
}

/// Sectors and pages of a part: zeroed, as they were, and from elsewhere.
fn blocks_of(part: &Part, same_kind: &[&Part], mut add: impl FnMut(&'static str, Edit)) {
    let is_page = is_page(part);
    let donors: Vec<_> = same_kind
        .iter()
        .filter(|other| other.range != part.range)
        .collect();
    let stride = donors.len().div_ceil(DONORS).max(1);
    let first = Dice::new(part.range.start).below(stride as u64) as usize;
    let donors: Vec<_> = donors.into_iter().skip(first).step_by(stride).collect();
    for (block_bytes, names) in [
        (
            SECTOR_BYTES as u64,
            ["zeroed sector", "older sector", "misplaced sector"],
        ),
        (
            PAGE_BYTES as u64,
            ["zeroed page", "older page", "misplaced page"],
        ),
    ] {
        let from = part.range.start / block_bytes * block_bytes;
        let blocks = (from..part.range.end)
            .step_by(block_bytes as usize)
            .take(16);
        for (index, at) in blocks.enumerate() {
            add(names[0], Edit::Zero(at, block_bytes));
            add(names[1], Edit::Older(at, block_bytes));
            for donor in &donors {
                let start = donor.range.start / block_bytes * block_bytes;
                let within = if is_page {
                    index as u64 * block_bytes
                } else {
                    0
                };
                add(names[2], Edit::Copy(start + within, at, block_bytes));
            }
        }
    }
}

fn shifted(edit: Edit, by: u64) -> Edit {
    match edit {
        Edit::Flip(at, mask) => Edit::Flip(at + by, mask),
        Edit::Zero(at, len_bytes) => Edit::Zero(at + by, len_bytes),
        Edit::Copy(from, at, len_bytes) => Edit::Copy(from, at + by, len_bytes),
        Edit::Older(at, len_bytes) => Edit::Older(at + by, len_bytes),
    }
}

/// The same byte of all slots: no copy is left.
fn all_slots(slots: &[&Part]) -> Vec<Hurt> {
    let mut hurts = Vec::new();
    for within in 0..PAGE_BYTES as u64 {
        for mask in masks(within) {
            let edits = slots
                .iter()
                .map(|slot| Edit::Flip(slot.range.start + within, mask));
            hurts.push(Hurt(edits.collect()));
        }
    }
    hurts
}

/// Bytes that were written and that nothing in use holds: one page after the other, and all at once.
fn unused(atlas: &Atlas, image: &Image) -> Vec<Hurt> {
    let mut hurts = vec![Hurt::default()];
    let pages = image.len_bytes() / PAGE_BYTES as u64;
    for page in 0..pages {
        let start = page * PAGE_BYTES as u64;
        let bytes = image.bytes(start, PAGE_BYTES);
        if bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        let mut free = Vec::new();
        for (place, byte) in (start..).zip(bytes) {
            if byte != 0 && atlas.touched(&(place..place + 1)).is_empty() {
                free.push(Edit::Flip(place, 0xff));
            }
        }
        if !free.is_empty() {
            hurts[0].0.extend_from_slice(&free);
            hurts.push(Hurt(free));
        }
    }
    hurts
}
