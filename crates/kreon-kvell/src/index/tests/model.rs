//! An index beside what it must hold.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::super::{Direction, End, Entry, Index, Location, Run, Spot};

/// N of small trees.
pub(super) const KEY_BYTES: usize = 6;

/// Bytes of a small node: three to six entries.
pub(super) const NODE_BYTES: usize = 96;

/// Bytes, whether they are not all, location: the order of the entries.
pub(super) type Known = (Vec<u8>, bool, Location);

/// XorShift.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

pub(super) fn location(number: u64) -> Location {
    Location::new(number * 8).expect("a small number")
}

pub(super) fn known(entry: Entry<'_>) -> Known {
    (entry.bytes.to_vec(), !entry.whole, entry.at)
}

pub(super) struct Model {
    pub(super) index: Index,
    pub(super) entries: BTreeSet<Known>,
    key_bytes_max: usize,
}

impl Model {
    pub(super) fn new(key_bytes_max: usize, node_bytes: usize) -> Self {
        Self {
            index: Index::with_node_bytes(key_bytes_max, node_bytes),
            entries: BTreeSet::new(),
            key_bytes_max,
        }
    }

    /// A deep tree of few keys.
    pub(super) fn small() -> Self {
        Self::new(KEY_BYTES, NODE_BYTES)
    }

    fn known(&self, key: &[u8], at: Location) -> Known {
        let bytes = &key[..key.len().min(self.key_bytes_max)];
        (bytes.to_vec(), key.len() > self.key_bytes_max, at)
    }

    /// Every change is compared with the bound of memory that was told before it.
    fn bounded(&mut self, change: impl FnOnce(&mut Index) -> bool) -> bool {
        let most = self.index.memory_bytes() + self.index.growth_bytes_max();
        let outcome = change(&mut self.index);
        assert!(
            self.index.memory_bytes() <= most,
            "the bound of growth holds"
        );
        outcome
    }

    pub(super) fn insert(&mut self, key: &[u8], at: Location) {
        let version = self.index.version();
        let added = self.bounded(|index| index.insert(key, at));
        assert_eq!(self.index.version() != version, added);
        assert_eq!(added, self.entries.insert(self.known(key, at)));
    }

    pub(super) fn remove(&mut self, key: &[u8], at: Location) {
        let version = self.index.version();
        let removed = self.bounded(|index| index.remove(key, at));
        assert_eq!(self.index.version() != version, removed);
        assert_eq!(removed, self.entries.remove(&self.known(key, at)));
    }

    pub(super) fn replace(&mut self, key: &[u8], old: Location, new: Location) {
        let version = self.index.version();
        let replaced = self.bounded(|index| index.replace(key, old, new));
        assert_eq!(self.index.version() != version, replaced && old != new);
        assert_eq!(replaced, self.entries.remove(&self.known(key, old)));
        if replaced {
            self.entries.insert(self.known(key, new));
        }
    }

    pub(super) fn find(&self, key: &[u8]) {
        let low = self.known(key, location(0));
        let expected = self
            .entries
            .range(low.clone()..)
            .take_while(|known| (&known.0, known.1) == (&low.0, low.1));
        assert!(
            self.index.find(key).eq(expected.map(|known| known.2)),
            "the places of {key:?}"
        );
    }

    /// All entries, their order and the invariants.
    pub(super) fn check(&self) {
        self.index.check();
        assert_eq!(self.index.len(), self.entries.len() as u64);
        assert_eq!(self.index.is_empty(), self.entries.is_empty());
        let mut run = Run::new();
        let end = self.index.run(
            Bound::Unbounded,
            Bound::Unbounded,
            Direction::Forward,
            usize::MAX,
            &mut run,
        );
        assert_eq!(end, End::Bounds);
        assert!(run.iter().map(known).eq(self.entries.iter().cloned()));
    }

    /// One run, compared with the model.
    pub(super) fn run(
        &self,
        low: Bound<Spot<'_>>,
        high: Bound<Spot<'_>>,
        direction: Direction,
        count: usize,
    ) {
        let inside: Vec<&Known> = self
            .entries
            .iter()
            .filter(|known| above(known, low) && below(known, high))
            .collect();
        let expected: Vec<&Known> = match direction {
            Direction::Forward => inside.iter().copied().take(count).collect(),
            Direction::Backward => inside.iter().rev().copied().take(count).collect(),
        };
        let mut run = Run::new();
        let end = self.index.run(low, high, direction, count, &mut run);
        assert!(
            run.iter()
                .map(known)
                .eq(expected.iter().map(|known| (*known).clone()))
        );
        assert_eq!(end == End::Bounds, expected.len() == inside.len());
    }
}

fn group_of(known: &Known) -> (&[u8], bool) {
    (&known.0, known.1)
}

fn above(known: &Known, bound: Bound<Spot<'_>>) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(spot) => compare(known, spot).is_ge(),
        Bound::Excluded(spot) => compare(known, spot).is_gt(),
    }
}

fn below(known: &Known, bound: Bound<Spot<'_>>) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(spot) => compare(known, spot).is_le(),
        Bound::Excluded(spot) => compare(known, spot).is_lt(),
    }
}

fn compare(known: &Known, spot: Spot<'_>) -> std::cmp::Ordering {
    let group = group_of(known).cmp(&(spot.bytes, !spot.whole));
    group.then_with(|| {
        spot.at
            .map_or(std::cmp::Ordering::Equal, |at| known.2.cmp(&at))
    })
}
