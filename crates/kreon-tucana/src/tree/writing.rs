//! A write: its record goes to the log, then its place into the leaf of its key.

use kreon_base::{Lsn, Result};

use super::change::{self, LeafChange};
use super::find::{Target, at_leaf};
use super::generation::Generation;
use super::known::KnownKeys;
use super::merge;
use super::node::NodeState;
use super::parts::Parts;
use super::reach::{Reached, at_level};
use super::split::split_leaf;
use super::touch::touch;
use crate::format::{Location, key_hash};
use crate::log::{Placed, Record, RecordLog};

/// A write that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Its key had a value before.
    pub existed: bool,
    /// Where its record is in the order of all records.
    pub lsn: Lsn,
}

/// Brings the nodes on the way to a key into memory. Returns the keys that were not there of the records that are likely to be its own.
///
/// # Errors
/// Those of the device; `Corruption`.
pub(crate) fn look_ahead<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
) -> Result<KnownKeys> {
    let locations = at_leaf(parts, generation, Target::Key(key), |leaf, _| {
        let hash = key_hash(key);
        let range = leaf.range_of(leaf.head_of(key));
        let matches = range.filter(|&index| leaf.hash(index) == hash);
        matches
            .map(|index| leaf.location(index))
            .collect::<Vec<_>>()
    })?;
    let mut known = KnownKeys::default();
    for location in locations {
        if known.with(&*parts.log, location, |_| ()).is_none() {
            parts.misses.note();
            known.read(&*parts.log, location)?;
        }
    }
    Ok(known)
}

/// Appends a record and applies it. `None` if the log has no room ready for it.
///
/// # Errors
/// Those of the log; `OutOfSpace` without frames or pages; those of the device. If `appended` was set the record is in the log,
/// there the last time, all the same.
pub(crate) fn write<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    (record, known): (&Record<'_>, &mut KnownKeys),
    appended: &mut Option<Lsn>,
) -> Result<Option<Written>> {
    loop {
        let Some(placed) = parts.log.append(record)? else {
            return Ok(None);
        };
        *appended = Some(placed.lsn);
        if let Applied::Done(before) = apply(parts, generation, (record, known), &placed)? {
            return Ok(Some(Written {
                existed: before.is_some(),
                lsn: placed.lsn,
            }));
        }
    }
}

/// What came of a record.
pub(crate) enum Applied {
    /// The tree is as if it had been applied in the order of the records. The one that its key had before, if any.
    Done(Option<Location>),
    /// It must be appended again.
    Outdated,
}

/// Puts the place of a record into the leaf of its key, or removes what is there.
///
/// # Errors
/// `OutOfSpace` without frames or pages; those of the device.
pub(crate) fn apply<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    (record, known): (&Record<'_>, &mut KnownKeys),
    placed: &Placed,
) -> Result<Applied> {
    let key = record.key;
    loop {
        let reached = at_level(generation, key, 0, |leaf| match record.value {
            Some(_) => (change::put(parts, leaf, (key, known), placed), false),
            None => {
                let change = change::remove(parts, leaf, (key, known), placed);
                (change, merge::is_small(leaf.leaf().count()))
            }
        });
        let (change, is_small) = match reached {
            Reached::Done(done) => done,
            Reached::Old(old) => {
                touch(parts, generation, key, &old)?;
                continue;
            }
            // Every tree has leaves.
            Reached::Above => continue,
        };
        match change {
            LeafChange::Done(before) => {
                let now = record.value.map(|_| placed.location);
                generation.charges.change(before, now);
                if is_small && let Err(error) = merge::merge_leaf(parts, generation, key) {
                    // The deletion is done all the same; the next one in this leaf tries again.
                    tracing::debug!(%error, "a small leaf was not merged");
                }
                return Ok(Applied::Done(before));
            }
            LeafChange::Full => split_leaf(parts, generation, key)?,
            LeafChange::Absent(location) => {
                parts.misses.note();
                known.read(&*parts.log, location)?;
            }
            LeafChange::Outdated => return Ok(Applied::Outdated),
        }
    }
}

/// Lets the entry of `key` that points at `from` point at `to`. False if no entry does.
///
/// # Errors
/// `OutOfSpace` without frames or pages; those of the device.
pub(crate) fn relocate<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
    (from, to): (Location, Location),
) -> Result<bool> {
    loop {
        let change = |leaf: &mut NodeState| change::relocate(leaf, key, from, to);
        match at_level(generation, key, 0, change) {
            Reached::Done(is_done) => {
                if is_done {
                    generation.charges.change(Some(from), Some(to));
                }
                return Ok(is_done);
            }
            Reached::Old(old) => touch(parts, generation, key, &old)?,
            Reached::Above => {}
        }
    }
}

/// Whether an entry of `key` points at `location`.
///
/// # Errors
/// Those of the device; `Corruption`.
pub(crate) fn points_at<L>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
    location: Location,
) -> Result<bool> {
    at_leaf(parts, generation, Target::Key(key), |leaf, _| {
        change::entry_at(leaf, key, location).is_some()
    })
}

/// Lends the record of a key to `use_record`.
///
/// # Errors
/// Those of the device; `Corruption`.
pub(crate) fn find<L: RecordLog, R>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
    use_record: impl FnOnce(Record<'_>) -> R,
) -> Result<Option<R>> {
    let mut use_record = Some(use_record);
    let (first, others) = at_leaf(parts, generation, Target::Key(key), |leaf, _| {
        let hash = key_hash(key);
        let range = leaf.range_of(leaf.head_of(key));
        let mut matches = range
            .filter(|&index| leaf.hash(index) == hash)
            .map(|index| leaf.location(index));
        let first = matches.next();
        // Hashes are seldom equal.
        (first, matches.collect::<Vec<_>>())
    })?;
    for location in first.into_iter().chain(others) {
        parts.counters.add(super::counters::Count::HashMatch);
        let found = parts.log.read(location, |record| {
            let is_it = record.key == key;
            is_it.then(|| use_record.take().map(|use_record| use_record(record)))
        })?;
        match found {
            Some(used) => return Ok(used),
            None => parts.counters.add(super::counters::Count::HashMiss),
        }
    }
    Ok(None)
}
