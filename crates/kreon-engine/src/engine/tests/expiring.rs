//! Values that end by themselves.

mod changing;

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use kreon_base::Timestamp;
use kreon_log::Own;

use super::*;
use crate::options::Clock;
use crate::transaction::{Current, Update};

/// Milliseconds that values live here.
const TTL: u64 = 100;

/// A store with a clock that stands still until it is set.
struct Timed {
    bench: Bench,
    region: Arc<RegionState>,
    ms: Arc<AtomicU64>,
}

/// A clock that shows these milliseconds.
fn clock(ms: &Arc<AtomicU64>) -> Clock {
    let ms = Arc::clone(ms);
    Clock::of(move || Timestamp::of_ms(ms.load(Ordering::Relaxed)))
}

/// Of each kind of entry one: in the leaf, in the log, with a key too long for a node, over two segments.
fn pairs() -> Vec<(Vec<u8>, Vec<u8>)> {
    let long = [b"l".repeat(1100), b"ong".to_vec()].concat();
    vec![
        (b"inline".to_vec(), b"short".to_vec()),
        (b"empty".to_vec(), Vec::new()),
        (b"logged".to_vec(), vec![7; 500]),
        (long, vec![8; 10]),
        (b"split".to_vec(), vec![9; 3 << 20]),
    ]
}

impl Timed {
    fn new() -> Self {
        Self::on(Image::default(), 1000)
    }

    fn on(image: Image, ms: u64) -> Self {
        let ms = Arc::new(AtomicU64::new(ms));
        let options = Options {
            clock: clock(&ms),
            ..options()
        };
        let bench = Bench::open(image, options).unwrap();
        let region = bench.engine.region("r").unwrap();
        Self { bench, region, ms }
    }

    fn now(&self) -> u64 {
        self.ms.load(Ordering::Relaxed)
    }

    fn wait(&self, ms: u64) {
        self.ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn put_until(&self, key: &[u8], value: &[u8], expires: Option<u64>) {
        let operation = Operation {
            region: &self.region,
            key,
            value: Some(value),
            is_range: false,
            terms: Terms::until(expires.map(Timestamp::of_ms)),
        };
        let engine = &self.bench.engine;
        engine.write(&[operation], Durability::Buffered).unwrap();
    }

    /// Puts all [`pairs`] for [`TTL`], and one that stays.
    fn fill(&self) {
        for (key, value) in pairs() {
            self.put_until(&key, &value, Some(self.now() + TTL));
        }
        self.put_until(b"stays", b"here", None);
    }

    /// All keys, by every way to read; each way must find the same.
    fn keys(&self, snapshot: Option<&Arc<OpenSnapshot>>) -> Vec<Vec<u8>> {
        let engine = &self.bench.engine;
        let mut asked: Vec<_> = pairs().into_iter().map(|(key, _)| key).collect();
        asked.push(b"stays".to_vec());
        asked.sort();
        let open = snapshot.map(|snapshot| &**snapshot);
        let has = |key: &Vec<u8>| engine.contains(&self.region, key, open).unwrap();
        let found: Vec<_> = asked.iter().filter(|key| has(key)).cloned().collect();
        for key in &asked {
            let value = engine.get_value(&self.region, key, open, Own).unwrap();
            assert_eq!(value.is_some(), found.contains(key));
            let attributes = engine.attributes(&self.region, key, open).unwrap();
            assert_eq!(attributes.is_some(), found.contains(key));
            let mut task = engine.get_task(&self.region, snapshot);
            let polled = std::future::poll_fn(|context| task.poll(key, context.waker(), Own));
            assert_eq!(engine.drive(polled).unwrap(), value);
            let open = snapshot.map_or_else(|| engine.snapshot(), Arc::clone);
            let reader = engine.value_reader(&self.region, key, open).unwrap();
            assert_eq!(reader.is_some(), value.is_some());
            if let (Some(mut reader), Some(value)) = (reader, &value) {
                assert_eq!(reader.len_bytes() as usize, value.len());
                let mut whole = Vec::new();
                while whole.len() < value.len() {
                    whole.extend_from_slice(reader.bytes_from(whole.len() as u32).unwrap());
                }
                assert!(whole == *value);
            }
            let expected = pairs().into_iter().find(|(pair, _)| pair == key);
            if let (Some(value), Some((_, expected))) = (value, expected) {
                assert!(value == expected);
            }
        }
        if snapshot.is_none() {
            let asked_for: Vec<_> = asked.iter().map(Vec::as_slice).collect();
            let mut many = Vec::new();
            let take = |at: usize, _| many.push(asked[at].clone());
            engine.multi_get(&self.region, &asked_for, take).unwrap();
            many.sort();
            assert_eq!(many, found);
        }
        for (with_values, is_from_front) in [(true, true), (false, true), (true, false)] {
            let snapshot = snapshot.map_or_else(|| engine.snapshot(), Arc::clone);
            let bounds = (Bound::Unbounded, Bound::Unbounded);
            let mut scan = engine.scan(&self.region, snapshot, bounds);
            if !with_values {
                scan.without_values();
            }
            let mut scanned = Vec::new();
            let key = |key: &[u8], _: &[u8]| key.to_vec();
            while let Some(key) = match is_from_front {
                true => scan.next_with(key),
                false => scan.next_back_with(key),
            }
            .unwrap()
            {
                scanned.push(key);
            }
            scanned.sort();
            assert_eq!(scanned, found);
        }
        found
    }

    fn reopened(self) -> Self {
        let now = self.now();
        Self::on(self.bench.closed(), now)
    }

    fn live_bytes(&self) -> u64 {
        self.bench.engine.stats().log_live_bytes
    }

    fn entries(&self) -> u64 {
        let view = self.bench.engine.subsystems.storage.views.load();
        let trees = view.levels.of(self.region.id).iter();
        trees.map(|tree| tree.entries).sum()
    }

    fn update(&self, key: &[u8], update: Update) -> Option<Timestamp> {
        let mut before = None;
        let change = |current: Option<Current<'_>>| {
            before = current.and_then(|current| current.expires);
            Ok(update.clone())
        };
        let engine = &self.bench.engine;
        engine
            .update(&self.region, key, Durability::Buffered, change)
            .unwrap();
        before
    }

    fn expiry(&self, key: &[u8]) -> Option<Option<u64>> {
        let found = self.bench.engine.attributes(&self.region, key, None);
        let found = found.unwrap()?;
        Some(found.0.expires().map(Timestamp::ms))
    }
}

/// What is done with a store between a write and a read.
type Between = fn(Timed) -> Timed;

#[test]
fn an_expired_key_is_gone_at_once_wherever_it_stands() {
    let ways: [Between; 4] = [
        |timed| timed,
        |timed| {
            timed.bench.engine.checkpoint().unwrap();
            timed
        },
        // The log is replayed.
        |timed| timed.reopened(),
        |timed| {
            timed.bench.engine.background(Work::Image).unwrap();
            timed.reopened()
        },
    ];
    for between in ways {
        let timed = Timed::new();
        timed.fill();
        let timed = between(timed);
        timed.wait(TTL - 1);
        assert_eq!(timed.keys(None).len(), 6);
        timed.wait(1);
        assert_eq!(timed.keys(None), [b"stays"]);
        assert_eq!(timed.bench.problems(), Vec::<String>::new());
    }
}

#[test]
fn a_snapshot_sees_what_was_alive_when_it_was_made() {
    let timed = Timed::new();
    timed.fill();
    let engine = &timed.bench.engine;
    timed.wait(TTL - 1);
    let alive = engine.snapshot();
    timed.wait(1);
    // At the same position of the log, but later.
    let ended = engine.snapshot();
    for _ in 0..2 {
        assert_eq!(timed.keys(Some(&alive)).len(), 6);
        assert_eq!(timed.keys(Some(&ended)), [b"stays"]);
        engine.checkpoint().unwrap();
        for key in 0..10 {
            timed.put_until(&name(key), b"more", None);
        }
        engine.checkpoint().unwrap();
        engine.background(Work::Collect).unwrap();
        for key in 0..10 {
            timed.put_until(&name(key), b"more", Some(1));
        }
    }
    drop((alive, ended));
    engine.compact_all(&mut |_| ()).unwrap();
    assert_eq!(timed.entries(), 1);
}

#[test]
fn a_run_of_expired_keys_is_no_gap_for_an_older_snapshot() {
    let timed = Timed::new();
    let engine = &timed.bench.engine;
    for key in 0..500 {
        timed.put_until(&name(key), b"v", Some(timed.now() + TTL));
    }
    let older = engine.snapshot();
    timed.wait(TTL);
    let count = |snapshot: Arc<OpenSnapshot>| {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = engine.scan(&timed.region, snapshot, bounds);
        let mut count = 0;
        while scan.next_with(|_, _| ()).unwrap().is_some() {
            count += 1;
        }
        count
    };
    // One has it watched, the next notes it.
    for _ in 0..3 {
        timed.put_until(b"a", b"another position", None);
        assert_eq!(count(engine.snapshot()), 1);
    }
    assert_eq!(count(Arc::clone(&older)), 500);
    let passed = |engine: &Engine| engine.subsystems.reader.scanned_dead();
    drop(older);
    for _ in 0..3 {
        timed.put_until(b"a", b"another position", None);
        assert_eq!(count(engine.snapshot()), 1);
    }
    let before = passed(engine);
    assert_eq!(count(engine.snapshot()), 1);
    // The key in front of it.
    assert!(
        passed(engine) - before < 3,
        "without old snapshots it is one"
    );
}

#[test]
fn an_expired_version_hides_those_beneath_it() {
    let timed = Timed::new();
    let engine = &timed.bench.engine;
    for (key, _) in pairs() {
        timed.put_until(&key, b"older", None);
    }
    engine.checkpoint().unwrap();
    timed.fill();
    for way in 0..3 {
        if way == 0 {
            timed.wait(TTL);
        }
        if way == 1 {
            engine.checkpoint().unwrap();
        }
        if way == 2 {
            engine.compact_all(&mut |_| ()).unwrap();
        }
        assert_eq!(timed.keys(None), [b"stays"], "way {way}");
    }
    assert_eq!(timed.entries(), 1);
}

#[test]
fn a_spill_into_the_last_level_drops_what_has_expired_and_counts_its_records_as_dead() {
    let timed = Timed::new();
    let engine = &timed.bench.engine;
    timed.fill();
    engine.checkpoint().unwrap();
    assert!(timed.live_bytes() > 3 << 20);
    timed.wait(TTL);
    // Beside each of them, so that their leaf is written anew.
    timed.put_until(b"f", b"", None);
    engine.checkpoint().unwrap();
    assert_eq!((timed.entries(), timed.live_bytes()), (2, 0));
    // And what had expired before it was spilled never comes there.
    timed.fill();
    timed.wait(TTL);
    engine.checkpoint().unwrap();
    assert_eq!((timed.entries(), timed.live_bytes()), (2, 0));
    assert_eq!(timed.bench.problems(), Vec::<String>::new());
}

#[test]
fn collection_leaves_a_deletion_in_place_of_an_expired_record() {
    let timed = Timed::new();
    let engine = &timed.bench.engine;
    // Half of the records die by overwriting, so that their segments are worth collecting.
    let keys = 3000;
    for key in 0..keys {
        timed.put_until(&name(key), &[1; 4000], Some(timed.now() + TTL));
    }
    engine.checkpoint().unwrap();
    for key in (0..keys).step_by(2) {
        timed.put_until(&name(key), &[2; 100], None);
    }
    engine.checkpoint().unwrap();
    let live = timed.live_bytes();
    timed.wait(TTL);
    for _ in 0..50 {
        engine.background(Work::Collect).unwrap();
    }
    let stats = engine.stats();
    let moved = stats.collection.bytes_copied;
    assert!(
        stats.collection.records_moved > 100,
        "{:?}",
        stats.collection
    );
    assert!(moved < live / 10, "{moved} of {live}");
    engine.checkpoint().unwrap();
    assert_eq!(timed.bench.problems(), Vec::<String>::new());
    let timed = timed.reopened();
    let held = |key| timed.bench.get(&timed.region, &name(key)).unwrap();
    for key in 0..keys {
        assert_eq!(held(key).is_some(), key % 2 == 0, "{key}");
    }
}
