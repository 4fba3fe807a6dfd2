//! The store against a `BTreeMap`: random operations with tiny L0 and memory, so that spills, misses
//! and evictions happen all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;

use kreon::{Durability, Region, Snapshot, Store, WriteBatch};
use proptest::prelude::*;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A change of a batch.
#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Bounds),
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Bounds),
    Batch(Vec<Change>),
    /// Pairs to load, each with actions to take before it is handed in.
    Ingest(Vec<(Vec<u8>, Vec<u8>, Vec<Beside>)>),
    Get(Vec<u8>),
    MultiGet(Vec<Vec<u8>>),
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>, bool),
    BothEnds(Vec<bool>),
    Snapshot,
    DropSnapshot(usize),
    ReadSnapshot(usize, Vec<u8>),
    ScanSnapshot(usize),
    Checkpoint,
    /// Overwrites many keys with long values, so that log segments are freed and reused.
    Churn(u8),
    Reopen,
    Verify,
}

/// An action during a load.
#[derive(Clone, Debug)]
enum Beside {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Bounds),
    Snapshot,
    DropSnapshot(usize),
    ReadSnapshot(usize, Vec<u8>),
    ScanSnapshot(usize),
    Get(Vec<u8>),
    Checkpoint,
    Verify,
}

impl Beside {
    fn step(self) -> Step {
        match self {
            Self::Put(key, value) => Step::Put(key, value),
            Self::Delete(key) => Step::Delete(key),
            Self::DeleteRange(bounds) => Step::DeleteRange(bounds),
            Self::Snapshot => Step::Snapshot,
            Self::DropSnapshot(n) => Step::DropSnapshot(n),
            Self::ReadSnapshot(n, key) => Step::ReadSnapshot(n, key),
            Self::ScanSnapshot(n) => Step::ScanSnapshot(n),
            Self::Get(key) => Step::Get(key),
            Self::Checkpoint => Step::Checkpoint,
            Self::Verify => Step::Verify,
        }
    }
}

fn beside() -> impl Strategy<Value = Beside> {
    prop_oneof![
        6 => (key(), value()).prop_map(|(k, v)| Beside::Put(k, v)),
        3 => key().prop_map(Beside::Delete),
        2 => bounds().prop_map(Beside::DeleteRange),
        2 => Just(Beside::Snapshot),
        1 => (0usize..4).prop_map(Beside::DropSnapshot),
        2 => (0usize..4, key()).prop_map(|(n, k)| Beside::ReadSnapshot(n, k)),
        1 => (0usize..4).prop_map(Beside::ScanSnapshot),
        2 => key().prop_map(Beside::Get),
        1 => Just(Beside::Checkpoint),
        1 => Just(Beside::Verify),
    ]
}

fn load() -> impl Strategy<Value = Step> {
    let meanwhile = prop_oneof![
        6 => Just(Vec::new()),
        1 => prop::collection::vec(beside(), 1..4),
    ];
    prop::collection::btree_map(key(), (value(), meanwhile), 0..60).prop_map(|pairs| {
        let pairs = pairs.into_iter();
        Step::Ingest(pairs.map(|(k, (v, beside))| (k, v, beside)).collect())
    })
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0u32..120).prop_map(|n| format!("key{n:03}").into_bytes()),
        2 => prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), Just(b'a')], 0..4),
        1 => (0u8..6, 0usize..3).prop_map(|(n, len)| {
            let mut key = vec![b'p'; [1100, 2000, 4097][len]];
            key.push(n);
            key
        }),
        1 => (0u8..3).prop_map(|n| {
            let mut key = vec![b'q'; 65535];
            key.push(n);
            key
        }),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![
        4 => 0usize..70,
        4 => 70usize..1500,
        1 => prop::sample::select(vec![4095usize, 4096, 4097, 70_000]),
    ];
    (len, any::<u8>()).prop_map(|(len, seed)| {
        (0..len)
            .map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed))
            .collect()
    })
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

/// Short ranges more often than long ones, so that some keys stay.
fn bounds() -> impl Strategy<Value = Bounds> {
    let near = (0u32..120, 0u32..12).prop_map(|(start, length)| {
        let key = |number: u32| format!("key{number:03}").into_bytes();
        (
            Bound::Included(key(start)),
            Bound::Excluded(key(start + length)),
        )
    });
    prop_oneof![
        6 => near,
        1 => (bound(), bound()),
        1 => (bound(), key().prop_map(Bound::Excluded)),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (key(), value()).prop_map(|(k, v)| Change::Put(k, v)),
        4 => key().prop_map(Change::Delete),
        1 => bounds().prop_map(Change::DeleteRange),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (key(), value()).prop_map(|(k, v)| Step::Put(k, v)),
        10 => key().prop_map(Step::Delete),
        5 => bounds().prop_map(Step::DeleteRange),
        5 => prop::collection::vec(change(), 0..12).prop_map(Step::Batch),
        4 => load(),
        10 => key().prop_map(Step::Get),
        2 => prop::collection::vec(key(), 0..20).prop_map(Step::MultiGet),
        5 => (bound(), bound(), any::<bool>()).prop_map(|(a, b, r)| Step::Range(a, b, r)),
        2 => prop::collection::vec(any::<bool>(), 0..80).prop_map(Step::BothEnds),
        3 => Just(Step::Snapshot),
        2 => (0usize..4).prop_map(Step::DropSnapshot),
        3 => (0usize..4, key()).prop_map(|(n, k)| Step::ReadSnapshot(n, k)),
        2 => (0usize..4).prop_map(Step::ScanSnapshot),
        2 => Just(Step::Checkpoint),
        2 => any::<u8>().prop_map(Step::Churn),
        1 => Just(Step::Reopen),
        1 => Just(Step::Verify),
    ]
}

/// Options of an opening.
#[derive(Clone, Copy, Debug)]
struct Settings {
    inline: usize,
    memory_bytes: usize,
}

fn open(path: &Path, settings: Settings) -> (Store, Region) {
    let store = Store::options()
        .memory_bytes(settings.memory_bytes)
        .l0_bytes(24 << 10)
        .inline_value_bytes_max(settings.inline)
        .background_inline()
        .open(path)
        .unwrap();
    let region = store.region("model").unwrap();
    (store, region)
}

struct Run {
    store: Store,
    region: Region,
    map: Map,
    snapshots: Vec<(Snapshot, Map)>,
}

fn collect(
    scan: impl Iterator<Item = kreon::Result<(kreon::Value, kreon::Value)>>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    scan.map(|pair| pair.map(|(k, v)| (k.into(), v.into())).unwrap())
        .collect()
}

fn in_range(map: &Map, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let above = |k: &Vec<u8>| match low {
        Bound::Unbounded => true,
        Bound::Included(low) => k >= low,
        Bound::Excluded(low) => k > low,
    };
    let below = |k: &Vec<u8>| match high {
        Bound::Unbounded => true,
        Bound::Included(high) => k <= high,
        Bound::Excluded(high) => k < high,
    };
    map.iter()
        .filter(|(k, _)| above(k) && below(k))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

impl Run {
    fn apply(&mut self, step: Step, path: &Path, settings: Settings) {
        match step {
            Step::Put(key, value) => {
                self.region.put(&key, &value).unwrap();
                self.map.insert(key, value);
            }
            Step::Delete(key) => {
                self.region.delete(&key).unwrap();
                self.map.remove(&key);
            }
            Step::DeleteRange(bounds) => {
                self.region.delete_range(bounds.clone()).unwrap();
                self.erase(&bounds);
            }
            Step::Batch(changes) => self.batch(changes),
            Step::Ingest(pairs) => self.ingest(pairs, path, settings),
            Step::Get(key) => {
                let got = self.region.get(&key).unwrap().map(Vec::from);
                assert_eq!(got.as_ref(), self.map.get(&key));
                assert_eq!(
                    self.region.contains(&key).unwrap(),
                    self.map.contains_key(&key)
                );
            }
            Step::MultiGet(keys) => {
                let got = self.region.multi_get(&keys).unwrap();
                for (key, got) in keys.iter().zip(got) {
                    assert_eq!(got.map(Vec::from).as_ref(), self.map.get(key));
                }
            }
            Step::Range(low, high, reverse) => self.range(low, high, reverse),
            Step::BothEnds(turns) => self.both_ends(&turns),
            Step::Snapshot => {
                if self.snapshots.len() < 4 {
                    self.snapshots
                        .push((self.store.snapshot(), self.map.clone()));
                }
            }
            Step::DropSnapshot(n) => {
                if n < self.snapshots.len() {
                    self.snapshots.remove(n);
                }
            }
            Step::ReadSnapshot(n, key) => {
                if let Some((snapshot, map)) = self.snapshots.get(n) {
                    let got = snapshot.get(&self.region, &key).unwrap().map(Vec::from);
                    assert_eq!(got.as_ref(), map.get(&key));
                }
            }
            Step::ScanSnapshot(n) => {
                if let Some((snapshot, map)) = self.snapshots.get(n) {
                    let want = in_range(map, &Bound::Unbounded, &Bound::Unbounded);
                    assert_eq!(collect(snapshot.iter(&self.region)), want);
                }
            }
            Step::Checkpoint => self.store.checkpoint().unwrap(),
            Step::Churn(seed) => self.churn(seed),
            Step::Reopen => self.reopen(path, settings),
            Step::Verify => self.verify(),
        }
    }

    fn erase(&mut self, (low, high): &Bounds) {
        for (key, _) in in_range(&self.map, low, high) {
            self.map.remove(&key);
        }
    }

    /// Keys that were written during the load keep those values.
    fn ingest(
        &mut self,
        pairs: Vec<(Vec<u8>, Vec<u8>, Vec<Beside>)>,
        path: &Path,
        settings: Settings,
    ) {
        let loaded: Vec<_> = pairs
            .iter()
            .map(|(k, v, _)| (k.clone(), v.clone()))
            .collect();
        let mut written = BTreeSet::new();
        let loaded_map: Map = loaded.iter().cloned().collect();
        let region = self.region.clone();
        let handed_in = pairs.into_iter().map(|(key, value, meanwhile)| {
            for beside in meanwhile {
                if let Beside::Put(key, _) | Beside::Delete(key) = &beside {
                    written.insert(key.clone());
                }
                if let Beside::DeleteRange((low, high)) = &beside {
                    let erased = in_range(&loaded_map, low, high).into_iter();
                    written.extend(erased.map(|(key, _)| key));
                }
                self.apply(beside.step(), path, settings);
            }
            (key, value)
        });
        let count = region.ingest(handed_in).unwrap();
        assert_eq!(count, loaded.len() as u64);
        let counts = loaded.into_iter().filter(|(key, _)| !written.contains(key));
        self.map.extend(counts);
    }

    fn batch(&mut self, changes: Vec<Change>) {
        let mut batch = WriteBatch::new();
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    batch.put(&self.region, &key, &value);
                    self.map.insert(key, value);
                }
                Change::Delete(key) => {
                    batch.delete(&self.region, &key);
                    self.map.remove(&key);
                }
                Change::DeleteRange(bounds) => {
                    batch.delete_range(&self.region, bounds.clone()).unwrap();
                    self.erase(&bounds);
                }
            }
        }
        self.store.write(batch, Durability::Sync).unwrap();
    }

    fn range(&mut self, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>, reverse: bool) {
        let mut want = in_range(&self.map, &low, &high);
        let scan = self.region.range((low, high));
        if reverse {
            want.reverse();
            assert_eq!(collect(scan.rev()), want);
        } else {
            assert_eq!(collect(scan), want);
        }
    }

    fn both_ends(&mut self, turns: &[bool]) {
        let mut want = in_range(&self.map, &Bound::Unbounded, &Bound::Unbounded).into_iter();
        let mut keys = self.region.iter().keys();
        for front in turns {
            let (got, want) = match front {
                true => (keys.next(), want.next()),
                false => (keys.next_back(), want.next_back()),
            };
            assert_eq!(
                got.map(|key| Vec::from(key.unwrap())),
                want.map(|(key, _)| key)
            );
        }
        let rest: Vec<_> = keys.map(|key| Vec::from(key.unwrap())).collect();
        assert_eq!(rest, want.map(|(key, _)| key).collect::<Vec<_>>());
    }

    fn churn(&mut self, seed: u8) {
        for number in 0..300usize {
            let key = format!("key{:03}", number * 7 % 120).into_bytes();
            let value = vec![number as u8 ^ seed; 8000 + number];
            self.region.put(&key, &value).unwrap();
            self.map.insert(key, value);
        }
        self.store.checkpoint().unwrap();
        for (key, value) in &self.map {
            let got = self.region.get(key).unwrap().map(Vec::from);
            assert_eq!(got.as_ref(), Some(value));
        }
    }

    fn reopen(&mut self, path: &Path, settings: Settings) {
        self.snapshots.clear();
        self.store.close().unwrap();
        let (old_store, old_region) = (self.store.clone(), self.region.clone());
        // All handles must be dropped before the lock is free.
        let placeholder = tempfile::tempdir().unwrap();
        (self.store, self.region) = open(&placeholder.path().join("other"), settings);
        drop((old_store, old_region));
        (self.store, self.region) = open(path, settings);
    }

    fn verify(&self) {
        let report = self.store.verify().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn store_agrees_with_a_map(
        steps in prop::collection::vec(step(), 1..250),
        inline in prop::sample::select(vec![0usize, 64, 256]),
        // With much memory, log segments are reused while earlier uses are in memory.
        memory_bytes in prop::sample::select(vec![8usize << 20, 8 << 20, 64 << 20, 256 << 20]),
    ) {
        let settings = Settings { inline, memory_bytes };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let (store, region) = open(&path, settings);
        let mut run = Run { store, region, map: Map::new(), snapshots: Vec::new() };
        for step in steps {
            run.apply(step, &path, settings);
        }
        run.range(Bound::Unbounded, Bound::Unbounded, false);
        run.range(Bound::Unbounded, Bound::Unbounded, true);
        run.verify();
        run.reopen(&path, settings);
        run.range(Bound::Unbounded, Bound::Unbounded, false);
        run.verify();
    }
}
