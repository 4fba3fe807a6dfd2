//! When collection asks for a spill, and when it goes on without one.

use super::*;
use crate::tuning::VICTIMS_LAZY;

/// Most looks of a collection at what there is to do.
const LOOKS_MAX: usize = 100;

fn short_of_room() -> Options {
    Options {
        unspilled_bytes_min: 1 << 20,
        space_amplification: 1.1,
        write_amplification_max: 20.0,
        l0_bytes: Some(4 << 20),
        ..driven()
    }
}

impl Bench {
    /// Puts `version` of all `keys` and spills it.
    fn spill_version(&self, region: &RegionState, model: &mut Model, keys: &[u32], version: u32) {
        for key in keys {
            let value = content(*key, version, 1000);
            self.put(region, &name(*key), &value).unwrap();
            model.insert(name(*key), value);
            if self.is_asked_to_spill() {
                self.engine.background(Work::Spill).unwrap();
            }
        }
        self.spill();
    }

    /// Collects until it asks for a spill or finds nothing to do; how many segments it tried.
    fn collect_until_idle(&self) -> u64 {
        let victims = || self.engine.stats().collection.victims;
        let (before, gc) = (victims(), &self.engine.subsystems.maintenance.gc);
        let is_idle = (0..LOOKS_MAX).any(|_| !gc.collect_lazily().unwrap());
        assert!(is_idle, "it never ends");
        victims() - before
    }

    /// Whether a spill was asked for.
    fn is_asked_to_spill(&self) -> bool {
        let view = self.engine.subsystems.storage.views.load();
        view.frozen.is_some()
    }

    /// Log segments that the spill frees which was asked for.
    fn freed_by_spill(&self) -> usize {
        let count = || self.log_segments()[0];
        assert!(self.is_asked_to_spill());
        let before = count();
        self.engine.background(Work::Spill).unwrap();
        before - count()
    }
}

/// Those of 24,000 keys whose number divided by `divisor` leaves one of `rests`.
fn keys(divisor: u32, rests: std::ops::Range<u32>) -> Vec<u32> {
    let all = 0..24_000;
    all.filter(|key| rests.contains(&(key % divisor))).collect()
}

#[test]
fn a_spill_frees_what_was_emptied_before_more_is_moved() {
    let bench = Bench::open(Image::default(), short_of_room()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut model = Model::new();
    bench.spill_version(&region, &mut model, &keys(4, 0..4), 0);
    bench.spill_version(&region, &mut model, &keys(4, 1..4), 1);
    // Of a dozen that are as empty.
    assert_eq!(bench.collect_until_idle(), VICTIMS_LAZY as u64);
    assert!(bench.moved() > 0);
    assert_eq!(bench.freed_by_spill(), VICTIMS_LAZY);
    bench.checked(&region, &model);
}

#[test]
fn a_quiet_store_asks_for_the_spill_that_frees_what_l0_overwrote() {
    let bench = Bench::open(Image::default(), short_of_room()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut model = Model::new();
    bench.spill_version(&region, &mut model, &keys(32, 0..32), 0);
    bench.spill_version(&region, &mut model, &keys(32, 1..32), 1);
    for key in keys(32, 0..1) {
        let value = content(key, 2, 1000);
        bench.put(&region, &name(key), &value).unwrap();
        model.insert(name(key), value);
    }
    // Nothing in the emptiest segments is live, but the trees do not know it yet.
    assert_eq!(bench.collect_until_idle(), VICTIMS_LAZY as u64);
    assert_eq!(bench.moved(), 0);
    assert!(bench.freed_by_spill() > VICTIMS_LAZY);
    bench.checked(&region, &model);
}

#[test]
fn collection_goes_on_where_nothing_can_be_spilled() {
    let bench = Bench::open(Image::default(), short_of_room()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut model = Model::new();
    bench.spill_version(&region, &mut model, &keys(8, 0..8), 0);
    bench.spill_version(&region, &mut model, &keys(8, 1..7), 1);
    let snapshot = bench.engine.snapshot();
    bench.spill_version(&region, &mut model, &keys(8, 7..8), 2);
    assert_eq!(bench.collect_until_idle(), VICTIMS_LAZY as u64);
    // What the snapshot sees stays where it is, and keeps the segments: they seem to wait for one more spill.
    assert_eq!(bench.freed_by_spill(), 0);
    let moved = bench.moved();
    assert_eq!(bench.collect_until_idle(), VICTIMS_LAZY as u64);
    assert!(bench.moved() > moved && bench.is_asked_to_spill());
    bench.checked(&region, &model);
    drop(snapshot);
}
