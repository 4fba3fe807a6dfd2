//! What scans read ahead: how much memory that takes, and how many reads.

use super::reorganising::{KEYS_SCANNED, content, driven, scattered, written};
use super::*;
use crate::options::Work;
use crate::read::Scan;
use kreon_sim::{Call, Effect, Fault};
use std::ops::Bound;

impl Bench {
    fn scan_from(&self, region: &Arc<RegionState>, key: u32) -> Scan {
        let bounds = (Bound::Included(name(key)), Bound::Unbounded);
        self.engine.scan(region, self.engine.snapshot(), bounds)
    }
}

/// A store that has no frames to spare.
fn full() -> (Bench, Arc<RegionState>) {
    let options = Options {
        memory_bytes: 10 << 20,
        ..driven()
    };
    let (bench, region) = written(options, scattered);
    for key in 0..KEYS_SCANNED {
        assert!(bench.get(&region, &name(key)).unwrap().is_some());
    }
    (bench, region)
}

/// Shows the next pair, which must be that of `key`.
fn show(scan: &mut Scan, key: u32) {
    let shown = scan.next_with(|key, value| (key.to_vec(), value.to_vec()));
    let expected = Some((name(key), content(key, 0, 1000)));
    assert_eq!(shown.unwrap(), expected);
}

#[test]
fn a_thousand_open_scans_share_what_is_allowed() {
    const SCANS: u32 = 1000;
    /// Of keys and places of one step, beside the budget.
    const OWN_BYTES: usize = 512;
    /// A thread keeps so much for its next read, and may use it for one.
    const SPARE_BYTES: usize = 256 << 10;
    let (bench, region) = full();
    let memory = bench.engine.subsystems.reader.scan_memory();
    let allowed = bench.engine.subsystems.storage.split.scan_bytes;
    let mut scans = Vec::new();
    let mut most_of_one = 0;
    for number in 0..SCANS {
        let mut scan = bench.scan_from(&region, number);
        show(&mut scan, number);
        scans.push(scan);
        if number == 0 {
            most_of_one = memory.taken_bytes();
        }
    }
    // The first one reads far ahead, and all together no more than a few such.
    assert!(most_of_one > 16_000, "{most_of_one}");
    let bound = allowed + SPARE_BYTES + SCANS as usize * OWN_BYTES;
    for round in 1..=30 {
        for (scan, number) in scans.iter_mut().zip(0..) {
            show(scan, number + round);
        }
        assert!(memory.taken_bytes() <= bound, "{}", memory.taken_bytes());
    }
    drop(scans);
    // What the first ones handed over waits for this.
    bench.engine.background(Work::Reorganise).unwrap();
    assert_eq!(memory.taken_bytes(), 0);
}

#[test]
fn a_scan_that_has_ended_holds_nothing() {
    let (bench, region) = written(driven(), scattered);
    let mut scan = bench.scan_from(&region, 0);
    scan.limit(20);
    for key in 0..20 {
        show(&mut scan, key);
    }
    assert!(scan.next_with(|_, _| ()).unwrap().is_none());
    // What it handed over waits for this.
    bench.engine.background(Work::Reorganise).unwrap();
    assert_eq!(
        bench.engine.subsystems.reader.scan_memory().taken_bytes(),
        0
    );
}

#[test]
fn a_scan_whose_read_fails_ends_and_holds_nothing() {
    let image = Bench::filled().closed();
    let mut failed = 0;
    for n in [1, 2, 3, 4, 6, 9] {
        let bench = Bench::open(image.clone(), options()).unwrap();
        let region = bench.engine.existing_region("r").unwrap();
        let mut scan = bench.scan_from(&region, 0);
        let fault = Fault::nth(n, Call::Read, Effect::Io).for_ever();
        bench.device.inject(fault);
        while let Ok(Some(())) = scan.next_with(|_, _| ()) {}
        let taken = bench.engine.subsystems.reader.scan_memory().taken_bytes();
        assert_eq!((scan.memory_bytes(), taken), (0, 0), "read {n}");
        failed += u64::from(bench.device.faults_met() > 0);
        assert!(scan.next_with(|_, _| ()).unwrap().is_none(), "read {n}");
        assert!(scan.next_back_with(|_, _| ()).unwrap().is_none());
    }
    assert!(failed > 2, "{failed}");
}

#[test]
fn what_a_scan_has_just_read_is_not_read_again_to_be_moved() {
    const PAIRS: u32 = 20;
    let (bench, region) = full();
    let reads = || bench.engine.stats().device_reads;
    let scan = |from: u32| {
        let before = reads();
        let mut scan = bench.scan_from(&region, from);
        scan.limit(PAIRS as usize);
        (from..from + PAIRS).for_each(|key| show(&mut scan, key));
        reads() - before
    };
    let (mut first, mut moving, mut later) = (0, 0, 0);
    // Some of the last ones are in memory.
    let starts = || (0..KEYS_SCANNED / 2).step_by(400);
    for from in starts() {
        first += scan(from);
        let before = reads();
        bench.engine.background(Work::Reorganise).unwrap();
        moving += reads() - before;
    }
    for from in starts() {
        later += scan(from);
    }
    let ranges = starts().count() as u64;
    let moved = bench.engine.stats().reorganisation;
    assert!(moved.records_moved >= ranges * 18, "{moved:?}");
    assert!(first > ranges * 10, "{first}");
    assert!(moving < ranges, "{moving}");
    // A leaf and the values, which may lie in two steps.
    assert!(later <= ranges * 3, "{later}");
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn what_was_handed_over_gives_way_to_what_was_written_since() {
    const PAIRS: u32 = 20;
    let (bench, region) = full();
    let mut scan = bench.scan_from(&region, 0);
    scan.limit(PAIRS as usize);
    (0..PAIRS).for_each(|key| show(&mut scan, key));
    assert_eq!(bench.engine.stats().reorganisation.ranges_found, 1);
    let version = |key: u32| u64::from(key.is_multiple_of(3));
    for key in (0..PAIRS).filter(|key| version(*key) == 1) {
        let value = content(key, 1, 700);
        bench.put(&region, &name(key), &value).unwrap();
    }
    // With one of them in the trees already, and one not.
    bench.engine.subsystems.versions.freeze(0);
    bench.engine.background(Work::Spill).unwrap();
    let twice = content(3, 2, 900);
    bench.put(&region, &name(3), &twice).unwrap();
    bench.engine.background(Work::Reorganise).unwrap();
    let moved = bench.engine.stats().reorganisation.records_moved;
    assert_eq!(moved, u64::from(PAIRS - PAIRS.div_ceil(3)));
    for _ in 0..2 {
        for key in 0..PAIRS {
            let expected = match (key, version(key)) {
                (3, _) => twice.clone(),
                (_, 0) => content(key, 0, 1000),
                (_, version) => content(key, version, 700),
            };
            let found = bench.get(&region, &name(key)).unwrap();
            assert_eq!(found, Some(expected), "{key}");
        }
        bench.engine.subsystems.versions.freeze(0);
        bench.engine.background(Work::Spill).unwrap();
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn without_space_nothing_is_handed_over() {
    let (bench, region) = full();
    let handing = |from: u32| {
        let mut scan = bench.scan_from(&region, from);
        scan.limit(20);
        (from..from + 20).for_each(|key| show(&mut scan, key));
        drop(scan);
        bench.engine.subsystems.reader.scan_memory().taken_bytes()
    };
    let handed = handing(0);
    assert!(handed > 20_000, "{handed}");
    bench.engine.subsystems.scattered.queue.open(false);
    assert_eq!(
        bench.engine.subsystems.reader.scan_memory().taken_bytes(),
        0
    );
    assert_eq!(handing(1000), 0);
    // Somebody was refused: so there is a look whether there is space by now.
    bench.engine.background(Work::Reorganise).unwrap();
    assert!(handing(2000) > 20_000);
}

#[test]
fn who_goes_over_everything_once_has_little_moved() {
    let (bench, region) = written(driven(), scattered);
    let mut scan = bench.scan_from(&region, 0);
    for key in 0..KEYS_SCANNED {
        show(&mut scan, key);
        if key % 100 == 0 {
            bench.engine.background(Work::Reorganise).unwrap();
        }
    }
    let moved = bench.engine.stats().reorganisation.records_moved;
    assert!(moved <= u64::from(KEYS_SCANNED) / 6, "{moved}");
}
