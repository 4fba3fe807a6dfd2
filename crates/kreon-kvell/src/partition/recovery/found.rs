//! Items and tombstones as they were found, and their order by key.
//!
//! An entry takes 40 bytes, and what stands of the key in the index besides. They are sorted when all are there: a search for
//! the key of each would cost more than all else that a recovery does.

use std::cmp::Ordering;
use std::mem;

use crate::format::Timestamp;
use crate::index::Location;

/// Bytes of a key that are compared as a number.
const HEAD_BYTES: usize = 8;

/// So many entries are sorted by whole keys.
const FEW: usize = 8;

/// Bytes of a hash.
const HASH_BYTES: usize = 16;

/// What was found of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Item,
    /// An item that is the head of a large value.
    Large,
    Tombstone,
}

/// An item or a tombstone.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Of the key, behind what all those have that it is sorted with.
    head: u64,
    /// Its key in the bytes of all; in front of a longer one stands the hash.
    start: usize,
    pub timestamp: Timestamp,
    pub at: Location,
    len: u16,
    pub is_whole: bool,
    pub kind: Kind,
}

/// All of a partition.
#[derive(Default)]
pub struct FoundItems {
    all: Vec<Found>,
    keys: Vec<u8>,
}

impl FoundItems {
    /// Adds what was found at `at`. `key` is what stands of the key in the index; if that is not all of it, `hash` tells it
    /// from others that look alike there.
    pub fn push(
        &mut self,
        (kind, at, timestamp): (Kind, Location, Timestamp),
        (key, is_whole): (&[u8], bool),
        hash: u128,
    ) {
        if !is_whole {
            self.keys.extend_from_slice(&hash.to_le_bytes());
        }
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.all.push(Found {
            head: 0,
            start,
            timestamp,
            at,
            len: key.len() as u16,
            is_whole,
            kind,
        });
    }

    /// Takes everything out.
    pub fn take(&mut self) -> Self {
        mem::take(self)
    }

    /// Sorts by key: those that look alike in the index stand together, and among them those of one key, the newest first.
    pub fn sort(&mut self) {
        let Self { all, keys } = self;
        sort(keys, all, 0);
    }

    /// Those that look alike in the index, one group after the other. To be called when they are sorted.
    pub fn look_alikes(&self) -> impl Iterator<Item = &[Found]> {
        self.all
            .chunk_by(|a, b| a.is_whole == b.is_whole && a.key(&self.keys) == b.key(&self.keys))
    }

    /// Those of one key, the newest first, of some that look alike.
    pub fn by_key<'a>(&'a self, alike: &'a [Found]) -> impl Iterator<Item = &'a [Found]> {
        alike.chunk_by(|a, b| a.hash(&self.keys) == b.hash(&self.keys))
    }

    /// What stands of the key in the index.
    pub fn key(&self, found: &Found) -> &[u8] {
        found.key(&self.keys)
    }

    /// The hash of a key that does not stand whole in the index.
    pub fn hash(&self, found: &Found) -> Option<u128> {
        found.hash(&self.keys)
    }
}

impl Found {
    fn key<'a>(&self, keys: &'a [u8]) -> &'a [u8] {
        let end = self.start + usize::from(self.len);
        keys.get(self.start..end).unwrap_or(&[])
    }

    fn hash(&self, keys: &[u8]) -> Option<u128> {
        let start = self.start.checked_sub(HASH_BYTES)?;
        let hash = keys.get(start..)?.first_chunk()?;
        (!self.is_whole).then(|| u128::from_le_bytes(*hash))
    }
}

/// The order in the end.
fn compare(keys: &[u8], a: &Found, b: &Found) -> Ordering {
    let alike = a.key(keys).cmp(b.key(keys));
    alike
        .then_with(|| b.is_whole.cmp(&a.is_whole))
        .then_with(|| a.hash(keys).cmp(&b.hash(keys)))
        .then_with(|| b.timestamp.cmp(&a.timestamp))
        .then_with(|| a.at.cmp(&b.at))
}

/// Sorts entries whose keys have the first `known` bytes in common: by the eight bytes behind all that they have in common, and
/// where these are equal, by the next ones.
fn sort(keys: &[u8], found: &mut [Found], known: usize) {
    let Some((first, others)) = found.split_first().filter(|it| it.1.len() >= FEW) else {
        return found.sort_unstable_by(|a, b| compare(keys, a, b));
    };
    let first = first.key(keys).get(known..).unwrap_or(&[]);
    let common = others.iter().fold(first, |common, other| {
        let other = other.key(keys).get(known..).unwrap_or(&[]);
        match other.starts_with(common) {
            true => common,
            false => &common[..common_bytes(common, other)],
        }
    });
    let known = known + common.len();
    for one in &mut *found {
        one.head = head(one.key(keys).get(known..).unwrap_or(&[]));
    }
    found.sort_unstable_by_key(|it| it.head);
    for run in found.chunk_by_mut(|a, b| a.head == b.head) {
        if run.len() == 1 {
            continue;
        }
        let known = known + HEAD_BYTES;
        // The head of a shorter key was filled up.
        match run.iter().all(|it| usize::from(it.len) >= known) {
            true => sort(keys, run, known),
            false => run.sort_unstable_by(|a, b| compare(keys, a, b)),
        }
    }
}

/// The first eight bytes as a number that is ordered as they are; zeroes behind a shorter one.
fn head(bytes: &[u8]) -> u64 {
    if let Some(head) = bytes.first_chunk::<HEAD_BYTES>() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES];
    head[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(head)
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Location {
        Location::new(number * 8).expect("a small number")
    }

    /// Random keys of few different bytes: many begin alike, are equal, or end where others go on with zeroes.
    fn some(seed: u64, count: u64, prefix: &[u8]) -> FoundItems {
        let mut state = seed | 1;
        let mut below = |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % limit
        };
        let mut found = FoundItems::default();
        for number in 0..count {
            let mut key = prefix.to_vec();
            key.extend((0..below(24)).map(|_| [0, 0, 1, 255][below(4) as usize]));
            let kind = [Kind::Item, Kind::Large, Kind::Tombstone][below(3) as usize];
            let what = (kind, at(number), Timestamp(below(1000)));
            found.push(what, (&key, below(4) > 0), u128::from(below(3)));
        }
        found
    }

    #[test]
    fn entries_are_sorted_as_by_comparing_whole_keys() {
        for seed in 1..60 {
            let prefix = &b"what all keys begin with"[..seed as usize % 24];
            let mut found = some(seed, seed * 20, prefix);
            let mut expected: Vec<Found> = found.all.clone();
            expected.sort_by(|a, b| compare(&found.keys, a, b));
            found.sort();
            let places = |all: &[Found]| all.iter().map(|it| it.at).collect::<Vec<_>>();
            assert_eq!(places(&found.all), places(&expected));
        }
    }

    #[test]
    fn entries_of_one_key_stand_together_and_the_newest_comes_first() {
        let mut found = some(7, 3000, b"");
        found.sort();
        let mut seen = std::collections::BTreeSet::new();
        let mut count = 0;
        for alike in found.look_alikes() {
            for of_key in found.by_key(alike) {
                let first = of_key[0];
                let name = (
                    found.key(&first).to_vec(),
                    first.is_whole,
                    found.hash(&first),
                );
                assert!(seen.insert(name), "a key comes once");
                assert!(of_key.is_sorted_by(|a, b| a.timestamp >= b.timestamp));
                count += of_key.len();
            }
        }
        assert_eq!(count, 3000);
        assert!(seen.len() < 2900 && seen.len() > 100, "{}", seen.len());
    }
}
