//! Spills by several threads.

use kreon_base::ErrorKind;
use kreon_sim::{Call, Effect, Fault};

use super::*;
use crate::options::Work;
use crate::spill::{Orders, Progress, spill};
use kreon_volume::page_runs::discard;

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
    let subsystems = &bench.engine.subsystems;
    subsystems.versions.freeze(0);
    let view = subsystems.storage.views.load_full();
    let frozen = view.frozen.clone().unwrap();
    let progress = Progress::default();
    let orders = Orders {
        rewrites_all: false,
        exists: &|_| true,
        expired_by: kreon_base::Timestamp::MIN,
        snapshots: &[],
        filter_bits_per_key: 10,
        workers: 3,
        progress: &progress,
    };
    let free = || subsystems.storage.allocator.lock().free_segment_count();
    let free_before = free();
    // What is read before the one that fails stays in memory: so the first ones of each round are others.
    let mut failures = 0;
    loop {
        let fault = Fault::nth(1 + failures % 3, Call::Read, Effect::Io);
        bench.device.inject(fault);
        progress.start(1);
        let spilled = spill(&subsystems.storage, &frozen, &view.levels, &orders);
        bench.device.clear_faults();
        let error = match spilled {
            Err(error) => error,
            Ok(spilled) => {
                discard(&subsystems.storage.mapping, &spilled.kept);
                let mut allocator = subsystems.storage.allocator.lock();
                allocator.release_pages(&spilled.kept).unwrap();
                break;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(free(), free_before);
        failures += 1;
    }
    assert!(failures >= 3, "{failures}");
    assert_eq!(free(), free_before);
    drop((view, frozen));
    bench.engine.background(Work::Spill).unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
    let region = bench.engine.region("r").unwrap();
    for key in (0..MANY).step_by(17) {
        assert_eq!(bench.get(&region, &name(key)).unwrap(), Some(vec![2; 60]));
    }
}

#[test]
fn writers_are_held_to_the_pace_of_a_spill_long_before_l0_is_half_full() {
    let options = Options {
        l0_bytes: Some(4 << 20),
        background: Background::Driven,
        ..options()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let put_all = || (0..KEYS).for_each(|key| bench.put(&region, &name(key), &value(key)).unwrap());
    let subsystems = &bench.engine.subsystems;
    let is_asked = || {
        subsystems
            .writer
            .must_make_room(&subsystems.storage.views.load())
    };
    put_all();
    subsystems.versions.freeze(0);
    put_all();
    assert!(!is_asked(), "no spill has begun");
    let used = subsystems.storage.views.load().active.bytes();
    assert!(used < subsystems.storage.split.l0_bytes / 10, "{used}");
    subsystems.inspector.throttle.spill_starts(u64::from(KEYS));
    assert!(is_asked());
    subsystems
        .inspector
        .throttle
        .delay(used, subsystems.storage.split.l0_bytes);
    assert!(!is_asked(), "not each write asks");
    (0..100).for_each(|key| bench.put(&region, &name(KEYS + key), &[1]).unwrap());
    assert!(is_asked());
    bench.engine.background(Work::Spill).unwrap();
    assert!(!is_asked());
}
