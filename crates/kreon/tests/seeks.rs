//! Seeks and peeks of scans, against a `BTreeMap` and by what they read.

use std::collections::BTreeMap;
use std::ops::Bound;

use kreon::{Durability, Region, Scan, Snapshot, Store};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 400;

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005);
        self.0 = self.0.wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }

    /// Now and then one that is not in the store, or longer than what a leaf holds of a key.
    fn key(&mut self) -> Vec<u8> {
        let mut key = format!("key{:04}", self.below(KEYS)).into_bytes();
        match self.below(12) {
            0 => key.push(b'x'),
            1 => key.truncate(5),
            2 => key.resize(1500, b'l'),
            _ => {}
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [3, 50, 700, 3000][self.below(4) as usize];
        vec![self.below(256) as u8; len]
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.below(4) {
            0 => Bound::Included(self.key()),
            1 => Bound::Excluded(self.key()),
            _ => Bound::Unbounded,
        }
    }
}

struct Tested {
    store: Store,
    region: Region,
    map: Map,
    dice: Dice,
}

impl Tested {
    fn new(folder: &tempfile::TempDir, seed: u64) -> Self {
        let options = Store::options().memory_bytes(8 << 20);
        let store = options.open(folder.path().join("store")).unwrap();
        let region = store.region("r").unwrap();
        let (map, dice) = (Map::new(), Dice(seed));
        let mut tested = Self {
            store,
            region,
            map,
            dice,
        };
        (0..600).for_each(|_| tested.change());
        tested
    }

    /// A change of the store that open scans do not see.
    fn change(&mut self) {
        match self.dice.below(60) {
            0 => {
                let (low, high) = (self.dice.key(), self.dice.key());
                if low < high {
                    self.region.delete_range(&low..&high).unwrap();
                    self.map.retain(|key, _| *key < low || *key >= high);
                }
            }
            1 => self.store.checkpoint().unwrap(),
            2..15 => {
                let key = self.dice.key();
                self.region.delete(&key).unwrap();
                self.map.remove(&key);
            }
            _ => {
                let (key, value) = (self.dice.key(), self.dice.value());
                let put = self.region.put_with(&key, &value, Durability::Buffered);
                put.unwrap();
                self.map.insert(key, value);
            }
        }
    }
}

/// What a scan should do.
struct Expected {
    map: Map,
    limits: [Bound<Vec<u8>>; 2],
    /// Where its front and its back stand.
    ends: [Bound<Vec<u8>>; 2],
    most: usize,
    left: usize,
}

impl Expected {
    fn new(map: &Map, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>, most: usize) -> Self {
        let limits = [low, high];
        Self {
            map: map.clone(),
            ends: limits.clone(),
            limits,
            most,
            left: most,
        }
    }

    fn peek(&self, at: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let is_after = |key: &Vec<u8>, low: &Bound<Vec<u8>>| match low {
            Bound::Unbounded => true,
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
        };
        let is_before = |key: &Vec<u8>, high: &Bound<Vec<u8>>| match high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
        };
        let mut within = self
            .map
            .iter()
            .filter(|(key, _)| is_after(key, &self.ends[0]) && is_before(key, &self.ends[1]));
        let pair = match at {
            0 => within.next(),
            _ => within.next_back(),
        };
        let pair = pair.filter(|_| self.left > 0);
        pair.map(|(key, value)| (key.clone(), value.clone()))
    }

    fn next(&mut self, at: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let pair = self.peek(at)?;
        self.ends[at] = Bound::Excluded(pair.0.clone());
        self.left -= 1;
        Some(pair)
    }

    fn seek(&mut self, at: usize, key: &[u8]) {
        let is_within = match (&self.limits[at], at) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(limit) | Bound::Excluded(limit), 0) => key > limit.as_slice(),
            (Bound::Included(limit) | Bound::Excluded(limit), _) => key < limit.as_slice(),
        };
        self.ends[at] = match is_within {
            true => Bound::Included(key.to_vec()),
            false => self.limits[at].clone(),
        };
        self.left = self.most;
    }
}

fn owned(pair: Option<(kreon::Value, kreon::Value)>) -> Option<(Vec<u8>, Vec<u8>)> {
    pair.map(|(key, value)| (key.to_vec(), value.to_vec()))
}

/// Takes some steps with a scan.
fn drive(scan: &mut Scan, expected: &mut Expected, tested: &mut Tested, steps: u64) {
    // One end mostly, so that it comes far.
    let favoured = tested.dice.below(2) as usize;
    for step in 0..steps {
        let at = match tested.dice.below(6) {
            0 => 1 - favoured,
            _ => favoured,
        };
        let what = tested.dice.below(100);
        let (shown, wanted) = match (what, at) {
            (0..15, _) => {
                let key = match (tested.dice.below(3), &expected.ends[at]) {
                    // Near the place where it is, for what was read ahead.
                    (0, Bound::Excluded(key)) => key.iter().copied().chain([b'0']).collect(),
                    _ => tested.dice.key(),
                };
                expected.seek(at, &key);
                match at {
                    0 => scan.seek(&key),
                    _ => scan.seek_back(&key),
                }
                continue;
            }
            (15..20, _) => {
                tested.change();
                continue;
            }
            (20..30, 0) => (scan.peek().unwrap(), expected.peek(0)),
            (20..30, _) => (scan.peek_back().unwrap(), expected.peek(1)),
            (_, 0) => (scan.next().transpose().unwrap(), expected.next(0)),
            (_, _) => (scan.next_back().transpose().unwrap(), expected.next(1)),
        };
        assert!(owned(shown) == wanted, "step {step}");
    }
}

#[test]
fn seeks_of_scans_and_snapshots_agree_with_a_map() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let mut tested = Tested::new(&folder, seed);
        let mut snapshot: (Snapshot, Map) = (tested.store.snapshot(), tested.map.clone());
        for round in 0..60 {
            let bounds = (tested.dice.bound(), tested.dice.bound());
            let most = [usize::MAX, 40, 3, 1][tested.dice.below(4) as usize];
            let is_now = tested.dice.below(2) == 0;
            let map = if is_now { &tested.map } else { &snapshot.1 };
            let mut expected = Expected::new(map, bounds.0.clone(), bounds.1.clone(), most);
            let mut scan = match is_now {
                true => tested.region.range(bounds),
                false => snapshot.0.range(&tested.region, bounds),
            };
            if most != usize::MAX {
                scan = scan.limit(most);
            }
            drive(&mut scan, &mut expected, &mut tested, 250);
            if round % 10 == 0 {
                snapshot = (tested.store.snapshot(), tested.map.clone());
            }
        }
    }
}

fn filled(folder: &tempfile::TempDir) -> (Store, Region) {
    let options = Store::options().memory_bytes(8 << 20);
    let store = options.open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    for number in 0..20_000_u64 {
        let put = region.put_with(number.to_be_bytes(), [7; 1000], Durability::Buffered);
        put.unwrap();
    }
    store.checkpoint().unwrap();
    (store, region)
}

#[test]
fn scans_of_keys_read_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder);
    let read = |count: &dyn Fn() -> usize| {
        let before = store.stats();
        assert_eq!(count(), 20_000);
        let after = store.stats();
        let misses = after.pages.log.misses - before.pages.log.misses;
        (after.device_read_bytes - before.device_read_bytes, misses)
    };
    let (bytes, _) = read(&|| region.iter().count());
    assert!(bytes > 10_000_000, "values are not in memory: {bytes}");
    let (bytes, log_misses) = read(&|| region.iter().keys().count());
    // 20,000 keys of 8 bytes with their places take about 110 leaves.
    assert!(bytes < 2_000_000, "{bytes} bytes were read for keys");
    assert_eq!(log_misses, 0);
    let seeks = || {
        let mut keys = region.iter().keys();
        let sought = |number: u64| {
            keys.seek(number.to_be_bytes());
            keys.next().unwrap().unwrap()
        };
        (0..20_000).rev().map(sought).count()
    };
    let (bytes, log_misses) = read(&seeks);
    assert!(
        bytes < 8_000_000,
        "{bytes} bytes were read for seeks of keys"
    );
    assert_eq!(log_misses, 0);
}

#[test]
fn a_seek_to_what_was_read_ahead_reads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder);
    let mut scan = region.iter();
    for _ in 0..20 {
        scan.next().unwrap().unwrap();
    }
    let before = store.stats().device_reads;
    let next = scan.peek().unwrap().unwrap();
    assert_eq!(*next.0, 20_u64.to_be_bytes());
    scan.seek(25_u64.to_be_bytes());
    assert_eq!(scan.next().unwrap().unwrap().0, 25_u64.to_be_bytes());
    assert_eq!(store.stats().device_reads, before);
}

#[test]
fn a_seek_does_not_wake_a_scan_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder);
    let mut scan = region.iter();
    scan.next().unwrap().unwrap();
    store.close().unwrap();
    while let Some(Ok(_)) = scan.next() {}
    scan.seek(0_u64.to_be_bytes());
    assert!(scan.next().is_none());
    assert!(scan.peek().unwrap().is_none());
}
