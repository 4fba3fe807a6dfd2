//! Pairs on their way into log and tree.

use kreon_base::{
    Attributes, Codec, Error, KEY_BYTES_MAX, LogOffset, Lsn, Payload, Result, SEGMENT_BYTES,
    VALUE_BYTES_MAX,
};
use kreon_format::RecordKind;

use super::super::ground::Ground;
use crate::compression;
use crate::placement;
use crate::regions::RegionState;
use crate::state::{Held, Storage};
use crate::tree::{Entry, EntryStream};
use kreon_log::NewRecord;

/// A load cannot try again when space runs out: before it writes so many bytes, log that is kept for the change feed makes way
/// for them and their nodes.
const RELIEVED_BYTES: u64 = 4 << 20;
const RELIEVED_SEGMENTS: u32 = 8;

/// Pairs to load, in strictly ascending order of their keys.
pub trait Pairs {
    /// The next key and its value; none at the end.
    ///
    /// # Errors
    /// Any, to give the load up.
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>>;
}

/// Takes pairs, writes the values that do not go into leaves to the log, and hands on the entries.
pub struct Incoming<'a, P> {
    on: &'a Ground,
    region: &'a RegionState,
    pairs: &'a mut P,
    /// The key before.
    pub last: Vec<u8>,
    /// The first key.
    pub first: Vec<u8>,
    /// The value, packed.
    packed: Vec<u8>,
    /// Pairs so far.
    pub count: u64,
    /// Bytes of pairs since kept log was last asked to make way.
    unrelieved_bytes: u64,
    /// The load failed because of its pairs; the store is as good as before.
    pub is_refused: bool,
}

impl<'a, P: Pairs> Incoming<'a, P> {
    pub fn new(on: &'a Ground, region: &'a RegionState, pairs: &'a mut P) -> Self {
        Self {
            on,
            region,
            pairs,
            last: Vec::new(),
            first: Vec::new(),
            packed: Vec::new(),
            count: 0,
            unrelieved_bytes: 0,
            is_refused: false,
        }
    }
}

impl<P: Pairs> EntryStream for Incoming<'_, P> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let is_refused = &mut self.is_refused;
        let refused = |error| {
            *is_refused = true;
            error
        };
        let last = (self.count > 0).then_some(&self.last);
        let pair = self.pairs.next().and_then(|pair| match pair {
            Some((key, value)) => check(key, value, last).map(|()| Some((key, value))),
            None => Ok(None),
        });
        let Some((key, value)) = pair.map_err(refused)? else {
            return Ok(None);
        };
        self.last.clear();
        self.last.extend_from_slice(key);
        if self.count == 0 {
            self.first.extend_from_slice(key);
        }
        self.count += 1;
        let pair_bytes = (key.len() + value.len()) as u64;
        self.unrelieved_bytes += pair_bytes;
        if self.unrelieved_bytes >= RELIEVED_BYTES || self.count == 1 {
            self.unrelieved_bytes = 0;
            let of_pair = (pair_bytes / SEGMENT_BYTES) as u32;
            self.on.versions.relieve(RELIEVED_SEGMENTS + of_pair)?;
        }
        let (own, options) = (&self.region.own, &self.on.storage.options);
        let mut attributes = Attributes::expiring(own.expires(|| options.clock.now()));
        let mut value = value;
        self.packed.clear();
        let codec = own.compression();
        if codec != Codec::None && compression::pack(codec, value, &mut self.packed) {
            (value, attributes) = (&self.packed, attributes.with_codec(codec));
        }
        let value_bytes = Some((attributes.stored_bytes() + value.len()) as u32);
        let inline_max = own.inline_value_bytes_max(options.inline_value_bytes_max);
        let whole = (Some(value), attributes);
        let mut payload = placement::place(key, value_bytes, whole, LogOffset(0), inline_max);
        if let Payload::Logged { offset, .. } = &mut payload {
            *offset = append(self.on, self.region, key, (value, attributes))?;
        } else {
            self.on.storage.check_open()?;
        }
        Ok(Some(Entry {
            key,
            lsn: Lsn(0),
            payload,
        }))
    }
}

fn check(key: &[u8], value: &[u8], last: Option<&Vec<u8>>) -> Result<()> {
    if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
        return Err(Error::invalid(format!(
            "a key has at most {KEY_BYTES_MAX} bytes and a value {VALUE_BYTES_MAX}, these {} and {}",
            key.len(),
            value.len()
        )));
    }
    match last {
        Some(last) if key <= last.as_slice() => Err(Error::invalid(format!(
            "keys to load must ascend: {:?} came behind {:?}",
            brief(key),
            brief(last)
        ))),
        _ => Ok(()),
    }
}

fn brief(key: &[u8]) -> String {
    let shown = key.get(..32).unwrap_or(key);
    let rest = if key.len() > shown.len() { ".." } else { "" };
    format!("{}{rest}", shown.escape_ascii())
}

/// Appends a record of a load; inside the gate, because a closed gate promises the end of a whole record at the log's
/// tail.
pub fn append(
    on: &Ground,
    region: &RegionState,
    key: &[u8],
    value: (&[u8], Attributes),
) -> Result<LogOffset> {
    let _inside = on.visibility.gate.enter();
    on.storage.check_open()?;
    region.check()?;
    let (place, _) = on.storage.log.append_one(&record(region, key, value))?;
    Ok(place.offset)
}

/// Writes a notice for the change feed: pairs from `first` to `last` are about to be visible. The feed stops in front of it
/// until the load has ended.
///
/// # Errors
/// `OutOfSpace`, `Closed`, `Poisoned`.
pub fn tell_feed<'a>(
    on: &'a Ground,
    region: &RegionState,
    (first, last): (&[u8], &[u8]),
) -> Result<Option<Held<'a>>> {
    let Storage {
        feed, log, poison, ..
    } = on.storage.as_ref();
    if !feed.is_on() {
        return Ok(None);
    }
    let notice = NewRecord {
        kind: RecordKind::Loaded,
        ..record(region, first, (last, Attributes::NONE))
    };
    let _inside = on.visibility.gate.enter();
    on.storage.check_open()?;
    region.check()?;
    let held = feed.hold(log, poison);
    log.append_one(&notice)?;
    Ok(Some(held))
}

/// A record of a load; without key and value a mark.
pub fn record<'a>(
    region: &RegionState,
    key: &'a [u8],
    (value, attributes): (&'a [u8], Attributes),
) -> NewRecord<'a> {
    NewRecord {
        region: region.id,
        kind: RecordKind::Ingested,
        key,
        value,
        attributes,
    }
}
