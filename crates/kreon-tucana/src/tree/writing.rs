//! A write: its record goes to the log, then its place into the leaf of its key.

use kreon_base::Result;

use super::change::{self, LeafChange};
use super::find::{Target, at_leaf};
use super::generation::Generation;
use super::known::KnownKeys;
use super::merge;
use super::parts::Parts;
use super::reach::{Reached, at_level};
use super::split::split_leaf;
use super::touch::touch;
use crate::format::{Location, key_hash};
use crate::log::{Record, RecordLog};

/// Writes a record, and returns the place of the one that its key had before.
///
/// # Errors
/// Those of the log; `OutOfSpace` without frames or pages; those of the device.
pub(crate) fn write<L: RecordLog>(
    parts: &Parts<L>,
    generation: &Generation,
    record: &Record<'_>,
) -> Result<Option<Location>> {
    let key = record.key;
    let (mut placed, mut known) = (parts.log.append(record)?, KnownKeys::default());
    loop {
        let reached = at_level(generation, key, 0, |leaf| match record.value {
            Some(_) => (change::put(parts, leaf, (key, &known), &placed), false),
            None => {
                let change = change::remove(parts, leaf, (key, &known), &placed);
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
                if is_small && let Err(error) = merge::merge_leaf(parts, generation, key) {
                    // The deletion is done all the same; the next one in this leaf tries again.
                    tracing::debug!(%error, "a small leaf was not merged");
                }
                return Ok(before);
            }
            LeafChange::Full => split_leaf(parts, generation, key)?,
            LeafChange::Absent(location) => known.read(&*parts.log, location)?,
            LeafChange::Outdated => placed = parts.log.append(record)?,
        }
    }
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
