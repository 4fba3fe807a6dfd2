//! Spills by several threads.

use kreon_base::ErrorKind;
use kreon_sim::{Call, Effect, Fault};

use super::*;
use crate::options::Work;
use crate::spill::{Orders, Progress, spill};

/// Enough that the tree is cut into parts.
const MANY: u32 = 24_000;

fn many_options(background: Background) -> Options {
    Options {
        memory_bytes: 24 << 20,
        l0_bytes: Some(4 << 20),
        background,
        spill_threads: 3,
        ..options()
    }
}

/// In an order that is not that of the keys, so that every part of the tree gets some.
fn put_all(bench: &Bench, seed: u8) {
    let region = bench.engine.region("r").unwrap();
    for i in 0..MANY {
        let key = i.wrapping_mul(7919) % MANY;
        bench.put(&region, &name(key), &[seed; 60]).unwrap();
    }
}

#[test]
fn spills_by_several_threads_lose_nothing() {
    let bench = Bench::open(Image::default(), many_options(Background::Threads)).unwrap();
    for seed in 1..=3 {
        put_all(&bench, seed);
        bench.engine.checkpoint().unwrap();
        assert_eq!(bench.problems(), Vec::<String>::new());
    }
    let level = bench.engine.stats().levels.remove(0);
    assert_eq!(level.entries, u64::from(MANY));
    assert!(level.leaf_pages > 256, "{level:?}");
    let bench = Bench::open(bench.closed(), many_options(Background::Threads)).unwrap();
    let region = bench.engine.region("r").unwrap();
    for key in 0..MANY {
        assert_eq!(bench.get(&region, &name(key)).unwrap(), Some(vec![3; 60]));
    }
}

#[test]
fn a_spill_of_which_one_thread_fails_gives_all_its_pages_back() {
    let bench = Bench::open(Image::default(), many_options(Background::Inline)).unwrap();
    put_all(&bench, 1);
    bench.engine.checkpoint().unwrap();
    // Opened anew, nothing of the tree is in memory.
    let bench = Bench::open(bench.closed(), many_options(Background::Driven)).unwrap();
    put_all(&bench, 2);
    let core = bench.engine.core();
    core.freeze(0);
    let view = core.parts.views.load_full();
    let frozen = view.frozen.clone().unwrap();
    let progress = Progress::default();
    let orders = Orders {
        exists: &|_| true,
        snapshots: &[],
        workers: 3,
        progress: &progress,
    };
    let free = || core.parts.allocator.lock().free_segment_count();
    let free_before = free();
    for read in [1, 3, 6] {
        bench
            .device
            .inject(Fault::nth(read, Call::Read, Effect::Io).for_ever());
        progress.start(1);
        let failed = spill(&core.parts, &frozen, &view.levels, &orders);
        assert_eq!(failed.err().map(|error| error.kind()), Some(ErrorKind::Io));
        bench.device.clear_faults();
        assert_eq!(free(), free_before);
    }
    drop((view, frozen));
    bench.engine.background(Work::Spill).unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
    let region = bench.engine.region("r").unwrap();
    for key in (0..MANY).step_by(17) {
        assert_eq!(bench.get(&region, &name(key)).unwrap(), Some(vec![2; 60]));
    }
}
