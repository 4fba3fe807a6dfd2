//! Regions with many levels against a `BTreeMap`: an L0 of 4 KiB and growth factors of two and three give four and more
//! levels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kreon::{Durability, Options, Region, Snapshot, Store, WriteBatch};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % end
    }
}

const KEYS: u64 = 4000;

fn name(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

struct Run {
    dice: Dice,
    growth: u32,
    path: PathBuf,
    store: Store,
    region: Region,
    map: Map,
    snapshots: Vec<(Snapshot, Map)>,
    levels_most: usize,
}

fn options(growth: u32) -> Options {
    Store::options()
        .memory_bytes(8 << 20)
        .l0_bytes(4 << 10)
        .growth_factor(growth)
        .background_inline()
}

fn pairs(
    scan: impl Iterator<Item = kreon::Result<(kreon::Value, kreon::Value)>>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    scan.map(|pair| pair.map(|(key, value)| (key.into(), value.into())).unwrap())
        .collect()
}

impl Run {
    fn new(seed: u64, growth: u32, path: &Path) -> Self {
        let store = options(growth).open(path).unwrap();
        let region = store.region("model").unwrap();
        Self {
            dice: Dice(seed * 2 + 1),
            growth,
            path: path.to_owned(),
            store,
            region,
            map: Map::new(),
            snapshots: Vec::new(),
            levels_most: 0,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        name(self.dice.below(KEYS))
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [8, 40, 64, 65, 300][self.dice.below(5) as usize];
        let byte = self.dice.below(256) as u8;
        vec![byte; len]
    }

    fn put(&mut self) {
        let (key, value) = (self.key(), self.value());
        self.region.put(&key, &value).unwrap();
        self.map.insert(key, value);
    }

    /// Deletes a run of keys, most of them.
    fn delete_range(&mut self) {
        let (start, len) = (self.dice.below(KEYS), self.dice.below(300));
        let mut batch = WriteBatch::new();
        for number in start..start + len {
            if self.dice.below(12) > 0 {
                batch.delete(&self.region, name(number));
                self.map.remove(&name(number));
            }
        }
        self.store.write(batch, Durability::Buffered).unwrap();
    }

    fn ingest(&mut self) {
        let (start, step) = (self.dice.below(KEYS), 1 + self.dice.below(40));
        let numbers = (start..KEYS).step_by(step as usize);
        let loaded: Vec<_> = numbers.map(|number| (name(number), self.value())).collect();
        let region = self.region.clone();
        let handed = loaded.iter().map(|(key, value)| (key, value));
        region.ingest(handed).unwrap();
        self.map.extend(loaded);
    }

    fn step(&mut self) {
        match self.dice.below(1000) {
            0..=859 => self.put(),
            860..=919 => {
                let key = self.key();
                self.region.delete(&key).unwrap();
                self.map.remove(&key);
            }
            920..=923 => self.delete_range(),
            924..=926 => self.ingest(),
            927..=936 if self.snapshots.len() < 3 => {
                let snapshot = self.store.snapshot();
                self.snapshots.push((snapshot, self.map.clone()));
            }
            937..=943 if !self.snapshots.is_empty() => {
                let at = self.dice.below(self.snapshots.len() as u64) as usize;
                let (snapshot, map) = self.snapshots.swap_remove(at);
                let want: Vec<_> = map.into_iter().collect();
                assert_eq!(pairs(snapshot.iter(&self.region)), want);
            }
            944..=989 => self.read(),
            990 => self.reopen(),
            991..=992 => self.verify(),
            993 => self.region.compact().unwrap(),
            994..=996 => self.scan(),
            _ => self.store.checkpoint().unwrap(),
        }
    }

    fn read(&mut self) {
        let keys: Vec<_> = (0..8).map(|_| self.key()).collect();
        let got = self.region.multi_get(&keys).unwrap();
        for (key, got) in keys.iter().zip(got) {
            let want = self.map.get(key);
            assert_eq!(got.map(Vec::from).as_ref(), want);
            let one = self.region.get(key).unwrap();
            assert_eq!(one.map(Vec::from).as_ref(), want);
            let later = self.store.drive(self.region.get_async(key)).unwrap();
            assert_eq!(later.map(Vec::from).as_ref(), want);
            for (snapshot, map) in &self.snapshots {
                let old = snapshot.get(&self.region, key).unwrap();
                assert_eq!(old.map(Vec::from).as_ref(), map.get(key));
            }
        }
    }

    fn scan(&mut self) {
        let low = self.key();
        let mut want: Vec<_> = self.map.range(low.clone()..).collect();
        let got = pairs(self.region.range(low.as_slice()..));
        assert!(got.iter().map(|(k, v)| (k, v)).eq(want.iter().copied()));
        want.reverse();
        let got = pairs(self.region.range(low.as_slice()..).rev());
        assert!(got.iter().map(|(k, v)| (k, v)).eq(want.iter().copied()));
    }

    fn verify(&mut self) {
        let report = self.store.verify().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }

    /// Entries of the levels that are not empty.
    fn levels(&self) -> Vec<u64> {
        let levels = self.store.stats().levels;
        let entries = levels.iter().map(|level| level.entries);
        entries.filter(|entries| *entries > 0).collect()
    }

    /// Reopens the store; the levels must be unchanged.
    fn reopen(&mut self) {
        self.snapshots.clear();
        self.store.checkpoint().unwrap();
        let before = self.levels();
        self.store.close().unwrap();
        let other = self.path.with_extension("other");
        self.store = options(2).open(&other).unwrap();
        self.region = self.store.region("model").unwrap();
        self.store = options(self.growth).open(&self.path).unwrap();
        self.region = self.store.existing_region("model").unwrap();
        std::fs::remove_file(other).unwrap();
        assert_eq!(self.levels(), before);
    }
}

fn agree(seed: u64, growth: u32, steps: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::new(seed, growth, &folder.path().join("store"));
    for _ in 0..steps {
        run.step();
        run.levels_most = run.levels_most.max(run.levels().len());
    }
    run.scan();
    run.verify();
    run.snapshots.clear();
    run.region.compact().unwrap();
    let compacted = run.levels();
    assert_eq!(compacted, [run.map.len() as u64]);
    run.scan();
    run.verify();
    run.levels_most
}

#[test]
fn many_levels_agree_with_a_map() {
    let most = [(1, 2), (2, 3), (3, 2)].map(|(seed, growth)| agree(seed, growth, 4000));
    assert!(most.iter().all(|most| (3..10).contains(most)), "{most:?}");
    assert!(most.iter().any(|most| *most >= 4), "{most:?}");
}

#[test]
fn a_store_that_lost_everything_has_no_level_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::new(9, 2, &folder.path().join("store"));
    for _ in 0..3000 {
        run.put();
    }
    assert!(run.levels().len() > 1);
    for number in 0..KEYS {
        run.region.delete(name(number)).unwrap();
    }
    run.region.compact().unwrap();
    assert_eq!(run.levels(), []);
    assert_eq!(run.store.stats().log_live_bytes, 0);
    run.verify();
}

#[test]
fn deletions_reach_what_they_delete_before_they_are_as_many() {
    let folder = tempfile::tempdir().unwrap();
    let store = options(10).open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    for number in 0..20_000 {
        region.put(name(number), [1; 60]).unwrap();
    }
    store.checkpoint().unwrap();
    let entries = || -> u64 { store.stats().levels.iter().map(|l| l.entries).sum() };
    assert!(entries() >= 20_000);
    for number in 0..19_000 {
        region.delete(name(number)).unwrap();
    }
    store.checkpoint().unwrap();
    assert!(entries() < 8_000, "{}", store.stats());
    for number in 19_000..20_000 {
        region.delete(name(number)).unwrap();
    }
    region.compact().unwrap();
    assert_eq!(entries(), 0);
}

#[test]
fn threads_keep_the_levels_few_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::options()
        .memory_bytes(8 << 20)
        .l0_bytes(32 << 10)
        .growth_factor(2)
        .open(folder.path().join("store"))
        .unwrap();
    let regions = ["a", "b"].map(|name| store.region(name).unwrap());
    std::thread::scope(|scope| {
        for region in &regions {
            scope.spawn(|| {
                let mut dice = Dice(77);
                for turn in 0..30_000_u64 {
                    let key = name(dice.below(30_000));
                    region.put(&key, turn.to_le_bytes()).unwrap();
                    if turn % 64 == 0 {
                        let got = region.get(&key).unwrap();
                        assert_eq!(got.unwrap(), turn.to_le_bytes().as_slice());
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..5 {
                regions[0].compact().unwrap();
            }
        });
        for _ in 0..20 {
            let levels = store.stats().levels;
            let most = levels.iter().map(|level| level.level).max();
            assert!(most.unwrap_or(0) <= 14, "{}", store.stats());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert!(store.stats().merges > 0);
    // The merge in progress becomes useless.
    store.drop_region("a").unwrap();
    assert!(store.verify().unwrap().is_clean());
}
