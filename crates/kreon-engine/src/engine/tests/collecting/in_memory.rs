//! Data that fits in memory: nothing is read from the device, and what merges dropped is not looked up.

use super::*;
use kreon_base::SegmentId;

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
    for key in model.keys() {
        assert!(!known(bench.place_of(&region, key)), "{key:?} is live");
    }
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

#[test]
fn verification_tells_of_a_live_record_that_is_taken_for_dead() {
    let (bench, region, _) = half_dead(roomy(driven()));
    let storage = &bench.engine.subsystems.storage;
    assert_eq!(bench.problems(), Vec::<String>::new());
    let offset = bench.place_of(&region, &name(6));
    let sequence_of = |segment| storage.log.reader().sequence_of(segment);
    storage.dead.note(&[offset], sequence_of);
    let problems = bench.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let expected = format!("the record at {offset} is live, but collection takes it for dead");
    assert!(problems[0].ends_with(&expected), "{problems:?}");
}

#[test]
fn nothing_is_known_of_a_segment_that_was_freed() {
    let (bench, _, _) = half_dead(roomy(driven()));
    let storage = &bench.engine.subsystems.storage;
    let segments = || storage.allocator.lock().log_segments(MAIN_LOG);
    let known = |segments: &[(SegmentId, u64)]| {
        let known = segments
            .iter()
            .filter(|of| storage.dead.of(of.0, of.1).is_some());
        known.count()
    };
    let before = segments();
    assert!(known(&before) > 1);
    bench.collect();
    bench.spill();
    let left = segments();
    let freed: Vec<_> = before.into_iter().filter(|of| !left.contains(of)).collect();
    assert!(freed.len() > 1, "{freed:?}");
    assert_eq!(known(&freed), 0);
}
