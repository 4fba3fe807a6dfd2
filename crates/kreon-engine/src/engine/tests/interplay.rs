//! Everything at once, against a map: ranges, expiries, batches, loads, snapshots, garbage collection, merges, images and crashes
//! of tiny stores, in an order that a seed tells.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use kreon_base::ErrorKind;

use super::*;
use crate::options::{Designs, Work};

mod driven;
mod of_expiry;
mod of_ranges;

use of_expiry::Hands;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const NUMBERS: u64 = 600;

struct Run {
    dice: Dice,
    options: Options,
    bench: Option<Bench>,
    region: Arc<RegionState>,
    map: Map,
    /// When the pairs of the map end that do; and the clock.
    hands: Hands,
    snapshots: Vec<(Arc<OpenSnapshot>, Map)>,
    /// Keys that were written since the load that is under way began.
    written: Option<BTreeSet<Vec<u8>>>,
    trace: Vec<String>,
}

/// Pairs that do something else before each of them.
struct Beside<'a> {
    run: &'a mut Run,
    pairs: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
    pair: (Vec<u8>, Vec<u8>),
}

impl Pairs for Beside<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.run.dice.below(6) == 0 {
            self.run.step(true);
        }
        let Some(pair) = self.pairs.next() else {
            return Ok(None);
        };
        self.pair = pair;
        Ok(Some((&self.pair.0, &self.pair.1)))
    }
}

#[cfg(feature = "comparison")]
fn designs(full_compaction: bool) -> Designs {
    Designs {
        full_compaction,
        ..Designs::default()
    }
}

/// The dice fall the same way, and every spill is partial.
#[cfg(not(feature = "comparison"))]
fn designs(_full_compaction: bool) -> Designs {
    Designs::default()
}

enum Change {
    /// The milliseconds that it lives, if it does not stay.
    Put(Vec<u8>, Vec<u8>, Option<u64>),
    Delete(Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
}

impl Run {
    fn new(seed: u64, background: Background) -> Self {
        let hands = Hands::default();
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let options = Options {
            memory_bytes: 8 << 20,
            l0_bytes: Some([8 << 10, 32 << 10, 128 << 10][dice.below(3) as usize]),
            growth_factor: [Some(2), Some(3), None][dice.below(3) as usize],
            filter_bits_per_key: [0, 10][dice.below(2) as usize],
            inline_value_bytes_max: [0, 64][dice.below(2) as usize],
            unspilled_bytes_min: 1 << 20,
            space_amplification: 1.1,
            scatter_pages: dice.below(2) == 0,
            designs: designs(dice.below(8) == 0),
            spill_threads: 2,
            background,
            store_id: Some(7),
            clock: hands.clock(),
            ..Options::default()
        };
        let bench = Bench::open(Image::default(), options.clone()).unwrap();
        let region = bench.engine.region("r").unwrap();
        Self {
            dice,
            options,
            bench: Some(bench),
            region,
            map: Map::new(),
            hands,
            snapshots: Vec::new(),
            written: None,
            trace: Vec::new(),
        }
    }

    fn bench(&self) -> &Bench {
        self.bench.as_ref().unwrap()
    }

    fn engine(&self) -> &Engine {
        &self.bench().engine
    }

    fn key_of(number: u64) -> Vec<u8> {
        match number % 41 {
            // Long ones, some of which begin alike.
            0 => {
                let mut key = format!("key{:03}", number / 123 * 123).into_bytes();
                key.resize(1100, b'x');
                key.extend_from_slice(&(number as u16).to_be_bytes());
                key
            }
            _ => format!("key{number:03}").into_bytes(),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        Self::key_of(self.dice.below(NUMBERS))
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [3, 40, 65, 300, 3000, 40_000][self.dice.below(6) as usize];
        let len = if len > 1000 && self.dice.below(4) > 0 {
            200
        } else {
            len
        };
        vec![self.dice.below(256) as u8; len]
    }

    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let start = self.dice.below(NUMBERS);
        let long = self.dice.below(5) == 0;
        let len = self.dice.below(if long { 300 } else { 20 });
        (Self::key_of(start), Self::key_of(start + len))
    }

    fn change(&mut self) -> Change {
        match self.dice.below(10) {
            0..=5 => Change::Put(self.key(), self.value(), self.ttl()),
            6..=8 => Change::Delete(self.key()),
            _ => {
                let (start, end) = self.range();
                Change::Range(start, end)
            }
        }
    }

    fn model(&mut self, change: &Change) {
        match change {
            Change::Put(key, value, ttl) => {
                self.map.insert(key.clone(), value.clone());
                self.hands.note(key, *ttl);
            }
            Change::Delete(key) => {
                self.map.remove(key);
                self.hands.note(key, None);
            }
            Change::Range(start, end) => {
                self.map.retain(|key, _| key < start || key >= end);
                self.hands.until.retain(|key, _| key < start || key >= end);
            }
        }
        let Some(written) = &mut self.written else {
            return;
        };
        match change {
            Change::Put(key, ..) | Change::Delete(key) => {
                written.insert(key.clone());
            }
            Change::Range(start, end) => {
                let keys = (0..2 * NUMBERS).map(Self::key_of);
                written.extend(keys.filter(|key| key >= start && key < end));
            }
        }
    }

    fn write(&mut self, changes: &[Change]) {
        let range = |change: &Change| match change {
            Change::Range(start, end) => {
                let bounds = (Bound::Included(start.clone()), Bound::Excluded(end.clone()));
                DeletedRange::of(bounds).unwrap()
            }
            Change::Put(..) | Change::Delete(_) => None,
        };
        let ranges: Vec<Option<DeletedRange>> = changes.iter().map(range).collect();
        let region = Arc::clone(&self.region);
        let operations = changes.iter().zip(&ranges).filter_map(|(change, range)| {
            let (key, value, ttl): (&[u8], Option<&[u8]>, _) = match change {
                Change::Put(key, value, ttl) => (key, Some(value), *ttl),
                Change::Delete(key) => (key, None, None),
                Change::Range(..) => return range.as_ref().map(|range| range.operation(&region)),
            };
            Some(Operation {
                region: &region,
                key,
                value,
                is_range: false,
                terms: Terms::until(ttl.map(|ttl| self.hands.now().plus_ms(ttl))),
            })
        });
        let operations: Vec<_> = operations.collect();
        loop {
            self.make_room();
            match self.engine().write(&operations, Durability::Buffered) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                    self.engine().background(Work::Spill).unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
        for change in changes {
            self.model(change);
        }
    }

    fn work(&self, work: Work) {
        self.engine().background(work).unwrap();
    }

    fn step(&mut self, is_loading: bool) {
        let step = self.dice.below(1000);
        if std::env::var_os("INTERPLAY_TRACE").is_some() {
            self.trace.push(format!("{step}"));
        }
        match step {
            0..=599 => {
                let change = self.change();
                self.write(&[change]);
            }
            600..=659 => {
                let count = self.dice.below(12);
                let changes: Vec<_> = (0..count).map(|_| self.change()).collect();
                self.write(&changes);
            }
            660..=699 => {
                self.engine().subsystems.versions.freeze(0);
            }
            700..=759 => self.work(Work::Spill),
            760..=799 => self.work(Work::Merge),
            800..=839 => self.work(Work::Collect),
            840..=859 => self.work(Work::Image),
            860..=879 if self.snapshots.len() < 3 => {
                let snapshot = self.engine().snapshot();
                self.snapshots.push((snapshot, self.map.clone()));
            }
            880..=899 if !self.snapshots.is_empty() => {
                let at = self.dice.below(self.snapshots.len() as u64) as usize;
                let (snapshot, map) = self.snapshots.swap_remove(at);
                self.scanned(snapshot, &map);
            }
            900..=929 => self.read(),
            930..=934 => {
                let map = self.map.clone();
                self.scanned(self.engine().snapshot(), &map);
            }
            935..=939 => self.verify(),
            940..=944 if !is_loading => self
                .engine()
                .compact(std::slice::from_ref(&self.region), &mut |_| ())
                .unwrap(),
            945..=952 if !is_loading => self.load(),
            953..=956 if !is_loading => self.crash(),
            957..=959 if !is_loading => self.reopen(),
            960..=961 if !is_loading => self.drop_region(),
            962..=969 => self.engine().checkpoint().unwrap(),
            970..=984 => self.tick(),
            _ => self.read(),
        }
    }

    fn load(&mut self) {
        let (start, step) = (self.dice.below(NUMBERS), 1 + self.dice.below(30));
        let numbers = (start..NUMBERS).step_by(step as usize);
        let keys: BTreeSet<_> = numbers.map(Self::key_of).collect();
        let pairs: Vec<_> = keys.into_iter().map(|key| (key, self.value())).collect();
        let subsystems = Arc::clone(&self.engine().subsystems);
        let region = Arc::clone(&self.region);
        self.written = Some(BTreeSet::new());
        let count = pairs.len() as u64;
        let mut beside = Beside {
            run: self,
            pairs: pairs.clone().into_iter(),
            pair: Default::default(),
        };
        assert_eq!(
            subsystems.loader.ingest(&region, &mut beside).unwrap(),
            count
        );
        let written = self.written.take().unwrap();
        let counts = pairs.into_iter().filter(|(key, _)| !written.contains(key));
        for (key, value) in counts {
            self.hands.note(&key, None);
            self.map.insert(key, value);
        }
    }

    fn get(&self, key: &[u8], at: Option<&OpenSnapshot>) -> Option<Vec<u8>> {
        let found = self.engine().get(&self.region, key, at, <[u8]>::to_vec);
        found.unwrap()
    }

    fn read(&mut self) {
        for _ in 0..6 {
            let key = self.key();
            assert_eq!(
                self.get(&key, None).as_ref(),
                self.map.get(&key),
                "{:?}",
                &key[..6]
            );
            for (snapshot, map) in &self.snapshots {
                let found = self.get(&key, Some(snapshot));
                assert_eq!(found.as_ref(), map.get(&key), "{:?}", &key[..6]);
            }
        }
    }

    fn scanned(&self, snapshot: Arc<OpenSnapshot>, map: &Map) {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = self.engine().scan(&self.region, snapshot, bounds);
        let mut found = Map::new();
        let mut count = 0;
        while let Some((key, value)) = scan
            .next_with(|key, value| (key.to_vec(), value.to_vec()))
            .unwrap()
        {
            found.insert(key, value);
            count += 1;
        }
        assert_eq!(count, found.len());
        let brief = |key: &Vec<u8>| key[..key.len().min(8)].to_vec();
        let keys = |map: &Map| map.keys().map(brief).collect::<Vec<_>>();
        assert_eq!(keys(&found), keys(map));
        assert!(found == *map);
    }

    fn verify(&self) {
        assert_eq!(self.bench().problems(), Vec::<String>::new());
    }

    /// Everything is in the log, and nothing else is made durable.
    fn crash(&mut self) {
        self.engine().sync().unwrap();
        let bench = self.bench.take().unwrap();
        let image = bench.device.image();
        self.snapshots.clear();
        drop(bench);
        self.opened(image);
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        let image = self.bench.take().unwrap().closed();
        self.opened(image);
    }

    fn opened(&mut self, image: Image) {
        if self.dice.below(4) == 0 {
            self.options.filter_bits_per_key = 10 - self.options.filter_bits_per_key;
        }
        self.bench = Some(Bench::open(image, self.options.clone()).unwrap());
        self.region = self.engine().region("r").unwrap();
        self.verify();
        let map = self.map.clone();
        self.scanned(self.engine().snapshot(), &map);
    }

    fn drop_region(&mut self) {
        self.snapshots.clear();
        self.engine().drop_region("r").unwrap();
        self.map.clear();
        self.hands.until.clear();
        self.region = self.engine().region("r").unwrap();
    }

    fn end(&mut self) {
        self.read();
        self.reopen();
        for work in [Work::Collect, Work::Spill, Work::Merge] {
            self.work(work);
        }
        self.engine()
            .compact(std::slice::from_ref(&self.region), &mut |_| ())
            .unwrap();
        self.verify();
        let map = self.map.clone();
        self.scanned(self.engine().snapshot(), &map);
        self.write(&[Change::Range(Vec::new(), b"z".to_vec())]);
        self.engine()
            .compact(std::slice::from_ref(&self.region), &mut |_| ())
            .unwrap();
        self.verify();
        assert_eq!(self.engine().stats().log_live_bytes, 0);
        let view = self.engine().subsystems.storage.views.load();
        let trees = view.levels.of(self.region.id).iter();
        assert_eq!(trees.map(|tree| tree.entries).sum::<u64>(), 0);
    }
}

fn agree(seeds: std::ops::Range<u64>, background: Background, steps: usize) {
    for seed in seeds {
        if std::env::var_os("INTERPLAY_SEEDS").is_some() {
            eprintln!("seed {seed}");
        }
        let mut run = Run::new(seed, background);
        for _ in 0..steps {
            run.step(false);
        }
        run.end();
    }
}

/// From the environment, for long hunts: `INTERPLAY_SEEDS=1..1000`.
fn seeds(usual: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let asked = std::env::var("INTERPLAY_SEEDS").ok();
    let asked = asked.and_then(|asked| {
        let (first, end) = asked.split_once("..")?;
        Some(first.parse().ok()?..end.parse().ok()?)
    });
    asked.unwrap_or(usual)
}

#[test]
fn everything_together_agrees_with_a_map() {
    agree(seeds(1..7), Background::Driven, 600);
}

#[test]
fn everything_together_beside_threads_agrees_with_a_map() {
    agree(seeds(1..3), Background::Threads, 1500);
}
