//! A follower that applies a feed to maps has what the store has, whatever happens meanwhile: a seed tells what.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use kreon_sim::Keep;

use super::*;
use crate::options::Clock;

const KEYS: u64 = 300;

/// Values of a region, with the moments when they end.
type Map = BTreeMap<Vec<u8>, (Vec<u8>, Option<Timestamp>)>;

/// What a follower has.
struct Follower {
    position: Position,
    regions: BTreeMap<u32, Map>,
    /// How often it began anew.
    begun: u32,
}

struct Run {
    dice: Dice,
    options: Options,
    ms: Arc<AtomicU64>,
    bench: Option<Bench>,
    follower: Follower,
    crashes: u64,
}

fn bench_on(image: Image, options: &Options) -> Bench {
    let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
    let shared = Arc::clone(&device) as Arc<dyn Device>;
    let engine = Engine::open(shared, options.clone()).unwrap();
    Bench { device, engine }
}

/// All pairs of a region that have not ended.
fn pairs(engine: &Engine, region: &Arc<RegionState>) -> Map {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = engine.scan(region, engine.snapshot(), bounds);
    let copied = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    let pairs = std::iter::from_fn(|| scan.next_with(copied).unwrap());
    let timed = pairs.map(|(key, value)| {
        let found = engine.attributes(region, &key, None).unwrap();
        let expires = found.and_then(|(attributes, _)| attributes.expires());
        (key, (value, expires))
    });
    timed.collect()
}

impl Follower {
    fn apply(&mut self, engine: &Engine, unit: ChangeUnit) {
        for change in unit.changes {
            let region = self.regions.entry(change.region).or_default();
            match change.what {
                Changed::Put {
                    key,
                    value,
                    expires,
                } => {
                    let ms = |end: SystemTime| end.duration_since(UNIX_EPOCH).unwrap().as_millis();
                    let expires = expires.map(|end| Timestamp::of_ms(ms(end) as u64));
                    region.insert(key, (value, expires));
                }
                Changed::Delete { key } => _ = region.remove(&key),
                Changed::DeleteRange { start, end } => region
                    .retain(|key, _| *key < start || end.as_ref().is_some_and(|end| key >= end)),
                Changed::Made => region.clear(),
                Changed::Dropped => _ = self.regions.remove(&change.region),
                Changed::Loaded { first, last } => {
                    let state = engine.subsystems.regions.of(RegionId(change.region));
                    let Some(state) = state else { continue };
                    let loaded = pairs(engine, &state).into_iter();
                    region.extend(loaded.filter(|(key, _)| (&first..=&last).contains(&key)));
                }
            }
        }
        self.position = unit.end;
    }

    /// Copies all there is, and follows from before the copy on.
    fn begin(&mut self, engine: &Engine) {
        self.begun += 1;
        self.position = engine.changes_end().unwrap();
        let regions = engine.subsystems.regions.list().into_iter();
        let copies = regions.map(|region| (region.id.0, pairs(engine, &region)));
        self.regions = copies.collect();
    }

    fn follow(&mut self, engine: &Engine) {
        let mut changes = match engine.changes(self.position) {
            Ok(changes) => changes,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                return self.begin(engine);
            }
        };
        while let Some(unit) = changes.next_unit().unwrap() {
            assert_eq!(unit.end, changes.position());
            self.apply(engine, unit);
        }
        self.position = changes.position();
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ms = Arc::new(AtomicU64::new(1000));
        let shown = Arc::clone(&ms);
        let options = Options {
            memory_bytes: 8 << 20,
            l0_bytes: Some([8 << 10, 64 << 10][dice.below(2) as usize]),
            inline_value_bytes_max: [0, 64][dice.below(2) as usize],
            growth_factor: Some(2),
            unspilled_bytes_min: 1 << 20,
            space_amplification: 1.1,
            scatter_pages: dice.below(2) == 0,
            volume_bytes_max: [64 << 20, 1 << 30][dice.below(2) as usize],
            changes_kept_bytes: [1 << 20, 1 << 30][dice.below(2) as usize],
            clock: Clock::of(move || Timestamp::of_ms(shown.load(Ordering::Relaxed))),
            ..options()
        };
        let bench = bench_on(Image::default(), &options);
        let follower = Follower {
            position: bench.engine.changes_start().unwrap(),
            regions: BTreeMap::new(),
            begun: 0,
        };
        Self {
            dice,
            options,
            ms,
            bench: Some(bench),
            follower,
            crashes: 0,
        }
    }

    fn engine(&self) -> &Engine {
        &self.bench.as_ref().unwrap().engine
    }

    fn region(&mut self) -> Arc<RegionState> {
        let name = ["a", "b"][self.dice.below(2) as usize];
        self.engine()
            .region_with(name, Durability::Buffered)
            .unwrap()
    }

    fn key(&mut self) -> Vec<u8> {
        name(self.dice.below(KEYS) as u32)
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [0, 3, 60, 300, 5000, 60_000][self.dice.below(6) as usize];
        let long = self.dice.below(200) == 0;
        vec![self.dice.below(256) as u8; if long { 3 << 20 } else { len }]
    }

    fn write(&mut self, count: u64) {
        let now = self.ms.load(Ordering::Relaxed);
        let mut changes = Vec::new();
        for _ in 0..count {
            let (region, key) = (self.region(), self.key());
            let end = name((self.dice.below(KEYS / 10) + 1) as u32);
            let value = match self.dice.below(8) {
                0 => None,
                _ => Some(self.value()),
            };
            let is_range = self.dice.below(20) == 0;
            let ttl = 1 + self.dice.below(500);
            let expires = (self.dice.below(6) == 0).then(|| Timestamp::of_ms(now + ttl));
            changes.push((region, key, end, value, is_range, expires));
        }
        let range = |start: &Vec<u8>, end: &Vec<u8>| {
            let end = [&start[..], end].concat();
            DeletedRange::of((Bound::Included(start.clone()), Bound::Excluded(end)))
        };
        let ranges: Vec<_> = changes
            .iter()
            .map(|(_, key, end, ..)| range(key, end).unwrap().unwrap())
            .collect();
        let operations = changes.iter().zip(&ranges);
        let operations: Vec<_> = operations
            .map(|((region, key, _, value, is_range, expires), range)| {
                if *is_range {
                    return range.operation(region);
                }
                Operation {
                    region,
                    key,
                    value: value.as_deref(),
                    is_range: false,
                    terms: Terms::until(expires.filter(|_| value.is_some())),
                }
            })
            .collect();
        let durability = match self.dice.below(5) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        self.engine().write(&operations, durability).unwrap();
    }

    fn load(&mut self) {
        let region = self.region();
        let (start, step) = (self.dice.below(KEYS), 1 + self.dice.below(20));
        let keys: Vec<_> = (start..KEYS).step_by(step as usize).collect();
        let pairs: Vec<_> = keys
            .into_iter()
            .map(|key| (name(key as u32), self.value()))
            .collect();
        let mut pairs = Listed(pairs.into_iter(), Default::default());
        self.engine().ingest(&region, &mut pairs).unwrap();
    }

    /// The follower has what the store has.
    fn compare(&mut self) {
        self.engine().sync().unwrap();
        let engine = &self.bench.as_ref().unwrap().engine;
        self.follower.follow(engine);
        let now = Timestamp::of_ms(self.ms.load(Ordering::Relaxed));
        let regions = engine.subsystems.regions.list();
        for region in &regions {
            let followed = self.follower.regions.get(&region.id.0);
            let followed = followed.into_iter().flatten();
            let alive = followed.filter(|(_, (_, ends))| ends.is_none_or(|ends| ends > now));
            let alive: BTreeMap<_, _> = alive.collect();
            let stored = pairs(engine, region);
            let keys: Vec<_> = stored.keys().collect();
            assert_eq!(alive.keys().copied().collect::<Vec<_>>(), keys);
            assert!(alive.values().zip(stored.values()).all(|(a, b)| *a == b));
        }
        assert!(
            self.follower.regions.len() <= regions.len(),
            "one was dropped"
        );
    }

    fn crash(&mut self) {
        let bench = self.bench.take().unwrap();
        self.crashes += 1;
        let mut keep = match self.dice.below(4) {
            0 => Keep::Nothing,
            1 => Keep::All,
            2 => Keep::SomeWrites { seed: self.crashes },
            _ => Keep::SomeSectors { seed: self.crashes },
        };
        let image = bench.device.history().crash().image(&mut keep);
        drop(bench);
        self.bench = Some(bench_on(image, &self.options));
    }

    fn step(&mut self) {
        match self.dice.below(1000) {
            0..=599 => self.write(1),
            600..=749 => {
                let count = 2 + self.dice.below(8);
                self.write(count);
            }
            750..=769 => {
                let engine = &self.bench.as_ref().unwrap().engine;
                self.follower.follow(engine);
            }
            850..=879 => self.engine().checkpoint().unwrap(),
            880..=899 => self.engine().background(Work::Collect).unwrap(),
            900..=909 => self.engine().background(Work::Image).unwrap(),
            910..=919 => self.engine().background(Work::WriteOut).unwrap(),
            920..=934 => self.compare(),
            935..=939 => self.load(),
            940..=942 => {
                let name = self.region().name.to_string();
                self.engine().drop_region(&name).unwrap();
            }
            943..=945 => self.engine().compact_all(&mut |_| ()).unwrap(),
            946..=960 => self.crash(),
            961..=965 => {
                let image = self.bench.take().unwrap().closed();
                self.bench = Some(bench_on(image, &self.options));
            }
            970..=984 => _ = self.ms.fetch_add(30, Ordering::Relaxed),
            966..=969 => {
                let engine = &self.bench.as_ref().unwrap().engine;
                assert_eq!(engine.verify().unwrap().problems, Vec::<String>::new());
            }
            _ => self.engine().sync().unwrap(),
        }
    }
}

#[test]
fn a_map_that_follows_the_feed_is_the_store_whatever_happens() {
    let mut begun = 0;
    for seed in 1..9 {
        let mut run = Run::new(seed);
        for _ in 0..700 {
            run.step();
        }
        run.compare();
        begun += run.follower.begun;
    }
    assert!(begun > 0, "no feed ever fell behind");
}
