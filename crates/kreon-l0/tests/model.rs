//! An L0 against a plain map of all versions ever written, with keys that are hard on heads and prefixes, writes out of
//! order, units that are not visible yet, and snapshots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kreon_base::{Attributes, LogOffset, Lsn, Payload, Timestamp};
use kreon_l0::{Keep, L0, L0_KEY_BYTES_MAX, Version};

/// A small deterministic generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Mostly short keys of few different bytes, so that they are prefixes of each other and share heads; some behind
    /// long common prefixes.
    fn key(&mut self) -> Vec<u8> {
        const BYTES: [u8; 5] = [0, 1, b'a', 0xfe, 0xff];
        let mut key = match self.below(8) {
            0 => vec![0; 9],
            1 => vec![0xff; 9],
            2 => vec![b'p'; 300],
            _ => Vec::new(),
        };
        for _ in 0..self.below(7) {
            key.push(BYTES[self.below(BYTES.len())]);
        }
        key
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Logged(u64, u32, Attributes),
    Inline(Vec<u8>, Attributes),
    Deleted(u64),
}

impl Value {
    fn random(random: &mut Random, lsn: u64) -> Self {
        let expires = random.one_in(3).then(|| Timestamp::of_ms(lsn + 1));
        let attributes = Attributes::expiring(expires);
        match random.below(4) {
            0 => Self::Inline(lsn.to_le_bytes().repeat(random.below(6)), attributes),
            1 => Self::Deleted(lsn * 8),
            _ => Self::Logged(lsn * 8, lsn as u32 % 1000, attributes),
        }
    }

    fn payload(&self) -> Payload<'_> {
        match *self {
            Self::Logged(offset, value_bytes, attributes) => Payload::Logged {
                offset: LogOffset(offset),
                value_bytes,
                attributes,
            },
            Self::Inline(ref value, attributes) => Payload::Inline { value, attributes },
            Self::Deleted(offset) => Payload::Tombstone {
                offset: LogOffset(offset),
            },
        }
    }

    fn of(payload: Payload<'_>) -> Self {
        match payload {
            Payload::Logged {
                offset,
                value_bytes,
                attributes,
            } => Self::Logged(offset.0, value_bytes, attributes),
            Payload::Inline { value, attributes } => Self::Inline(value.to_vec(), attributes),
            Payload::Tombstone { offset } => Self::Deleted(offset.0),
            Payload::Erased { .. } => unreachable!("of trees alone"),
        }
    }
}

/// All versions ever written, and those not visible.
#[derive(Default)]
struct Model {
    versions: BTreeMap<(Vec<u8>, Reverse<u64>), Value>,
    keys: BTreeSet<Vec<u8>>,
    hidden: BTreeSet<u64>,
}

impl Model {
    fn get(&self, key: &[u8], at: u64) -> Option<(u64, Value)> {
        let from = (key.to_vec(), Reverse(u64::MAX));
        let to = (key.to_vec(), Reverse(0));
        self.versions
            .range(from..=to)
            .map(|((_, lsn), value)| (lsn.0, value.clone()))
            .find(|(lsn, _)| *lsn < at && !self.hidden.contains(lsn))
    }
}

fn seen(version: Version<'_>) -> (u64, Value) {
    (version.lsn.0, Value::of(version.payload))
}

struct Pair {
    l0: L0,
    model: Model,
    /// Open snapshots.
    snapshots: BTreeSet<u64>,
    random: Random,
    tail: u64,
    /// The tail when the round began.
    round_start: u64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self {
            l0: L0::new(),
            model: Model::default(),
            snapshots: BTreeSet::new(),
            random: Random(seed),
            tail: 1,
            round_start: 1,
        }
    }

    fn insert(&mut self, key: &[u8], lsn: u64, unit_pending: bool) {
        let keep = Keep {
            snapshot_max: self.snapshots.last().copied().map(Lsn),
            unit_pending,
            // All units before this round are visible.
            visible_before: Lsn(self.round_start),
        };
        let value = Value::random(&mut self.random, lsn);
        self.l0.insert(key, Lsn(lsn), value.payload(), keep);
        if unit_pending {
            self.model.hidden.insert(lsn);
        }
        self.model.keys.insert(key.to_vec());
        self.model
            .versions
            .insert((key.to_vec(), Reverse(lsn)), value);
    }

    /// Writes that race: they arrive in any order, some in units that become visible only at the end.
    fn round(&mut self, keys: &[Vec<u8>]) {
        let count = 1 + self.random.below(12);
        self.round_start = self.tail;
        let mut lsns: Vec<_> = (self.tail..self.tail + count as u64).collect();
        self.tail += count as u64;
        let unit = self.random.one_in(3);
        while !lsns.is_empty() {
            let at = self.random.below(lsns.len());
            let lsn = lsns.swap_remove(at);
            let pending = unit && lsn % 2 == 0;
            let key = keys[self.random.below(keys.len())].clone();
            self.insert(&key, lsn, pending);
            self.check_gets(&key);
        }
        self.model.hidden.clear();
        if self.random.one_in(20) {
            self.snapshots.insert(self.tail);
        }
        if self.random.one_in(20) {
            self.snapshots.pop_first();
        }
    }

    /// Checks `key` in every view that a reader can have.
    fn check_gets(&self, key: &[u8]) {
        for at in self.snapshots.iter().copied().chain([u64::MAX]) {
            let visible = |lsn: Lsn| !self.model.hidden.contains(&lsn.0);
            let found = self.l0.get(key, Lsn(at), visible, seen);
            assert_eq!(found, self.model.get(key, at), "{key:?} at {at}");
        }
    }

    fn check_walks(&self) {
        let mut cursor = self.l0.cursor();
        let mut more = cursor.first();
        for key in &self.model.keys {
            assert!(more && cursor.key() == key, "{key:?}");
            let lsns: Vec<_> = cursor.versions().map(|version| version.lsn).collect();
            assert!(lsns.is_sorted_by(|a, b| a > b), "{key:?}: {lsns:?}");
            let newest = cursor.versions().next().map(seen);
            assert_eq!(newest, self.model.get(key, u64::MAX));
            more = cursor.next();
        }
        assert!(!more && !cursor.is_valid() && cursor.key().is_empty());
        let mut more = cursor.last();
        for key in self.model.keys.iter().rev() {
            assert!(more && cursor.key() == key, "{key:?}");
            more = cursor.prev();
        }
        assert!(!more && cursor.versions().next().is_none());
        assert_eq!(self.l0.len(), self.model.keys.len());
    }

    /// Seeks to random keys, then moves in both directions.
    fn check_seeks(&mut self, count: usize) {
        let mut cursor = self.l0.cursor();
        for _ in 0..count {
            let key = self.random.key();
            let keys = &self.model.keys;
            let mut expected = if self.random.one_in(2) {
                cursor.seek(&key);
                keys.range(key.clone()..).next()
            } else {
                cursor.seek_before(&key);
                keys.range(..key.clone()).next_back()
            };
            for _ in 0..self.random.below(8) {
                let Some(at) = expected else { break };
                assert_eq!(cursor.key(), at, "from {key:?}");
                expected = if self.random.one_in(2) {
                    cursor.next();
                    keys.range::<Vec<u8>, _>((
                        std::ops::Bound::Excluded(at),
                        std::ops::Bound::Unbounded,
                    ))
                    .next()
                } else {
                    cursor.prev();
                    keys.range::<Vec<u8>, _>(..at).next_back()
                };
            }
            assert_eq!(cursor.is_valid(), expected.is_some());
            if let Some(at) = expected {
                assert_eq!(cursor.key(), at, "from {key:?}");
            }
        }
    }
}

const ROUNDS: usize = if cfg!(miri) { 8 } else { 3000 };

#[test]
fn agrees_with_a_map_of_all_versions() {
    for seed in 0..3 {
        let mut pair = Pair::new(seed);
        // Few keys make many versions, many keys make many nodes.
        let keys: Vec<_> = (0..[10, 600, 6000][seed as usize])
            .map(|_| pair.random.key())
            .collect();
        for round in 0..ROUNDS {
            pair.round(&keys);
            if round % (ROUNDS / 4) == 0 {
                pair.check_walks();
                pair.check_seeks(20);
            }
        }
        pair.check_walks();
        pair.check_seeks(ROUNDS / 2);
        for key in &keys {
            pair.check_gets(key);
        }
    }
}

#[test]
fn keys_that_only_their_last_bytes_tell_apart_stay_apart() {
    let mut pair = Pair::new(7);
    let count = if cfg!(miri) { 2 } else { 100 };
    let mut keys = vec![Vec::new(), vec![0], vec![0; 4], vec![0; 5]];
    for i in 0..count {
        for fill in [0, 0xff] {
            for len in [L0_KEY_BYTES_MAX, L0_KEY_BYTES_MAX - 1, 3000] {
                let mut key = vec![fill; len];
                key[len - 1] = i;
                keys.push(key);
            }
        }
    }
    for key in &keys {
        let lsn = pair.tail;
        pair.tail += 1;
        pair.insert(key, lsn, false);
    }
    pair.check_walks();
    for key in &keys {
        pair.check_gets(key);
        pair.check_gets(&key[..key.len() / 2]);
    }
}

#[test]
fn rising_and_falling_keys_build_the_same_order() {
    let count: u32 = if cfg!(miri) { 60 } else { 20_000 };
    for falling in [false, true] {
        let mut pair = Pair::new(1);
        for i in 0..count {
            let number = if falling { count - i } else { i };
            pair.insert(&number.to_be_bytes(), u64::from(i) + 1, false);
        }
        pair.check_walks();
    }
}

#[test]
fn an_empty_index_has_nothing() {
    let l0 = L0::new();
    assert!(l0.is_empty());
    assert!(l0.get(b"", Lsn::MAX, |_| true, |_| ()).is_none());
    let mut cursor = l0.cursor();
    assert!(!cursor.first() && !cursor.last() && !cursor.next() && !cursor.prev());
    assert!(!cursor.seek(b"") && !cursor.seek_before(b"x"));
    assert!(cursor.key().is_empty() && cursor.versions().next().is_none());
}
