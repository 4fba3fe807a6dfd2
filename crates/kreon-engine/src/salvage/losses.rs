//! The losses of one region: ranges of keys and single keys, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use kreon_base::Lsn;

use super::report::{LostRange, SalvagedRegion};

/// Most bytes of remembered single keys; further keys are only counted.
const KEYS_BYTES_MAX: usize = 8 << 20;

/// Memory of a remembered key besides its bytes.
const KEY_COST_BYTES: usize = 64;

/// Most ranges; beyond, two neighbours are joined, including the keys between them.
const RANGES_MAX: usize = 100_000;

#[derive(Default)]
pub struct Losses {
    /// Ascending, without overlaps.
    ranges: Vec<LostRange>,
    /// Lost keys with the LSN of the lost write; `Lsn::MAX`: unknown.
    keys: BTreeMap<Vec<u8>, Lsn>,
    keys_bytes: usize,
    more_keys: u64,
    /// Keys with a tombstone in a leaf.
    deleted: BTreeSet<Vec<u8>>,
    deleted_bytes: usize,
}

impl Losses {
    /// Notes a lost range. Ranges of one tree come in ascending order, those of another tree start over.
    pub fn range(&mut self, start: &[u8], end: Option<&[u8]>) {
        let is_before = |range: &LostRange| range.end.as_deref().is_some_and(|end| end < start);
        let first = self.ranges.partition_point(is_before);
        let rest = self.ranges.get(first..).unwrap_or_default();
        let touches = |range: &LostRange| end.is_none_or(|end| range.start.as_slice() <= end);
        let count = rest.partition_point(touches);
        let fresh = LostRange {
            start: start.to_vec(),
            end: end.map(<[u8]>::to_vec),
        };
        let joined = self.ranges.drain(first..first + count).fold(fresh, join);
        self.ranges.insert(first, joined);
        if self.ranges.len() > RANGES_MAX {
            let at = first.min(self.ranges.len() - 2);
            let both = self.ranges.drain(at..at + 2).reduce(join);
            self.ranges.splice(at..at, both);
        }
    }

    /// Notes that the current value of `key`, written at `lsn` (`Lsn::MAX`: unknown), is unreadable.
    pub fn key(&mut self, key: &[u8], lsn: Lsn) {
        if let Some(known) = self.keys.get_mut(key) {
            *known = lsn.max(*known);
            return;
        }
        let cost = key.len() + KEY_COST_BYTES;
        if self.keys_bytes + cost > KEYS_BYTES_MAX {
            self.more_keys += 1;
        } else {
            self.keys.insert(key.to_vec(), lsn);
            self.keys_bytes += cost;
        }
    }

    /// Notes a tombstone of `key` in a leaf.
    pub fn deleted(&mut self, key: &[u8]) {
        if self.deleted_bytes <= KEYS_BYTES_MAX && self.deleted.insert(key.to_vec()) {
            self.deleted_bytes += key.len() + KEY_COST_BYTES;
        }
    }

    /// Whether a leaf has a tombstone of `key`; also true once there were too many to remember.
    pub fn is_deleted(&self, key: &[u8]) -> bool {
        self.deleted_bytes > KEYS_BYTES_MAX || self.deleted.contains(key)
    }

    /// Notes a write of `key` at `lsn` (`Lsn::MAX`: newer than all lost writes), which makes older losses of it void.
    pub fn overwritten(&mut self, key: &[u8], lsn: Lsn) {
        if self.keys.get(key).is_some_and(|lost| *lost <= lsn) {
            self.keys.remove(key);
            self.keys_bytes -= key.len() + KEY_COST_BYTES;
        }
    }

    /// Like [`Self::overwritten`], for all keys from `start` up to, not including, `end`. Returns those that were lost.
    pub fn erased(&mut self, start: &[u8], end: Option<&[u8]>, lsn: Lsn) -> Vec<Vec<u8>> {
        let from = self
            .keys
            .range::<[u8], _>((Bound::Included(start), Bound::Unbounded));
        let within = from.take_while(|(key, _)| end.is_none_or(|end| key.as_slice() < end));
        let found = within.filter(|(_, lost)| **lost <= lsn);
        let found: Vec<_> = found.map(|(key, _)| key.clone()).collect();
        for key in &found {
            self.overwritten(key, lsn);
        }
        found
    }

    /// The parts of the lost ranges from `start` up to, not including, `end`.
    pub fn ranges_within(&self, start: &[u8], end: Option<&[u8]>) -> Vec<LostRange> {
        let cut = self.ranges.iter().map(|range| LostRange {
            start: range.start.as_slice().max(start).to_vec(),
            end: match (range.end.as_deref(), end) {
                (Some(one), Some(two)) => Some(one.min(two).to_vec()),
                (one, two) => one.or(two).map(<[u8]>::to_vec),
            },
        });
        let has_keys = |range: &LostRange| range.end.as_ref().is_none_or(|end| range.start < *end);
        cut.filter(has_keys).collect()
    }

    /// Clears the lost ranges, because the log restored all their keys.
    pub fn ranges_found(&mut self) {
        self.ranges.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.keys.is_empty() && self.more_keys == 0
    }

    /// Whether `key` is in a lost range.
    pub fn in_range(&self, key: &[u8]) -> bool {
        let before = self
            .ranges
            .partition_point(|range| range.start.as_slice() <= key);
        let range = before.checked_sub(1).and_then(|at| self.ranges.get(at));
        range.is_some_and(|range| range.end.as_deref().is_none_or(|end| key < end))
    }

    /// Whether `key` is a remembered lost key.
    pub fn has_key(&self, key: &[u8]) -> bool {
        self.keys.contains_key(key)
    }

    /// Moves the losses into the report of the region.
    pub fn tell(self, region: &mut SalvagedRegion) {
        region.lost_ranges = self.ranges;
        region.lost_keys = self.keys.into_keys().collect();
        region.more_lost_keys = self.more_keys;
    }
}

/// The hull of two ranges.
fn join(one: LostRange, two: LostRange) -> LostRange {
    LostRange {
        start: one.start.min(two.start),
        end: one.end.zip(two.end).map(|(one, two)| one.max(two)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut losses = Losses::default();
        losses.range(b"b", Some(b"d"));
        losses.range(b"d", Some(b"f"));
        losses.range(b"m", None);
        assert_eq!(losses.ranges.len(), 2);
        for (key, is_lost) in [
            ("a", false),
            ("b", true),
            ("e", true),
            ("f", false),
            ("z", true),
        ] {
            assert_eq!(losses.in_range(key.as_bytes()), is_lost, "{key}");
        }
    }

    #[test]
    fn ranges_of_a_second_tree_are_put_in_order() {
        let mut losses = Losses::default();
        losses.range(b"m", Some(b"p"));
        losses.range(b"s", Some(b"t"));
        losses.range(b"b", Some(b"d"));
        assert!(losses.in_range(b"c") && losses.in_range(b"n") && losses.in_range(b"s"));
        assert!(!losses.in_range(b"e"));
        losses.range(b"o", Some(b"s"));
        losses.range(b"a", Some(b"c"));
        let starts: Vec<_> = losses.ranges.iter().map(|range| &range.start[..]).collect();
        assert_eq!(starts, [b"a", b"m"]);
        assert!(losses.in_range(b"q") && !losses.in_range(b"d"));
        losses.range(b"c", None);
        assert!(losses.in_range(b"z") && losses.ranges.len() == 1);
    }

    #[test]
    fn a_key_that_is_written_again_is_not_lost() {
        let mut losses = Losses::default();
        losses.key(b"k", Lsn(7));
        losses.overwritten(b"k", Lsn(6));
        assert!(losses.has_key(b"k"));
        losses.overwritten(b"k", Lsn(8));
        assert!(losses.is_empty());
    }

    #[test]
    fn keys_of_a_deleted_range_are_not_lost() {
        let mut losses = Losses::default();
        for (key, lsn) in [("a", 3), ("b", 3), ("c", 9), ("d", 3)] {
            losses.key(key.as_bytes(), Lsn(lsn));
        }
        assert_eq!(losses.erased(b"b", Some(b"d"), Lsn(5)), [b"b"]);
        let left = ["a", "b", "c", "d"].map(|key| losses.has_key(key.as_bytes()));
        assert_eq!(left, [true, false, true, true]);
        losses.range(b"b", Some(b"d"));
        losses.range(b"m", None);
        let within = losses.ranges_within(b"c", Some(b"p"));
        let bounds = |start: &[u8], end: &[u8]| LostRange {
            start: start.to_vec(),
            end: Some(end.to_vec()),
        };
        assert_eq!(within, [bounds(b"c", b"d"), bounds(b"m", b"p")]);
    }

    #[test]
    fn keys_beyond_the_bound_are_counted() {
        let mut losses = Losses::default();
        for number in 0..200_000u32 {
            losses.key(&number.to_be_bytes(), Lsn(1));
        }
        let mut region = SalvagedRegion::default();
        losses.tell(&mut region);
        assert_eq!(
            region.lost_keys.len() as u64 + region.more_lost_keys,
            200_000
        );
        assert!(region.more_lost_keys > 0 && !region.is_complete());
    }
}
