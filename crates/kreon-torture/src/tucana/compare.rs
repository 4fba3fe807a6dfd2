//! What a store holds, beside what it must hold. Errors of the store are the outer ones; the inner ones tell what is wrong.

use std::ops::Range;

use ::tucana::{Direction, Result, ScanRange};
use kreon_sim::Dice;

use super::model::{Pairs, Written};
use super::store::Tucana;
use crate::engines::Engine;

/// What is wrong.
pub(super) type Wrong = String;

/// All pairs of a store, which has no others than of these keys.
pub(super) fn contents(
    store: &Tucana,
    keys: &[Vec<u8>],
) -> Result<std::result::Result<Pairs, Wrong>> {
    let written = |value: Option<Vec<u8>>| value.as_deref().map(Written::of).transpose();
    Ok(store.contents(keys)?.into_iter().map(written).collect())
}

/// Compares the pairs of a scan with those of `pairs` in a range of numbers.
pub(super) fn scanned(
    found: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>,
    keys: &[Vec<u8>],
    (pairs, range): (&Pairs, Range<usize>),
    direction: Direction,
) -> Result<std::result::Result<(), Wrong>> {
    let wanted = range.filter_map(|number| Some((number, pairs.get(number).copied()??)));
    let mut wanted: Box<dyn Iterator<Item = (usize, Written)>> = match direction {
        Direction::Forward => Box::new(wanted),
        Direction::Reverse => Box::new(wanted.rev()),
    };
    for pair in found {
        let (key, value) = pair?;
        let Some((number, written)) = wanted.next() else {
            let key = shown(&key);
            return Ok(Err(format!(
                "a {direction:?} scan shows {key} behind its end"
            )));
        };
        if key != keys[number] || value != written.bytes() {
            let (key, bytes) = (shown(&key), value.len());
            return Ok(Err(format!(
                "a {direction:?} scan shows {key} with {bytes} bytes where key {number} with {written:?} is"
            )));
        }
    }
    Ok(match wanted.next() {
        None => Ok(()),
        Some((number, written)) => Err(format!(
            "a {direction:?} scan ends before key {number} with {written:?}"
        )),
    })
}

/// A range for a scan, and the numbers of the keys in it.
pub(super) fn range(dice: &mut Dice, keys: &[Vec<u8>]) -> (ScanRange, Range<usize>) {
    let bound = |dice: &mut Dice| {
        let mut bound = keys[dice.below(keys.len() as u64) as usize].clone();
        match dice.below(4) {
            0 => bound.push(dice.below(256) as u8),
            1 => drop(bound.pop()),
            _ => {}
        }
        bound
    };
    let low = match dice.below(4) {
        0 => Vec::new(),
        _ => bound(dice),
    };
    let high = (dice.below(3) > 0).then(|| bound(dice));
    let first = keys.partition_point(|key| *key < low);
    let end = match &high {
        Some(high) => keys.partition_point(|key| key < high),
        None => keys.len(),
    };
    (ScanRange { low, high }, first..end.max(first))
}

pub(super) fn direction(dice: &mut Dice) -> Direction {
    match dice.below(2) {
        0 => Direction::Forward,
        _ => Direction::Reverse,
    }
}

/// The first key that two states tell apart.
pub(super) fn difference(found: &Pairs, wanted: &Pairs) -> String {
    let differ = |number: &usize| found.get(*number) != wanted.get(*number);
    let count = |pairs: &Pairs| pairs.iter().flatten().count();
    let (has, had) = (count(found), count(wanted));
    match (0..found.len().max(wanted.len())).find(differ) {
        None => "the same".into(),
        Some(number) => {
            let of = |pairs: &Pairs| pairs.get(number).copied().flatten();
            let (found, wanted) = (of(found), of(wanted));
            format!("{has} keys, not {had}; key {number} has {found:?}, not {wanted:?}")
        }
    }
}

/// A key for people.
pub(super) fn shown(key: &[u8]) -> String {
    let end = key.get(key.len().saturating_sub(12)..).unwrap_or_default();
    format!("{} B ..{}", key.len(), end.escape_ascii())
}
