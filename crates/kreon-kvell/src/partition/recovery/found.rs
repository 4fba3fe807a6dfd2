//! Items and tombstones as they were found, and their order by key.
//!
//! An entry takes 32 bytes, and what stands of the key in the index besides. They are sorted when all are there: a search for
//! the key of each would cost more than all else that a recovery does.

use std::cmp::Ordering;

use kreon_base::{Error, ErrorKind, Result};

use crate::format::{ItemSeal, Timestamp, key_hash};
use crate::index::Location;

/// Bytes of a key that are compared as a number.
const HEAD_BYTES: usize = 8;

/// So many entries are sorted by whole keys.
const FEW: usize = 8;

/// Bytes of a hash.
const HASH_BYTES: usize = 16;

/// Lists grow by a quarter, and by so many at least.
const GROWTH_MIN: usize = 64;

/// What an entry takes in the index beside its key: slot, place, and a share of what nodes leave empty.
const INDEX_ENTRY_BYTES: usize = 14;

const _: () = assert!(size_of::<Found>() == 32);

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
    pub timestamp: Timestamp,
    pub at: Location,
    /// Its key in the bytes of all; in front of a longer one stands the hash.
    start: u32,
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
    ///
    /// # Errors
    /// `OutOfSpace`: 4 GiB of keys are there already.
    pub fn push(
        &mut self,
        (kind, at, timestamp): (Kind, Location, Timestamp),
        (key, is_whole): (&[u8], bool),
        hash: u128,
    ) -> Result<()> {
        make_room(&mut self.keys, HASH_BYTES + key.len());
        if !is_whole {
            self.keys.extend_from_slice(&hash.to_le_bytes());
        }
        let start = u32::try_from(self.keys.len()).map_err(|_| too_many())?;
        self.keys.extend_from_slice(key);
        make_room(&mut self.all, 1);
        self.all.push(Found {
            head: 0,
            timestamp,
            at,
            start,
            len: key.len() as u16,
            is_whole,
            kind,
        });
        Ok(())
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Found>() + self.keys.capacity()
    }

    /// Memory in bytes that entries take until they are forgotten, about: lists may be a quarter longer than what is in
    /// them, and the index that is built of the entries is there beside them.
    pub fn cost_bytes(&self) -> usize {
        let entries = self.all.len() * (size_of::<Found>() * 5 / 4 + INDEX_ENTRY_BYTES);
        entries + self.keys.len() * 9 / 4
    }

    /// Whether not many more keys can come.
    pub fn is_full(&self) -> bool {
        self.keys.len() > u32::MAX as usize / 2
    }

    /// Forgets everything but for the memory.
    pub fn clear(&mut self) {
        self.all.clear();
        self.keys.clear();
    }

    /// Forgets all entries but those of keys with a hash that is wanted. To be called before they are sorted.
    pub fn retain(&mut self, seal: ItemSeal, is_wanted: impl Fn(u128) -> bool) {
        let Self { all, keys } = self;
        let mut end = 0;
        all.retain_mut(|found| {
            let hash = found.hash(keys);
            if !is_wanted(hash.unwrap_or_else(|| key_hash(seal, found.key(keys)))) {
                return false;
            }
            let hash_bytes = if found.is_whole { 0 } else { HASH_BYTES };
            let (start, len) = (found.start as usize - hash_bytes, usize::from(found.len));
            keys.copy_within(start..start + hash_bytes + len, end);
            // Keys move to the front only, so this fits, too.
            found.start = (end + hash_bytes) as u32;
            end += hash_bytes + len;
            true
        });
        keys.truncate(end);
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
        let start = self.start as usize;
        let end = start + usize::from(self.len);
        keys.get(start..end).unwrap_or(&[])
    }

    fn hash(&self, keys: &[u8]) -> Option<u128> {
        let start = (self.start as usize).checked_sub(HASH_BYTES)?;
        let hash = keys.get(start..)?.first_chunk()?;
        (!self.is_whole).then(|| u128::from_le_bytes(*hash))
    }
}

/// Room for `more` in a list. Doubled, it could be half empty.
fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4).max(GROWTH_MIN));
    }
}

#[cold]
fn too_many() -> Error {
    let why = "a recovery has no room for more than 4 GiB of keys of a partition that look alike";
    Error::new(ErrorKind::OutOfSpace, why)
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
    use kreon_format::StoreId;

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
            let pushed = found.push(what, (&key, below(4) > 0), u128::from(below(3)));
            pushed.expect("few keys");
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
    #[test]
    fn what_is_retained_keeps_its_key_and_its_hash() {
        let seal = ItemSeal { store: StoreId(5) };
        for seed in 1..40 {
            let mut found = some(seed, seed * 10, b"p");
            let name = |found: &FoundItems, it: &Found| {
                let hash = found.hash(it);
                (it.at, found.key(it).to_vec(), hash)
            };
            let of = |found: &FoundItems, it: &Found| {
                let hash = found.hash(it);
                hash.unwrap_or_else(|| key_hash(seal, found.key(it)))
            };
            let is_wanted = |hash: u128| hash % 3 == u128::from(seed % 3);
            let wanted = found.all.iter().filter(|it| is_wanted(of(&found, it)));
            let expected: Vec<_> = wanted.map(|it| name(&found, it)).collect();
            let before = found.cost_bytes();
            found.retain(seal, is_wanted);
            let left: Vec<_> = found.all.iter().map(|it| name(&found, it)).collect();
            assert_eq!(left, expected);
            assert!(found.cost_bytes() < before || left.len() as u64 == seed * 10);
            // More may come behind them.
            let more = (Kind::Item, at(1 << 40), Timestamp(1));
            found.push(more, (b"more", false), 77).expect("few keys");
            let last = found.all.last().expect("one");
            assert_eq!(
                name(&found, last),
                (at(1 << 40), b"more".to_vec(), Some(77))
            );
        }
    }

    #[test]
    fn notes_take_no_more_than_they_say() {
        let (mut found, mut index_bytes) = (FoundItems::default(), 0);
        for number in 0..20_000_u32 {
            let key = number.to_be_bytes().repeat(1 + number as usize % 9);
            let what = (Kind::Item, at(number.into()), Timestamp(1));
            found
                .push(what, (&key, number % 2 == 0), 1)
                .expect("few keys");
            index_bytes += key.len() + 12;
            if number > 1000 {
                assert!(found.memory_bytes() + index_bytes <= found.cost_bytes());
            }
        }
    }
}
