//! Values that are laid together while nobody writes, before any scan has asked for it.

use std::time::{Duration, Instant};

use kreon_sim::{Call, Effect, Fault};

use super::*;
use crate::maintenance::IdleStats;

impl Bench {
    fn idle(&self) -> IdleStats {
        self.engine.stats().reorganisation.idle
    }

    /// A round, and the spill that it asks for.
    fn round(&self) {
        self.engine.background(Work::LayTogether).unwrap();
        self.engine.background(Work::Spill).unwrap();
    }

    /// Rounds until nothing is left to do.
    fn lay_together(&self) {
        let mut before = None;
        while before != Some(self.idle().passes + self.idle().records_moved) {
            before = Some(self.idle().passes + self.idle().records_moved);
            self.round();
            self.spill_all();
        }
    }

    fn overwrite(&self, region: &Arc<RegionState>, keys: impl Iterator<Item = u32>, version: u64) {
        for key in keys {
            let value = content(key, version, 1000);
            self.put(region, &name(key), &value).unwrap();
        }
    }
}

#[test]
fn what_was_loaded_is_laid_together_before_anybody_scans() {
    let (bench, region) = written(driven(), scattered);
    let before = bench.engine.stats();
    bench.lay_together();
    let idle = bench.idle();
    assert_eq!(
        (idle.passes, idle.records_moved),
        (1, u64::from(KEYS_SCANNED))
    );
    assert!(idle.seconds > 0.0 && idle.bytes_copied > 12_000_000);
    let reads = bench.scan_pieces(&region, true);
    assert!(reads < 4.0, "{reads}");
    // All old segments are free, and scans find nothing to ask for.
    let after = bench.engine.stats();
    assert!(after.log_bytes < before.log_bytes * 3 / 2, "{after}");
    assert_eq!(after.reorganisation.records_moved, 0);
    bench.lay_together();
    assert_eq!(
        bench.idle().records_moved,
        idle.records_moved,
        "once is enough"
    );
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn values_that_were_written_in_order_stay_where_they_are() {
    let (bench, _) = written(driven(), |at| at);
    let before = bench.engine.stats().device_reads;
    bench.lay_together();
    assert_eq!((bench.idle().passes, bench.idle().records_moved), (1, 0));
    let reads = bench.engine.stats().device_reads - before;
    assert!(reads < 300, "{reads}: leaves alone are read");
}

#[test]
fn a_pass_goes_on_where_it_stopped() {
    let (bench, region) = written(driven(), scattered);
    bench.round();
    let first = bench.idle().records_moved;
    assert!(
        (1000..u64::from(KEYS_SCANNED) / 3).contains(&first),
        "{first}"
    );
    bench.overwrite(&region, [3, 5].into_iter(), 1);
    bench.engine.checkpoint().unwrap();
    bench.lay_together();
    let idle = bench.idle();
    assert_eq!(idle.passes, 1);
    let most = u64::from(KEYS_SCANNED) + 10;
    assert!((most - 20..most).contains(&idle.records_moved), "{idle:?}");
}

#[test]
fn no_more_is_written_for_each_byte_given_than_the_budget_allows() {
    let tight = Options {
        idle_written_max: 1.5,
        ..driven()
    };
    let (bench, _) = written(tight, scattered);
    bench.lay_together();
    let (stats, given) = (bench.engine.stats(), u64::from(KEYS_SCANNED) * 1010);
    let moved = stats.reorganisation.idle.records_moved;
    assert!(
        (1000..u64::from(KEYS_SCANNED) * 2 / 3).contains(&moved),
        "{moved}"
    );
    assert!(stats.device_write_bytes < given * 8 / 5, "{stats}");
    assert_eq!(stats.reorganisation.idle.passes, 0);
}

#[test]
fn overwrites_between_passes_are_laid_together_within_the_budget() {
    const TURNS: u64 = 8;
    let (bench, region) = written(driven(), scattered);
    bench.lay_together();
    let mut given = u64::from(KEYS_SCANNED);
    for turn in 1..=TURNS {
        let keys = (0..KEYS_SCANNED).map(scattered);
        let keys: Vec<_> = keys.filter(|key| key % 6 == turn as u32 % 6).collect();
        given += keys.len() as u64;
        bench.overwrite(&region, keys.into_iter(), turn);
        bench.engine.checkpoint().unwrap();
        bench.lay_together();
    }
    let stats = bench.engine.stats();
    assert!(stats.reorganisation.idle.passes > TURNS / 4, "{stats}");
    let cost = stats.device_write_bytes as f64 / (given * 1010) as f64;
    assert!((1.8..2.35).contains(&cost), "{cost}");
    let mut reads = 0;
    for start in (0..KEYS_SCANNED).step_by(PAIRS) {
        let before = bench.engine.stats().device_reads;
        let shown = bench.pairs(&region, &bench.engine.snapshot(), start, PAIRS);
        reads += bench.engine.stats().device_reads - before;
        assert_eq!(shown.len(), PAIRS);
    }
    let reads = reads / u64::from(KEYS_SCANNED) * PAIRS as u64;
    assert!(reads < 20, "{reads} for a scan");
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn nothing_is_laid_together_where_it_is_switched_off_or_everything_fits_in_frames() {
    let off = Options {
        idle_reorganisation: false,
        ..driven()
    };
    let all_off = Options {
        scan_reorganisation: false,
        ..driven()
    };
    let in_memory = Options {
        memory_bytes: 64 << 20,
        ..driven()
    };
    for options in [off, all_off, in_memory] {
        let (bench, _) = written(options, scattered);
        let before = bench.engine.stats().device_write_bytes;
        bench.lay_together();
        assert_eq!(bench.idle().records_moved, 0);
        assert_eq!(bench.engine.stats().device_write_bytes, before);
    }
}

#[test]
fn a_thread_begins_when_nobody_has_written_for_a_while() {
    let threads = |idle_after| Options {
        background: Background::Threads,
        l0_checkpoint_interval: None,
        scan_space_amplification: 10.0,
        idle_after,
        ..driven()
    };
    let (bench, _) = written(threads(Duration::from_secs(3600)), scattered);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(bench.idle(), IdleStats::default());
    drop(bench);
    let (bench, region) = written(threads(Duration::from_millis(20)), scattered);
    let patience = Instant::now() + Duration::from_secs(60);
    while bench.idle().passes == 0 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(bench.idle().passes, 1);
    let reads = bench.scan_pieces(&region, false);
    assert!(reads < 6.0, "{reads}");
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn newer_writes_deletions_and_snapshots_win_over_a_round() {
    let (bench, region) = written(driven(), scattered);
    let snapshot = bench.engine.snapshot();
    bench.overwrite(&region, (0..KEYS_SCANNED).step_by(3), 1);
    for key in (1..KEYS_SCANNED).step_by(3) {
        bench.delete(&region, &name(key));
    }
    bench.round();
    bench.spill_all();
    bench.overwrite(&region, (0..KEYS_SCANNED).step_by(6), 2);
    bench.lay_together();
    assert!(bench.idle().records_moved > u64::from(KEYS_SCANNED) / 4);
    for key in 0..KEYS_SCANNED {
        let get = |at| {
            let found = bench.engine.get(&region, &name(key), at, <[u8]>::to_vec);
            found.unwrap()
        };
        let now = match (key % 3, key % 6) {
            (1, _) => None,
            (_, 0) => Some(content(key, 2, 1000)),
            (0, _) => Some(content(key, 1, 1000)),
            _ => Some(content(key, 0, 1000)),
        };
        assert_eq!(get(None), now);
        assert_eq!(get(Some(&*snapshot)), Some(content(key, 0, 1000)));
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_crash_at_any_round_loses_nothing_and_a_later_run_finishes_the_pass() {
    for rounds in [1, 3] {
        for is_spilled in [false, true] {
            let (bench, _) = written(driven(), scattered);
            (0..rounds).for_each(|_| bench.engine.background(Work::LayTogether).unwrap());
            if is_spilled {
                bench.spill_all();
            }
            let image = bench.device.image();
            std::mem::forget(bench);
            let bench = Bench::open(image, driven()).unwrap();
            let region = bench.engine.region("r").unwrap();
            assert_eq!(bench.problems(), Vec::<String>::new());
            bench.lay_together();
            let reads = bench.scan_pieces(&region, false);
            assert!(reads < 5.0, "{reads} after {rounds} rounds");
        }
    }
}

#[test]
fn a_walk_goes_through_all_regions_and_past_those_that_were_dropped() {
    let (bench, _) = written(driven(), scattered);
    for region in ["a", "b", "c"] {
        let region = bench.engine.region(region).unwrap();
        let keys = (0..KEYS_SCANNED / 4).map(|at| at * 7919 % (KEYS_SCANNED / 4));
        bench.overwrite(&region, keys, 0);
        bench.engine.checkpoint().unwrap();
    }
    bench.round();
    bench.engine.drop_region("r").unwrap();
    bench.engine.drop_region("b").unwrap();
    bench.lay_together();
    for name in ["a", "c"] {
        let region = bench.engine.region(name).unwrap();
        let reads = bench.scan_pieces_of(KEYS_SCANNED / 4, &region, false);
        assert!(reads < 5.0, "{reads} in {name}");
    }
    assert_eq!(bench.idle().passes, 1);
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn a_read_that_fails_ends_a_round_and_changes_nothing_else() {
    let (bench, region) = written(driven(), scattered);
    let mut failed = 0;
    for nth in [1, 5, 25, 60, 100, 150] {
        let fault = Fault::nth(nth, Call::Read, Effect::Io);
        bench.device.inject(fault);
        failed += u32::from(bench.engine.background(Work::LayTogether).is_err());
        bench.device.clear_faults();
        bench.overwrite(&region, nth as u32..nth as u32 + 1, 1);
        bench.spill_all();
    }
    assert!(failed > 2, "{failed}");
    bench.overwrite(&region, 0..KEYS_SCANNED / 2, 1);
    bench.spill_all();
    bench.lay_together();
    let idle = bench.idle();
    assert!(idle.passes > 0 && idle.records_moved > 1000, "{idle:?}");
    assert_eq!(bench.problems(), Vec::<String>::new());
}
