//! Loads whose trees cannot be made one.

use std::time::Duration;

use kreon_sim::{Call, Effect, Fault};

use super::*;

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
        let view = self.engine.core().parts.views.load();
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
    assert!((2..=16).contains(&trees), "{trees}");
}

#[test]
fn spills_go_on_beside_a_long_fold() {
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
    let core = bench.engine.core();
    while core.holds.try_take_for_fold(region.id).is_some() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pressure = &core.pressure;
    for key in 0.. {
        bench.put(&region, &name(key), &[1; 40]).unwrap();
        if pressure.spills_ended() == 2 {
            break;
        }
    }
    assert!(bench.trees() > 1, "the spills waited for the fold");
    while bench.trees() > 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}
