//! Data that fits in memory: nothing is read from the device, and what merges dropped is not looked up.

use super::*;

fn roomy(options: Options) -> Options {
    Options {
        memory_bytes: 64 << 20,
        ..options
    }
}

#[test]
fn neither_gets_nor_collection_read_the_device_while_the_log_fits_in_memory() {
    let (bench, region, mut model) = half_dead(roomy(driven()));
    let reads = || bench.engine.stats().device_reads;
    let before = reads();
    bench.collect();
    bench.spill();
    assert!(bench.moved() >= 2000, "{}", bench.moved());
    for key in 0..8000 {
        assert!(bench.get(&region, &name(key)).unwrap().is_some());
    }
    assert_eq!(reads(), before);
    // Segments that were freed are used again.
    for round in 2..6 {
        for key in 0..8000 {
            let value = content(key, round, 1000);
            bench.put(&region, &name(key), &value).unwrap();
            model.insert(name(key), value);
        }
        bench.spill();
        bench.collect();
        bench.spill();
        for (key, value) in &model {
            assert_eq!(bench.get(&region, key).unwrap().as_ref(), Some(value));
        }
    }
    assert_eq!(reads(), before);
    bench.checked(&region, &model);
}

#[test]
fn what_spills_dropped_is_known_to_be_dead_and_nothing_else() {
    let (bench, region, model) = half_dead(roomy(driven()));
    let storage = &bench.engine.subsystems.storage;
    let segments = storage.allocator.lock().log_segments(MAIN_LOG);
    let known = |offset: LogOffset| {
        segments.iter().any(|(segment, sequence)| {
            let dead = storage.dead.of(*segment, *sequence);
            offset.segment() == *segment && dead.is_some_and(|dead| dead.has(offset, 1000))
        })
    };
    let reader = &bench.engine.subsystems.reader;
    let view = reader.view_of(&region).unwrap();
    for key in model.keys() {
        let located = reader.locate(&view, &region, key, Lsn::MAX).unwrap();
        let (offset, _) = located.unwrap().record(key).unwrap();
        assert!(!known(offset), "{key:?} is live");
    }
    drop(view);
    let dead: usize = segments
        .iter()
        .filter_map(|(segment, sequence)| storage.dead.of(*segment, *sequence))
        .map(|dead| {
            let lines = (0..SEGMENT_BYTES).step_by(64);
            lines
                .filter(|within| dead.has(LogOffset(*within), 64))
                .count()
        })
        .sum();
    assert_eq!(dead, 4000);
}

#[test]
fn after_an_opening_nothing_is_known_and_all_is_collected() {
    let (bench, _, model) = half_dead(roomy(driven()));
    let bench = Bench::open(bench.closed(), roomy(driven())).unwrap();
    let region = bench.engine.region("r").unwrap();
    let before = bench.log_segments();
    bench.collect();
    bench.spill();
    assert!(bench.moved() >= 2000, "{}", bench.moved());
    let freed = before[0] - bench.log_segments()[0];
    assert!(freed > 1, "{freed} segments");
    bench.checked(&region, &model);
}
