//! Partial reorganisation: what is scanned again and again comes to lie together, and stays what it was.

mod idle;

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_sim::Dice;

use super::*;
use crate::options::Work;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) const KEYS_SCANNED: u32 = 12_000;
const PAIRS: usize = 50;

pub(super) fn driven() -> Options {
    Options {
        memory_bytes: 8 << 20,
        l0_bytes: Some(1 << 20),
        background: Background::Driven,
        space_amplification: 4.0,
        unspilled_bytes_min: 64 << 20,
        ..options()
    }
}

pub(super) fn content(key: u32, version: u64, len: usize) -> Vec<u8> {
    let mut bytes = format!("{key}/{version}/").into_bytes();
    bytes.resize(len.max(bytes.len()), key as u8 ^ version as u8);
    bytes
}

impl Bench {
    fn spill_all(&self) {
        self.engine.subsystems.versions.freeze(0);
        self.engine.background(Work::Spill).unwrap();
    }

    /// What a scan of so many pairs from `key` on shows.
    fn pairs(
        &self,
        region: &Arc<RegionState>,
        snapshot: &Arc<OpenSnapshot>,
        key: u32,
        pairs: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        use std::ops::Bound;
        let bounds = (Bound::Included(name(key)), Bound::Unbounded);
        let mut scan = self.engine.scan(region, Arc::clone(snapshot), bounds);
        scan.limit(pairs);
        let mut shown = Vec::new();
        let copy = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
        while let Some(pair) = scan.next_with(copy).unwrap() {
            shown.push(pair);
        }
        shown
    }

    /// Scans everything in pieces, in an order that is none; reads at the device for each of them.
    fn scan_pieces(&self, region: &Arc<RegionState>, is_reorganised: bool) -> f64 {
        self.scan_pieces_of(KEYS_SCANNED, region, is_reorganised)
    }

    /// The same of the first so many keys.
    fn scan_pieces_of(&self, keys: u32, region: &Arc<RegionState>, is_reorganised: bool) -> f64 {
        self.scan_pieces_and(keys, region, || {
            if is_reorganised {
                self.engine.background(Work::Reorganise).unwrap();
            }
        })
    }

    /// The same, with a call after each piece.
    fn scan_pieces_and(
        &self,
        keys: u32,
        region: &Arc<RegionState>,
        mut after_each: impl FnMut(),
    ) -> f64 {
        let pieces = keys / PAIRS as u32;
        let mut reads = 0;
        for piece in 0..pieces {
            let start = piece * 101 % pieces * PAIRS as u32;
            let before = self.engine.stats().device_reads;
            let shown = self.pairs(region, &self.engine.snapshot(), start, PAIRS);
            reads += self.engine.stats().device_reads - before;
            for (number, (key, value)) in (start..).zip(&shown) {
                assert_eq!((key, value), (&name(number), &content(number, 0, 1000)));
            }
            assert_eq!(shown.len(), PAIRS);
            after_each();
        }
        reads as f64 / f64::from(pieces)
    }
}

/// A store with more in it than it has memory, written in the order of `number_of`.
pub(super) fn written(
    options: Options,
    number_of: impl Fn(u32) -> u32,
) -> (Bench, Arc<RegionState>) {
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    for key in (0..KEYS_SCANNED).map(number_of) {
        bench
            .put(&region, &name(key), &content(key, 0, 1000))
            .unwrap();
    }
    bench.engine.checkpoint().unwrap();
    (bench, region)
}

pub(super) fn scattered(at: u32) -> u32 {
    at * 7919 % KEYS_SCANNED
}

#[test]
fn what_is_scanned_again_is_read_at_once() {
    let (bench, region) = written(driven(), scattered);
    let first = bench.scan_pieces(&region, true);
    assert!(first > 30.0, "{first}");
    bench.scan_pieces(&region, true);
    for is_spilled in [false, true] {
        let later = bench.scan_pieces(&region, false);
        assert!(later < 5.0, "{later} reads, spilled: {is_spilled}");
        bench.spill_all();
    }
    let before = bench.engine.stats().reorganisation;
    assert!(before.records_moved >= u64::from(KEYS_SCANNED) * 9 / 10);
    assert!(before.records_moved <= u64::from(KEYS_SCANNED) * 11 / 10);
    // It lies together: nobody touches it again.
    for _ in 0..3 {
        bench.scan_pieces(&region, true);
    }
    let after = bench.engine.stats().reorganisation;
    assert!(after.records_moved <= before.records_moved + u64::from(KEYS_SCANNED) / 20);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_thread_lays_values_together_meanwhile() {
    let options = Options {
        background: Background::Threads,
        l0_checkpoint_interval: None,
        unspilled_bytes_min: 4 << 20,
        space_amplification: 10.0,
        ..driven()
    };
    let (bench, region) = written(options, scattered);
    let mut reads = f64::MAX;
    for _ in 0..50 {
        reads = bench.scan_pieces(&region, false);
        if reads < 6.0 {
            break;
        }
    }
    assert!(reads < 6.0, "{reads}");
    assert!(bench.engine.stats().reorganisation.seconds > 0.0);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn gets_lay_nothing_together() {
    let (bench, region) = written(driven(), scattered);
    for _ in 0..3 {
        for key in 0..KEYS_SCANNED {
            assert!(bench.get(&region, &name(key)).unwrap().is_some());
        }
    }
    bench.engine.background(Work::Reorganise).unwrap();
    let stats = bench.engine.stats().reorganisation;
    assert_eq!(stats, ReorganisationStats::default());
}

#[test]
fn what_was_written_in_order_is_never_moved() {
    let (bench, region) = written(driven(), |at| at);
    for _ in 0..6 {
        bench.scan_pieces(&region, true);
    }
    let stats = bench.engine.stats().reorganisation;
    assert_eq!((stats.ranges_found, stats.records_moved), (0, 0));
}

#[test]
fn nothing_is_moved_without_space_or_against_the_setting() {
    let tight = Options {
        space_amplification: 1.05,
        scan_space_amplification: 1.0,
        background: Background::Inline,
        ..driven()
    };
    let off = Options {
        scan_reorganisation: false,
        ..driven()
    };
    for options in [tight, off] {
        let (bench, region) = written(options, scattered);
        for _ in 0..2 {
            bench.scan_pieces(&region, true);
        }
        assert_eq!(bench.engine.stats().reorganisation.records_moved, 0);
    }
}

#[test]
fn a_volume_that_is_nearly_full_is_left_its_room() {
    let roomy = Options {
        scan_space_amplification: 10.0,
        unspilled_bytes_min: 16 << 20,
        background: Background::Inline,
        ..driven()
    };
    let moved = |options: &Options| {
        let (bench, region) = written(options.clone(), scattered);
        let used = bench.engine.subsystems.space.space_use().used_bytes;
        for _ in 0..2 {
            bench.scan_pieces(&region, true);
        }
        (used, bench.engine.stats().reorganisation.records_moved)
    };
    let (used, records) = moved(&roomy);
    assert!(records > 0);
    let full = Options {
        volume_bytes_max: used + (8 << 20),
        ..roomy
    };
    assert_eq!(moved(&full).1, 0);
}

#[test]
fn space_that_copies_took_above_the_target_comes_back() {
    const KEYS: u32 = 40_000;
    let options = Options {
        unspilled_bytes_min: 1 << 20,
        space_amplification: 1.05,
        write_amplification_max: 100.0,
        scan_space_amplification: 10.0,
        ..driven()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    for at in 0..KEYS {
        let key = at * 7919 % KEYS;
        let value = content(key, 0, 1000);
        bench.put(&region, &name(key), &value).unwrap();
        if at % 10_000 == 9_999 {
            bench.spill_all();
        }
    }
    let subsystems = &bench.engine.subsystems;
    // What the thread of collection does, without its clock.
    let collect = || {
        bench.spill_all();
        while subsystems.maintenance.gc.collect_lazily().unwrap() {}
    };
    // So few data may take several times as much for what is always there.
    let above_goal = || {
        let space = subsystems.space.space_use();
        let goal = space.live_bytes as f64 * subsystems.space.plan().target;
        space.needed_bytes as i64 - goal as i64
    };
    let (mut pieces, mut most) = (0, 0);
    let mut pass = || {
        bench.scan_pieces_and(KEYS, &region, || {
            bench.engine.background(Work::Reorganise).unwrap();
            most = most.max(above_goal());
            pieces += 1;
            if pieces % 50 == 0 {
                collect();
            }
        })
    };
    let reads: Vec<f64> = (0..10).map(|_| pass()).collect();
    assert!(reads[0] > 30.0 && reads[9] < 8.0, "{reads:?}");
    assert!(most > 4 << 20, "copies never took more than the target");
    collect();
    assert!(above_goal() <= 0, "{}", above_goal());
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_key_that_is_written_before_its_values_move_keeps_the_new_one() {
    let (bench, region) = written(driven(), scattered);
    bench.scan_pieces(&region, false);
    bench.scan_pieces(&region, false);
    assert!(bench.engine.stats().reorganisation.ranges_found > 50);
    let snapshot = bench.engine.snapshot();
    for key in (0..KEYS_SCANNED).step_by(3) {
        bench
            .put(&region, &name(key), &content(key, 1, 300))
            .unwrap();
    }
    bench.engine.background(Work::Reorganise).unwrap();
    assert!(bench.engine.stats().reorganisation.records_moved > 1000);
    for _ in 0..2 {
        let now = bench.engine.snapshot();
        for key in 0..KEYS_SCANNED {
            let old = content(key, 0, 1000);
            let new = if key % 3 == 0 {
                content(key, 1, 300)
            } else {
                old.clone()
            };
            let at = |snapshot| {
                bench
                    .engine
                    .get(&region, &name(key), snapshot, <[u8]>::to_vec)
            };
            assert_eq!(at(Some(&*snapshot)).unwrap(), Some(old));
            assert_eq!(at(Some(&*now)).unwrap(), Some(new));
        }
        bench.spill_all();
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}

/// Puts, deletions, scans, snapshots and all background work, and crashes; every scan is compared with the model.
#[test]
fn a_store_that_is_reorganised_all_the_time_is_like_its_model() {
    const KEYS: u64 = 4000;
    // Scans have room to hand over what they read.
    let options = || Options {
        memory_bytes: 10 << 20,
        idle_written_max: 100.0,
        idle_bytes_min: Some(0),
        ..driven()
    };
    let mut bench = Bench::open(Image::default(), options()).unwrap();
    let mut region = bench.engine.region("r").unwrap();
    let (mut model, mut dice) = (Model::new(), Dice::new(5));
    // More than there is memory for.
    for at in 0..KEYS as u32 {
        let key = at * 1597 % KEYS as u32;
        let value = content(key, 0, 1500);
        bench.put(&region, &name(key), &value).unwrap();
        model.insert(name(key), value);
    }
    bench.spill_all();
    let mut held: Option<(Arc<OpenSnapshot>, Model)> = None;
    let (mut moved, mut idle) = (0, 0);
    let shown = |model: &Model, key: u32, pairs| -> Vec<_> {
        let pairs = model.range(name(key)..).take(pairs);
        pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    for step in 0..8_000u64 {
        let key = dice.below(KEYS) as u32;
        if bench.engine.is_spill_due() {
            bench.engine.background(Work::Spill).unwrap();
        }
        match dice.below(100) {
            0..=5 => {
                bench.delete(&region, &name(key));
                model.remove(&name(key));
            }
            6..=45 => {
                let value = content(key, step, [10, 400, 1500, 2500][dice.below(4) as usize]);
                bench.put(&region, &name(key), &value).unwrap();
                model.insert(name(key), value);
            }
            46..=79 => {
                let pairs = 1 + dice.below(150) as usize;
                let now = bench.engine.snapshot();
                assert_eq!(
                    bench.pairs(&region, &now, key, pairs),
                    shown(&model, key, pairs)
                );
                if let Some((snapshot, model)) = &held {
                    let found = bench.pairs(&region, snapshot, key, pairs);
                    assert_eq!(found, shown(model, key, pairs));
                }
            }
            80..=90 => bench.engine.background(Work::Reorganise).unwrap(),
            91..=95 => bench.engine.background(Work::LayTogether).unwrap(),
            96 => bench.spill_all(),
            97 => bench.engine.background(Work::Collect).unwrap(),
            98 => bench.engine.background(Work::Image).unwrap(),
            _ => bench.engine.background(Work::Merge).unwrap(),
        }
        match step % 2000 {
            500 => held = Some((bench.engine.snapshot(), model.clone())),
            1500 => held = None,
            1999 => {
                assert_eq!(bench.problems(), Vec::<String>::new());
                bench.engine.sync().unwrap();
                let stats = bench.engine.stats().reorganisation;
                moved += stats.records_moved;
                idle += stats.idle.records_moved;
                let image = bench.device.image();
                std::mem::forget(bench);
                bench = Bench::open(image, options()).unwrap();
                region = bench.engine.region("r").unwrap();
            }
            _ => {}
        }
    }
    assert!(moved > 500 && idle > 500, "{moved}, {idle} in idle time");
}
