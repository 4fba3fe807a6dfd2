//! Space: full volumes, and who is slowed down for it.

use super::*;

#[test]
fn a_small_live_set_is_overwritten_for_ten_times_the_volume() {
    let volume_bytes = 48 << 20;
    let options = Options {
        volume_bytes_max: volume_bytes,
        ..tiny()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let (mut written, mut dice, mut model) = (0, Dice(5), Model::new());
    while written < 10 * volume_bytes {
        let key = dice.below(1000) as u32;
        let value = content(key, written as u32, 8000);
        written += value.len() as u64;
        bench.put(&region, &name(key), &value).unwrap();
        model.insert(name(key), value);
    }
    bench.checked(&region, &model);
}

#[test]
fn a_volume_full_of_dead_records_takes_new_ones() {
    let options = Options {
        volume_bytes_max: 48 << 20,
        // Nothing is collected but under throttle.
        space_amplification: 10.0,
        ..tiny()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut key = 0;
    let mut model = Model::new();
    let full = loop {
        let value = content(key, 0, 4000);
        match bench.put(&region, &name(key), &value) {
            Ok(()) => model.insert(name(key), value),
            Err(error) => break error,
        };
        key += 1;
    };
    assert_eq!(full.kind(), ErrorKind::OutOfSpace);
    // Every second one goes: no segment is free by that.
    for dead in (0..key).step_by(2) {
        bench.delete(&region, &name(dead));
        model.remove(&name(dead));
    }
    for new in 0..key / 4 {
        let value = content(new, 1, 4000);
        bench.put(&region, &name(2 * new), &value).unwrap();
        model.insert(name(2 * new), value);
    }
    bench.checked(&region, &model);
}

#[test]
fn a_load_of_new_keys_is_not_slowed_down_and_overwriting_is() {
    let mut options = driven();
    (options.unspilled_bytes_min, options.space_amplification) = (1 << 20, 1.05);
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let write = |key, version| {
        let value = content(key, version, 10_000);
        bench.put(&region, &name(key), &value).unwrap();
    };
    let subsystems = &bench.engine.subsystems;
    let is_slow = || {
        subsystems.maintenance.gc.collect_lazily().unwrap();
        !subsystems.inspector.throttle.owed_for(1 << 20).is_zero()
    };
    (0..1200).for_each(|key| write(key, 1));
    assert!(!is_slow(), "nothing of it is dead");
    bench.spill();
    // No segment is all dead, or the spill alone would free it.
    for version in 2..5 {
        let keys = (0..1200).filter(|key| key % 4 + 1 >= version);
        keys.for_each(|key| write(key, version));
        bench.spill();
    }
    assert!(is_slow(), "more than half of the bytes are dead");
}

#[test]
fn what_a_backup_keeps_from_being_reused_slows_nobody_down() {
    let mut options = driven();
    (options.unspilled_bytes_min, options.space_amplification) = (1 << 20, 4.0);
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let subsystems = &bench.engine.subsystems;
    let mut kept = None;
    // Each version makes the segments of the one before dead as a whole.
    for version in 0..6 {
        for key in 0..1200 {
            let value = content(key, version, 10_000);
            bench.put(&region, &name(key), &value).unwrap();
        }
        bench.spill();
        kept.get_or_insert_with(|| subsystems.storage.views.keep_pages());
    }
    let (_, waiting) = subsystems.storage.views.waiting();
    assert!(waiting > 12, "{waiting} segments wait for the backup");
    subsystems.maintenance.gc.collect_lazily().unwrap();
    assert!(subsystems.inspector.throttle.owed_for(1 << 20).is_zero());
    drop(kept);
    bench.engine.background(Work::Spill).unwrap();
    bench.engine.checkpoint().unwrap();
    subsystems.versions.reclaim().unwrap();
    assert_eq!(subsystems.storage.views.waiting(), (0, 0));
}

#[test]
fn only_what_overwrites_is_spilled_before_l0_is_full() {
    let mut options = driven();
    options.unspilled_bytes_min = 2 << 20;
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let subsystems = &bench.engine.subsystems;
    let is_frozen = || subsystems.storage.views.load().frozen.is_some();
    let write = |keys: std::ops::Range<u32>, version| {
        keys.take_while(|_| !is_frozen())
            .map(|key| {
                let value = content(key, version, 4000);
                bench.put(&region, &name(key), &value).unwrap();
            })
            .count()
    };
    // 12 MB of new keys: six times what may be hidden.
    assert_eq!(write(0..3000, 1), 3000);
    assert!(!is_frozen());
    // What L0' itself has is overwritten.
    let few = write(0..3000, 2);
    assert!((400..1200).contains(&few), "{few}");
    bench.spill();
    // What the trees have is, beside as many new keys.
    let half = (0..3000).take_while(|pair| {
        write(2999 - pair..3000 - pair, 3) + write(3000 + pair..3001 + pair, 1) == 2
    });
    let half = half.count();
    assert!((400..1200).contains(&half), "{half}");
}

#[test]
fn a_put_that_finds_no_space_waits_for_readers_of_what_is_free() {
    let options = Options {
        volume_bytes_max: 48 << 20,
        ..tiny()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let put = |key| bench.put(&region, &name(key), &content(key, 0, 4000));
    let full = (0..).find_map(|key| put(key).err().map(|error| (key, error)));
    let (count, error) = full.unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    let view = bench.engine.subsystems.storage.views.load_full();
    (0..count).for_each(|key| bench.delete(&region, &name(key)));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(view);
        });
        assert!(
            bench
                .engine
                .subsystems
                .maintenance
                .gc
                .free_space_for(4)
                .unwrap()
        );
    });
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn space_grows_while_a_snapshot_sees_what_is_overwritten_and_comes_back() {
    let options = Options {
        background: Background::Threads,
        l0_bytes: Some(1 << 20),
        write_amplification_max: 100.0,
        ..tiny()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let overwrite = |version| {
        for key in 0..4000 {
            let value = content(key, version, 4000);
            bench.put(&region, &name(key), &value).unwrap();
        }
    };
    let taken = || bench.engine.subsystems.space.space_use().needed_bytes;
    overwrite(0);
    let snapshot = bench.engine.snapshot();
    (1..3).for_each(overwrite);
    bench.engine.checkpoint().unwrap();
    let held = taken();
    let seen = bench
        .engine
        .get(&region, &name(77), Some(&snapshot), <[u8]>::to_vec);
    assert_eq!(seen.unwrap(), Some(content(77, 0, 4000)));
    drop(snapshot);
    (3..5).for_each(overwrite);
    bench.engine.checkpoint().unwrap();
    let most = held - (10 << 20);
    for _ in 0..400 {
        if taken() <= most {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    assert!(taken() <= most, "{held} {}", taken());
    let model = (0..4000).map(|key| (name(key), content(key, 4, 4000)));
    bench.checked(&region, &model.collect());
}
