//! Finds the item of a key.
//!
//! A key that stands whole in the index is found there. Of a longer key the index has a beginning, and perhaps several
//! items whose keys begin alike: their head parts are read, one after the other, until one is of the key.

use kreon_base::{Error, KeyHash, Result};

use super::parts::Parts;
use super::queue::Op;
use super::request::Task;
use crate::format::{FoundHead, decode_head};
use crate::index::{Index, Location};
use crate::space::Place;

/// What is known of the item of a key.
pub enum Lookup {
    /// There is none.
    None,
    /// It is there.
    At(Place),
    /// This cell has to be read first.
    Read(Place),
    /// It is not near where it was, which `op` does not say any more: to be looked up with the key in line.
    Moved,
}

/// What requests of one key wait for in line. Gets of keys that stand whole in the index, or whose place is known, gets
/// that have found the item, and work on slots, wait for nobody.
pub fn index_key(index: &Index, op: &Op) -> Option<u64> {
    let request = &op.request;
    let is_whole = index.is_whole(&request.key);
    match request.task {
        Task::Erase(_) => None,
        Task::Get if is_whole || op.near.is_some() || op.get.is_some() => None,
        _ => {
            let part = request.key.get(..index.key_bytes_max());
            let hash = KeyHash::new(u64::from(is_whole));
            Some(hash.bytes(part.unwrap_or(&request.key)).finish())
        }
    }
}

/// Looks the key of `op` up, with what is in memory. Items of other keys that were ruled out stay so as long as `op` holds
/// its index key.
pub fn look_up(parts: &mut Parts, op: &mut Op) -> Result<Lookup> {
    if let Some(at) = op.near {
        let lookup = look_near(parts, op, at)?;
        if matches!(lookup, Lookup::Moved) {
            op.near = None;
        }
        return Ok(lookup);
    }
    let Parts {
        seal,
        index,
        cells,
        room,
        scratch,
        ..
    } = parts;
    if let Some((version, place)) = op.seen
        && version == index.version()
    {
        return Ok(Lookup::At(place));
    }
    let key = &op.request.key;
    let is_whole = index.is_whole(key);
    kreon_base::planted!(TieGroupFirstOnly => let is_whole = true);
    for at in index.find(key) {
        let place = room.place(at).ok_or_else(|| nowhere(at))?;
        if is_whole {
            op.seen = Some((index.version(), place));
            return Ok(Lookup::At(place));
        }
        if op.found == Some(at) {
            return Ok(Lookup::At(place));
        }
        if op.others_up_to.is_some_and(|ruled_out| at <= ruled_out) {
            continue;
        }
        let Some(content) = cells.content(place.cell, scratch) else {
            return Ok(Lookup::Read(place));
        };
        let bytes = content.get(place.at..).unwrap_or(&[]);
        match decode_head(bytes, *seal, place.slot) {
            FoundHead::Head(head) if head.is_of(key, op.request.key_hash) => {
                op.found = Some(at);
                return Ok(Lookup::At(place));
            }
            FoundHead::Head(_) => op.others_up_to = Some(at),
            FoundHead::Blank | FoundHead::BadHead => return Err(place.damaged()),
        }
    }
    Ok(Lookup::None)
}

/// Looks the key of `op` up at a place where it was a moment ago. Nothing is kept between two calls, so the index key need
/// not be held: many keys of one tie group are read at a time.
fn look_near(parts: &mut Parts, op: &Op, at: Location) -> Result<Lookup> {
    let key = &op.request.key;
    if !parts.index.has(key, at) {
        return Ok(Lookup::Moved);
    }
    let place = parts.room.place(at).ok_or_else(|| nowhere(at))?;
    let Some(content) = parts.cells.content(place.cell, &mut parts.scratch) else {
        return Ok(Lookup::Read(place));
    };
    let bytes = content.get(place.at..).unwrap_or(&[]);
    match decode_head(bytes, parts.seal, place.slot) {
        FoundHead::Head(head) if head.is_of(key, op.request.key_hash) => Ok(Lookup::At(place)),
        FoundHead::Head(_) => Ok(Lookup::Moved),
        FoundHead::Blank | FoundHead::BadHead => Err(place.damaged()),
    }
}

fn nowhere(at: Location) -> Error {
    let offset = at.offset();
    Error::corruption(format!(
        "the index names an item at byte {offset}, where no slot begins"
    ))
}
