//! Loads whose trees cannot be made one.

use std::time::Duration;

use kreon_sim::{Call, Effect, Fault};

use super::*;
use crate::options::Work;

/// Pairs with the keys of [`Bench::filled`].
struct Load {
    next: u32,
    key: Vec<u8>,
}

impl Pairs for Load {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let number = self.next;
        self.next += 1;
        self.key = name(number);
        Ok((number < KEYS).then_some((&self.key, b"loaded")))
    }
}

impl Bench {
    fn load(&self, region: &RegionState) {
        let (next, key) = (0, Vec::new());
        let mut load = Load { next, key };
        assert_eq!(self.engine.ingest(region, &mut load).unwrap(), 3000);
    }

    /// How many trees region "r" has.
    fn trees(&self) -> usize {
        let region = self.engine.existing_region("r").unwrap();
        let view = self.engine.subsystems.storage.views.load();
        view.levels.of(region.id).len()
    }
}

#[test]
fn trees_that_cannot_be_folded_never_become_too_many_for_the_catalogue() {
    let bench = Bench::filled();
    let damaged = bench.tree_page();
    // Opened anew, nothing of the tree is in memory.
    let bench = Bench::open(bench.closed(), options()).unwrap();
    bench.device.flip_bit(damaged.offset_bytes() + 2000, 3);
    let region = bench.engine.region("r").unwrap();
    bench.load(&region);
    for key in 0..40 {
        bench.put(&region, &name(key), b"newer").unwrap();
        let error = bench.engine.checkpoint().unwrap_err();
        assert_eq!(error.kind(), kreon_base::ErrorKind::Corruption);
    }
    let after = Bench::open(bench.device.image(), options()).unwrap();
    let region = after.engine.region("r").unwrap();
    for (key, expected) in [(0, &b"newer"[..]), (39, b"newer"), (40, b"loaded")] {
        let found = after.get(&region, &name(key)).unwrap();
        assert_eq!(found.as_deref(), Some(expected));
    }
    let trees = bench.trees();
    assert!((2..=24).contains(&trees), "{trees}");
}

#[test]
fn spills_go_on_beside_a_long_merge() {
    let bench = Bench::filled();
    let old = bench.tree_page();
    let bench = Bench::open(bench.closed(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let (start, flip) = (old.offset_bytes(), Effect::FlippedBit { bit: 9 });
    let fault = Fault::nth(1, Call::Read, flip).for_ever();
    bench.device.inject(fault.within(start..start + 4096));
    bench.load(&region);
    assert!(bench.trees() > 1);
    // Both trees are there and whole; to read the lower one takes long.
    let device = SimDevice::from_image(bench.device.image(), SimOptions::default());
    let time = Duration::from_millis(1500);
    let slow = Fault::nth(1, Call::Read, Effect::Slow { time });
    device.inject(slow.within(start..start + 4096));
    let device = Arc::new(device);
    let options = Options {
        background: Background::Threads,
        ..options()
    };
    let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options).unwrap();
    let bench = Bench { device, engine };
    let region = bench.engine.region("r").unwrap();
    let subsystems = &bench.engine.subsystems;
    while subsystems.tree_locks.merged(region.id).is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let throttle = &subsystems.inspector.throttle;
    for key in 0.. {
        bench.put(&region, &name(key), &[1; 40]).unwrap();
        if throttle.spills_ended() >= 2 {
            break;
        }
    }
    assert!(bench.trees() > 1, "the spills waited for the merge");
    while bench.trees() > 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}

/// Pairs with the keys of [`Bench::filled`], with images of L0, writes and a spill while they are handed in.
struct Busy<'a> {
    bench: &'a Bench,
    region: &'a RegionState,
    pairs: Load,
    /// What a kill in the middle leaves.
    killed: Option<Image>,
}

impl Busy<'_> {
    fn delete(&self, key: u32) {
        let operation = Operation {
            region: self.region,
            key: &name(key),
            value: None,
            is_range: false,
            terms: Terms::default(),
        };
        let deleted = self.bench.engine.write(&[operation], Durability::Buffered);
        deleted.unwrap();
    }

    fn put(&self, key: u32, value: &[u8]) {
        self.bench.put(self.region, &name(key), value).unwrap();
    }

    fn beside(&mut self) {
        let engine = &self.bench.engine;
        match self.pairs.next {
            100 => {
                self.put(500, b"beside");
                self.delete(50);
                engine.background(Work::Image).unwrap();
            }
            1000 => {
                assert!(engine.subsystems.versions.freeze(0));
                engine.background(Work::Spill).unwrap();
                self.put(501, b"beside");
                self.delete(1600);
                engine.background(Work::Image).unwrap();
            }
            2000 => {
                self.put(502, b"beside");
                engine.sync().unwrap();
                self.killed = Some(self.bench.device.image());
            }
            _ => {}
        }
    }
}

impl Pairs for Busy<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.beside();
        self.pairs.next()
    }
}

#[test]
fn an_image_taken_beside_a_load_brings_back_what_stands_above_it_and_nothing_else() {
    let driven = Options {
        l0_bytes: Some(4 << 20),
        background: Background::Driven,
        ..options()
    };
    let filled = Bench::filled();
    let old = filled.tree_page().offset_bytes();
    let filled = filled.closed();
    let check = |image: Image, is_loaded: bool| {
        let after = Bench::open(image, driven.clone()).unwrap();
        let region = after.engine.region("r").unwrap();
        let older = |key| match key {
            2990 => b"before".to_vec(),
            _ => value(key),
        };
        for key in 0..KEYS {
            let expected = match key {
                500..=502 => Some(b"beside".to_vec()),
                50 | 1600 => None,
                _ if is_loaded => Some(b"loaded".to_vec()),
                _ => Some(older(key)),
            };
            assert_eq!(after.get(&region, &name(key)).unwrap(), expected, "{key}");
        }
        assert_eq!(after.problems(), Vec::<String>::new());
    };
    for is_folded in [true, false] {
        let bench = Bench::open(filled.clone(), driven.clone()).unwrap();
        let region = bench.engine.region("r").unwrap();
        bench.put(&region, &name(2990), b"before").unwrap();
        bench.engine.background(Work::Image).unwrap();
        let (next, key) = (0, Vec::new());
        let mut busy = Busy {
            bench: &bench,
            region: &region,
            pairs: Load { next, key },
            killed: None,
        };
        if !is_folded {
            let fault = Fault::nth(1, Call::Read, Effect::FlippedBit { bit: 9 });
            bench
                .device
                .inject(fault.for_ever().within(old..old + 4096));
        }
        bench.engine.ingest(&region, &mut busy).unwrap();
        let killed = busy.killed.take().unwrap();
        check(killed, false);
        assert_eq!(bench.engine.subsystems.storage.ledger.lock().image.len(), 1);
        assert_eq!(bench.trees() > 2, !is_folded);
        check(bench.device.image(), true);
    }
}
