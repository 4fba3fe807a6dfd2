//! Merges of levels that meet with something.

use std::time::{Duration, Instant};

use kreon_base::ErrorKind;
use kreon_sim::{Call, Effect, Fault};

use super::*;
use crate::options::Work;
use kreon_volume::Purpose;

/// L0s of 16 KiB, and levels of 32, 128, 512 KiB.
fn level_options(background: Background) -> Options {
    Options {
        l0_bytes: Some(16 << 10),
        growth_factor: Some(4),
        volume_bytes_max: 64 << 20,
        background,
        ..options()
    }
}

impl Bench {
    /// A store whose region "r" has trees to be merged, which nobody does by himself.
    fn due() -> Self {
        let bench = Self::open(Image::default(), level_options(Background::Driven)).unwrap();
        let region = bench.engine.region("r").unwrap();
        let mut key = 0;
        while !(bench.engine.is_merge_due() && bench.full_trees() > 1) {
            bench.put(&region, &name(key), &value(key)).unwrap();
            key += 1;
            if bench.engine.is_spill_due() {
                bench.engine.background(Work::Spill).unwrap();
                if bench.full_trees() < 2 {
                    bench.engine.background(Work::Merge).unwrap();
                }
            }
        }
        bench
    }

    fn full_trees(&self) -> usize {
        let levels = self.engine.stats().levels;
        levels.iter().filter(|level| level.entries > 0).count()
    }
}

#[test]
fn a_merge_without_space_changes_nothing_and_succeeds_later() {
    let bench = Bench::due();
    let storage = &bench.engine.subsystems.storage;
    let before = bench.engine.stats();
    let mut taken = Vec::new();
    while let Ok((first, count)) = storage
        .allocator
        .lock()
        .allocate_pages(512, Purpose::Maintenance)
    {
        taken.extend((first.0..first.0 + count).map(PageNo));
    }
    let error = bench.engine.background(Work::Merge).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    assert_eq!(bench.engine.stats().merges, before.merges);
    storage.allocator.lock().release_pages(&taken).unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
    assert!(bench.engine.is_merge_due());
    bench.engine.background(Work::Merge).unwrap();
    assert!(!bench.engine.is_merge_due());
    assert_eq!(bench.engine.stats().merges, before.merges + 1);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

/// Opened again; the root of the lowest tree of region "r" is read slowly once.
fn slow(bench: Bench, time: Duration, background: Background) -> Bench {
    let region = bench.engine.region("r").unwrap();
    let subsystems = &bench.engine.subsystems;
    let lowest = *subsystems
        .storage
        .views
        .load()
        .levels
        .of(region.id)
        .last()
        .unwrap();
    let start = lowest.root.unwrap().page.offset_bytes();
    let device = SimDevice::from_image(bench.closed(), SimOptions::default());
    let slow = Fault::nth(1, Call::Read, Effect::Slow { time });
    device.inject(slow.within(start..start + 4096));
    let device = Arc::new(device);
    let options = level_options(background);
    let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options).unwrap();
    Bench { device, engine }
}

impl Bench {
    /// Waits until a merge of region "r" is under way.
    fn await_merge(&self) {
        let region = self.engine.region("r").unwrap();
        let locks = &self.engine.subsystems.tree_locks;
        while locks.merged(region.id).is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A store in the middle of a merge of its own thread that takes `time`.
fn slowly(bench: Bench, time: Duration) -> Bench {
    let bench = slow(bench, time, Background::Threads);
    bench.await_merge();
    bench
}

#[test]
fn a_checkpoint_succeeds_while_the_region_that_it_merges_is_dropped() {
    let bench = slow(Bench::due(), Duration::from_millis(400), Background::Driven);
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| bench.engine.checkpoint());
        bench.await_merge();
        bench.engine.drop_region("r").unwrap();
        checkpoint.join().unwrap().unwrap();
    });
    assert_eq!(bench.engine.stats().merges, 0);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_region_is_dropped_in_the_middle_of_a_merge() {
    let bench = slowly(Bench::due(), Duration::from_millis(400));
    bench.engine.drop_region("r").unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
    assert_eq!(bench.engine.stats().levels, []);
    assert_eq!(bench.engine.stats().merges, 0);
    let again = bench.engine.region("r").unwrap();
    bench.put(&again, b"key", b"value").unwrap();
    bench.engine.checkpoint().unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_store_closes_in_the_middle_of_a_merge() {
    let bench = slowly(Bench::due(), Duration::from_millis(400));
    let begun = Instant::now();
    let image = bench.closed();
    assert!(begun.elapsed() < Duration::from_secs(5));
    let bench = Bench::open(image, level_options(Background::Inline)).unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn spilled_pages_come_back_during_a_long_merge() {
    let bench = slowly(Bench::due(), Duration::from_millis(1500));
    let region = bench.engine.region("r").unwrap();
    let subsystems = &bench.engine.subsystems;
    let spilled = bench.engine.stats().spills;
    for key in 0.. {
        bench.put(&region, &name(key), &[1; 40]).unwrap();
        if bench.engine.stats().spills > spilled + 3 {
            break;
        }
    }
    // The tree that they went into was replaced three times; nobody waits for those pages.
    std::thread::sleep(Duration::from_millis(50));
    assert!(
        !subsystems.tree_locks.merged(region.id).is_empty(),
        "it was too quick"
    );
    let waiting = bench.engine.stats().retired_pages;
    assert!(waiting < 20, "{waiting} pages wait for the merge");
    while bench.engine.is_merge_due() || !subsystems.tree_locks.merged(region.id).is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[cfg(feature = "comparison")]
#[test]
fn a_spill_that_rewrites_all_leaves_packs_them() {
    let full = Options {
        designs: crate::options::Designs {
            full_compaction: true,
            ..crate::options::Designs::default()
        },
        growth_factor: None,
        ..options()
    };
    let bench = Bench::open(Image::default(), full).unwrap();
    let region = bench.engine.region("r").unwrap();
    let leaves = |bench: &Bench| bench.engine.stats().levels[0].leaf_pages;
    for key in 0..KEYS {
        bench.put(&region, &name(key), &value(key)).unwrap();
    }
    bench.engine.checkpoint().unwrap();
    let (before, written) = (leaves(&bench), bench.engine.stats().spill_pages_written);
    bench.put(&region, &name(1), b"one more").unwrap();
    bench.engine.checkpoint().unwrap();
    let more = bench.engine.stats().spill_pages_written - written;
    assert!(more > before && before.abs_diff(leaves(&bench)) <= 1);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_range_without_keys_leaves_lower_trees_as_they_are() {
    let bench = Bench::filled();
    let region = bench.engine.region("r").unwrap();
    let subsystems = &bench.engine.subsystems;
    let trees = || {
        subsystems
            .storage
            .views
            .load()
            .levels
            .of(region.id)
            .to_vec()
    };
    {
        let _changes = subsystems.versions.lock_changes();
        assert_eq!(subsystems.versions.put_empty_tree_on(region.id), 1);
    }
    let before = trees();
    let delete = |start: &str, end: &str| {
        let bounds = (
            std::ops::Bound::Included(start.into()),
            std::ops::Bound::Excluded(end.into()),
        );
        let range = DeletedRange::of(bounds).unwrap().unwrap();
        let operation = range.operation(&region);
        let engine = &bench.engine;
        engine.write(&[operation], Durability::Buffered).unwrap();
        subsystems.versions.freeze(0);
        subsystems.maintenance.spiller.spill_frozen().unwrap();
    };
    delete("key000001a", "key000001b");
    delete("l", "m");
    assert_eq!(trees(), before);
    delete("key000001", "key000002");
    assert_eq!(trees()[1].entries, before[1].entries - 1);
    assert_eq!(bench.problems(), Vec::<String>::new());
}
