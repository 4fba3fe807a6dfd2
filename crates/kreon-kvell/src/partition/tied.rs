//! Lists the keys of a tie group. Only the items tell them, so all of them are looked at, many cells at a time.
//!
//! The request holds the index key of the group: changes of the group wait behind it, so each key that was there at its
//! beginning is found, once, wherever its item moves afterwards.

use kreon_base::Error;

use super::parts::Parts;
use super::request::OpNo;
use super::request::{Reply, Tied, TiedKey};
use super::step::Step;
use crate::cache::CellNo;
use crate::format::{Found, FoundHead, ItemKind, ItemSeal, decode, decode_head};
use crate::index::{Index, Location};
use crate::number_hash::NumberMap;
use crate::space::Place;

/// Cells of a listing that are read at a time at most, and their bytes, but for the first.
const CELLS_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 2 << 20;

/// The listings of a partition that are under way.
#[derive(Default)]
pub struct Listings {
    of: NumberMap<OpNo, Listing>,
}

impl Listings {
    /// Carries the listing for request `no` as far as memory allows, of the keys that look like `key` in the index.
    pub fn advance(&mut self, no: OpNo, key: &[u8], parts: &mut Parts) -> Step {
        let begun = self.of.remove(&no);
        let mut listing = begun.unwrap_or_else(|| Listing::new(&parts.index, key));
        let places = listing.advance(parts);
        if places.is_empty() {
            return Step::Reply(Reply::Tied(listing.tied));
        }
        self.of.insert(no, listing);
        Step::ReadSome(places)
    }

    /// A cell cannot be read that request `no` waits for; `false` if that is no listing.
    pub fn unreadable(&mut self, no: OpNo, cell: CellNo, error: &Error) -> bool {
        let listing = self.of.get_mut(&no);
        listing
            .map(|listing| listing.unreadable(cell, error))
            .is_some()
    }
}

struct Listing {
    /// Bytes of the keys that stand in the index.
    group: Vec<u8>,
    /// Items that were not looked at, the last one first.
    rest: Vec<Location>,
    /// Items whose cells are being read, by place.
    awaited: Vec<Place>,
    tied: Tied,
}

impl Listing {
    fn new(index: &Index, key: &[u8]) -> Self {
        let mut rest: Vec<Location> = index.find(key).collect();
        rest.reverse();
        Self {
            group: index.spot(key).bytes.to_vec(),
            rest,
            awaited: Vec::new(),
            tied: Tied::default(),
        }
    }

    /// Looks at the items that are in memory. The cells that are to be read before the next call; none: all was looked at.
    fn advance(&mut self, parts: &mut Parts) -> Vec<Place> {
        let mut awaited = std::mem::take(&mut self.awaited);
        awaited.retain(|place| !self.look(parts, place));
        let (mut cells, mut len_bytes) = (0, 0);
        let mut last = None;
        for place in &awaited {
            if last.replace(place.cell) != Some(place.cell) {
                cells += 1;
                len_bytes += place.cell_bytes;
            }
        }
        while let Some(at) = self.rest.pop() {
            let Some(place) = parts.room.place(at) else {
                let error = Error::corruption("the index names an item where no slot begins");
                self.tied.failures.push(error);
                continue;
            };
            if self.look(parts, &place) {
                continue;
            }
            if last.replace(place.cell) != Some(place.cell) {
                cells += 1;
                len_bytes += place.cell_bytes;
            }
            if cells > 1 && (cells > CELLS_AT_ONCE || len_bytes > BYTES_AT_ONCE) {
                self.rest.push(at);
                break;
            }
            awaited.push(place);
        }
        self.awaited = awaited;
        let mut places = self.awaited.clone();
        places.dedup_by_key(|place| place.cell);
        places
    }

    /// A cell cannot be read: its items do not tell their keys.
    fn unreadable(&mut self, cell: CellNo, error: &Error) {
        let failures = &mut self.tied.failures;
        self.awaited.retain(|place| {
            let is_there = place.cell == cell;
            if is_there {
                failures.push(error.clone());
            }
            !is_there
        });
    }

    /// Notes the key of the item at `place`; `false` if that is not in memory.
    fn look(&mut self, parts: &mut Parts, place: &Place) -> bool {
        let (seal, read_bytes) = (parts.seal, parts.read_bytes(place));
        let Some(content) = parts.cells.content(place.cell, &mut parts.scratch) else {
            return false;
        };
        let bytes = content.get(place.at..).unwrap_or(&[]);
        match key_of(bytes, seal, place).filter(|key| key.starts_with(&self.group)) {
            Some(key) => self.tied.keys.push(TiedKey {
                key: key.to_vec(),
                at: place.location,
                read_bytes,
            }),
            None => self.tied.failures.push(place.damaged()),
        }
        true
    }
}

/// The key of the item in a slot, if there is one. Its value is not verified, unless the key is too long for the head part.
fn key_of<'a>(bytes: &'a [u8], seal: ItemSeal, place: &Place) -> Option<&'a [u8]> {
    let FoundHead::Head(head) = decode_head(bytes, seal, place.slot) else {
        return None;
    };
    if !matches!(head.kind, ItemKind::Put | ItemKind::Large) {
        return None;
    }
    if head.key_prefix.len() == usize::from(head.key_bytes) {
        return Some(head.key_prefix);
    }
    match decode(bytes, seal, place.slot) {
        Found::Whole(item) => Some(item.key),
        _ => None,
    }
}
