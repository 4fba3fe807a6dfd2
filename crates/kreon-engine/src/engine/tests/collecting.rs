//! Garbage collection of the log: what moves stays what it was, and what is dead gives its space back.

use std::collections::BTreeMap;

use kreon_base::{ErrorKind, LogOffset, Lsn, RegionId, SEGMENT_BYTES};

use super::*;
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::options::Work;
use kreon_log::MOVED_LOG;

mod asking;
mod copies;
mod in_memory;
mod space;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn tiny() -> Options {
    Options {
        l0_bytes: Some(64 << 10),
        unspilled_bytes_min: 1 << 20,
        space_amplification: 1.3,
        ..options()
    }
}

fn driven() -> Options {
    Options {
        background: Background::Driven,
        l0_bytes: Some(1 << 20),
        unspilled_bytes_min: 64 << 20,
        ..tiny()
    }
}

/// A value that names its key and its writer.
fn content(key: u32, version: u32, len: usize) -> Vec<u8> {
    let mut bytes = format!("{key}/{version}/").into_bytes();
    bytes.resize(len.max(bytes.len()), key as u8 ^ version as u8);
    bytes
}

impl Bench {
    fn checked(&self, region: &RegionState, model: &Model) {
        for (key, value) in model {
            assert_eq!(self.get(region, key).unwrap().as_ref(), Some(value));
        }
        assert_eq!(self.problems(), Vec::<String>::new());
    }

    fn spill(&self) {
        let subsystems = &self.engine.subsystems;
        subsystems.versions.freeze(0);
        self.engine.background(Work::Spill).unwrap();
    }

    fn collect(&self) {
        self.engine.background(Work::Collect).unwrap();
    }

    fn log_segments(&self) -> [usize; 2] {
        let allocator = self.engine.subsystems.storage.allocator.lock();
        [MAIN_LOG, MOVED_LOG].map(|log| allocator.log_segments(log).len())
    }

    fn moved(&self) -> u64 {
        self.engine.stats().collection.records_moved
    }
}

/// A store whose log has a dead record in place of each of the keys with odd numbers.
fn half_dead(options: Options) -> (Bench, std::sync::Arc<RegionState>, Model) {
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut model = Model::new();
    for version in 0..2 {
        for key in (0..8000).filter(|key| version == 0 || key % 2 == 1) {
            let value = content(key, version, 1000);
            bench.put(&region, &name(key), &value).unwrap();
            model.insert(name(key), value);
        }
        bench.spill();
    }
    (bench, region, model)
}

#[test]
fn records_that_moved_are_found_and_their_segments_freed_after_the_spill() {
    let (bench, region, model) = half_dead(driven());
    let [before, _] = bench.log_segments();
    bench.collect();
    assert!(bench.moved() > 3000, "{}", bench.moved());
    bench.checked(&region, &model);
    assert_eq!(bench.log_segments()[0], before);
    bench.spill();
    let [after, moved] = bench.log_segments();
    assert!(
        after + 3 <= before && moved >= 1,
        "{before} {after} {moved}"
    );
    bench.checked(&region, &model);
    // The open segment of moved records is one as any other for the next run.
    let bench = Bench::open(bench.closed(), driven()).unwrap();
    let region = bench.engine.region("r").unwrap();
    bench.checked(&region, &model);
}

#[test]
fn a_crash_forgets_what_was_moved_and_not_spilled() {
    let (bench, region, model) = half_dead(driven());
    bench.engine.sync().unwrap();
    bench.collect();
    bench.checked(&region, &model);
    let moved = bench.log_segments()[1];
    assert!(moved > 0);
    let image = bench.device.image();
    std::mem::forget(bench);
    let bench = Bench::open(image, driven()).unwrap();
    let region = bench.engine.region("r").unwrap();
    assert_eq!(bench.log_segments()[1], 0);
    bench.checked(&region, &model);
    bench.collect();
    bench.spill();
    bench.checked(&region, &model);
}

#[test]
fn a_checkpoint_before_the_spill_leaves_moved_records_alone() {
    let (bench, region, model) = half_dead(driven());
    bench.collect();
    let [_, moved] = bench.log_segments();
    bench.engine.region("another").unwrap();
    bench.engine.subsystems.versions.reclaim().unwrap();
    bench.put(&region, b"new", &content(1, 1, 70_000)).unwrap();
    assert_eq!(bench.log_segments()[1], moved);
    bench.checked(&region, &model);
}

#[test]
fn a_key_that_was_written_meanwhile_keeps_its_new_value() {
    let (bench, region, mut model) = half_dead(driven());
    // In L0, in L0', and in both.
    for key in 0..2000 {
        let value = content(key, 7, 500);
        bench.put(&region, &name(key), &value).unwrap();
        model.insert(name(key), value);
    }
    bench.engine.subsystems.versions.freeze(0);
    for key in 1000..3000 {
        let value = content(key, 8, 500);
        bench.put(&region, &name(key), &value).unwrap();
        model.insert(name(key), value);
    }
    bench.delete(&region, &name(4000));
    model.remove(&name(4000));
    bench.collect();
    assert!(bench.moved() > 1000);
    bench.checked(&region, &model);
    assert_eq!(bench.get(&region, &name(4000)).unwrap(), None);
    bench.engine.background(Work::Spill).unwrap();
    bench.checked(&region, &model);
    bench.spill();
    bench.checked(&region, &model);
    assert_eq!(bench.get(&region, &name(4000)).unwrap(), None);
}

#[test]
fn snapshots_keep_seeing_what_they_saw() {
    let (bench, region, before) = half_dead(driven());
    let snapshot = bench.engine.snapshot();
    for key in (0..8000).step_by(4) {
        bench
            .put(&region, &name(key), &content(key, 5, 900))
            .unwrap();
    }
    bench.spill();
    let later = bench.engine.snapshot();
    for _ in 0..4 {
        bench.collect();
        bench.spill();
    }
    assert!(bench.moved() > 0);
    let at = |key: u32, snapshot| {
        let found = bench
            .engine
            .get(&region, &name(key), Some(snapshot), <[u8]>::to_vec);
        found.unwrap()
    };
    for key in (0..8000).step_by(7) {
        assert_eq!(at(key, &snapshot), before.get(&name(key)).cloned());
        if key % 4 == 0 {
            assert_eq!(at(key, &later), Some(content(key, 5, 900)));
        }
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
    let [held, _] = bench.log_segments();
    drop((snapshot, later));
    // Versions that nobody sees any more go when their leaves are written anew.
    for round in 0..3 {
        for key in (round..8000).step_by(16) {
            bench.put(&region, &name(key), b"").unwrap();
        }
        bench.spill();
        bench.collect();
    }
    bench.spill();
    bench.spill();
    assert!(bench.log_segments()[0] < held);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn long_values_and_long_keys_move_whole() {
    let bench = Bench::open(Image::default(), driven()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut model = Model::new();
    let long_key = |number: u32| [vec![b'k'; 3000], name(number)].concat();
    for round in 0..3 {
        for number in 0..3 {
            let value = content(number, round, 5 << 20);
            bench.put(&region, &name(number), &value).unwrap();
            model.insert(name(number), value);
            let value = content(number, round, 900);
            bench.put(&region, &long_key(number), &value).unwrap();
            model.insert(long_key(number), value);
            let value = content(number, round, 100_000);
            bench
                .put(&region, &name(100 * round + number), &value)
                .unwrap();
            model.insert(name(100 * round + number), value);
        }
        bench.spill();
    }
    for _ in 0..4 {
        bench.collect();
        bench.checked(&region, &model);
        bench.spill();
        bench.checked(&region, &model);
    }
    assert!(bench.moved() > 4, "{}", bench.moved());
    let live: u64 = model.values().map(|value| value.len() as u64).sum();
    let segments: usize = bench.log_segments().iter().sum();
    assert!(
        (segments as u64) < live / SEGMENT_BYTES + 8,
        "{segments} for {live}"
    );
    let bench = Bench::open(bench.closed(), driven()).unwrap();
    let region = bench.engine.region("r").unwrap();
    bench.checked(&region, &model);
}

#[test]
fn a_record_moves_again_and_again() {
    let (bench, region, mut model) = half_dead(driven());
    let mut dice = Dice(3);
    for round in 0..6 {
        for _ in 0..2500 {
            let key = dice.below(8000) as u32;
            let value = content(key, 10 + round, 1000);
            bench.put(&region, &name(key), &value).unwrap();
            model.insert(name(key), value);
        }
        bench.spill();
        bench.collect();
    }
    bench.spill();
    bench.spill();
    bench.checked(&region, &model);
    let segments: usize = bench.log_segments().iter().sum();
    assert!(segments <= 8, "{segments}");
}

/// Keys and values that come and go, snapshots and scans, and openings anew; checked all the time.
#[test]
fn a_store_that_is_collected_all_the_time_is_like_its_model() {
    let mut bench = Bench::open(Image::default(), tiny()).unwrap();
    let mut region = bench.engine.region("r").unwrap();
    let (mut model, mut dice) = (Model::new(), Dice(11));
    let mut snapshot = None;
    for step in 0..30_000u32 {
        let key = dice.below(1500) as u32;
        match dice.below(20) {
            0 => {
                bench.delete(&region, &name(key));
                model.remove(&name(key));
            }
            1..=5 => assert_eq!(
                bench.get(&region, &name(key)).unwrap().as_ref(),
                model.get(&name(key))
            ),
            _ => {
                let len = [30, 300, 1000, 3000][dice.below(4) as usize];
                let value = content(key, step, len);
                bench.put(&region, &name(key), &value).unwrap();
                model.insert(name(key), value);
            }
        }
        if step % 4001 == 4000 {
            snapshot = Some((bench.engine.snapshot(), model.clone()));
        }
        if step % 4001 == 2500
            && let Some((snapshot, model)) = snapshot.take()
        {
            for (key, value) in &model {
                let found = bench
                    .engine
                    .get(&region, key, Some(&snapshot), <[u8]>::to_vec);
                assert_eq!(found.unwrap().as_ref(), Some(value));
            }
        }
        if step % 7919 == 7918 {
            snapshot = None;
            bench = Bench::open(bench.closed(), tiny()).unwrap();
            region = bench.engine.region("r").unwrap();
        }
    }
    bench.checked(&region, &model);
    assert!(bench.moved() > 0);
}

#[test]
fn a_load_is_not_hidden_by_what_was_moved_while_it_ran() {
    struct Collecting<'a>(&'a Bench, u32, [Vec<u8>; 2]);
    impl Pairs for Collecting<'_> {
        fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
            if self.1 == 4000 {
                self.0.collect();
            }
            self.1 += 1;
            self.2 = [name(self.1), content(self.1, 99, 300)];
            let [key, value] = &self.2;
            Ok((self.1 < 8000).then_some((key.as_slice(), value.as_slice())))
        }
    }
    let (bench, region, mut model) = half_dead(driven());
    let mut pairs = Collecting(&bench, 0, Default::default());
    bench.engine.ingest(&region, &mut pairs).unwrap();
    for key in 1..8000 {
        model.insert(name(key), content(key, 99, 300));
    }
    bench.checked(&region, &model);
    bench.collect();
    bench.spill();
    bench.checked(&region, &model);
}

#[test]
fn dropped_regions_take_their_moved_records_along() {
    let (bench, region, _) = half_dead(driven());
    bench.collect();
    bench.engine.drop_region("r").unwrap();
    assert!(region.check().is_err());
    bench.spill();
    bench
        .engine
        .subsystems
        .maintenance
        .spiller
        .checkpoint()
        .unwrap();
    let other = bench.engine.region("other").unwrap();
    assert_ne!(other.id, RegionId(1));
    bench.put(&other, b"key", &content(1, 1, 100)).unwrap();
    bench.spill();
    bench.spill();
    assert!(bench.log_segments().iter().sum::<usize>() <= 4);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_record_that_stood_in_one_piece_is_cut_where_its_copy_meets_an_end_of_a_segment() {
    let bench = Bench::open(Image::default(), driven()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut model = Model::new();
    for version in 0..2 {
        for key in (0..60).filter(|key| version == 0 || key % 3 == 0) {
            // Longer than what is never cut.
            let value = content(key, version, 90_000 + 1000 * key as usize);
            bench.put(&region, &name(key), &value).unwrap();
            model.insert(name(key), value);
        }
        bench.spill();
    }
    bench.collect();
    bench.spill();
    assert!(bench.moved() > 20, "{}", bench.moved());
    bench.checked(&region, &model);
}
