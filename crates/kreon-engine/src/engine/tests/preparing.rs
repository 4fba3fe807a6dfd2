//! Segments written ahead for writers that wait for durability.

use kreon_base::{SEGMENT_BYTES, SegmentId};
use kreon_sim::{Call, Effect, Fault};

use super::*;
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::options::Work;
use kreon_log::SegmentDemand;

const STOCK: SegmentDemand = SegmentDemand {
    kept: 8,
    written: 8,
};

fn opened() -> (Bench, std::sync::Arc<RegionState>) {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    (bench, region)
}

impl Bench {
    fn sync_put(&self, region: &RegionState, key: u32) -> Result<()> {
        let operation = Operation {
            region,
            key: &name(key),
            value: Some(&[7; 3000]),
            is_range: false,
            terms: Terms::default(),
        };
        self.engine.write(&[operation], Durability::Sync)
    }

    fn free_written(&self) -> u32 {
        self.engine
            .subsystems
            .storage
            .allocator
            .lock()
            .free_written()
    }

    fn log_ids(&self) -> Vec<SegmentId> {
        let allocator = self.engine.subsystems.storage.allocator.lock();
        let segments = allocator.log_segments(MAIN_LOG).into_iter();
        segments.map(|(id, _)| id).collect()
    }
}

#[test]
fn a_few_durable_writes_make_no_stock_and_many_do() {
    let (bench, region) = opened();
    let log = &bench.engine.subsystems.storage.log;
    let wanted = || log.segment_demand(std::time::Instant::now());
    for key in 0..500 {
        bench.sync_put(&region, key).unwrap();
    }
    assert_eq!(wanted(), SegmentDemand::default());
    for key in 0..1200 {
        bench.sync_put(&region, key).unwrap();
    }
    assert!(wanted().written >= 8, "{:?}", wanted());
    assert_eq!(bench.free_written(), 0, "without threads nobody does so");
}

#[test]
fn a_stock_is_written_used_by_the_log_and_given_back() {
    let (bench, region) = opened();
    let subsystems = &bench.engine.subsystems;
    let before = bench.device.space_bytes();
    subsystems.maintenance.log_stock.keep_stock(STOCK).unwrap();
    assert_eq!(bench.free_written(), 8);
    assert!(bench.device.space_bytes() <= before + 9 * SEGMENT_BYTES);
    for key in 0..3000 {
        bench.sync_put(&region, key % 1000).unwrap();
    }
    assert!(bench.free_written() < 8, "the log took some");
    subsystems.maintenance.log_stock.keep_stock(STOCK).unwrap();
    assert!(bench.free_written() >= 4);
    subsystems
        .maintenance
        .log_stock
        .keep_stock(SegmentDemand::default())
        .unwrap();
    let space = subsystems.storage.allocator.lock().space();
    assert!(space.free_backed <= space.reserve + 4, "{space:?}");
    for key in 0..1000 {
        assert!(bench.get(&region, &name(key)).unwrap().is_some());
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn what_is_in_written_segments_is_there_after_a_kill() {
    let (bench, region) = opened();
    for key in 0..2000 {
        if key % 100 == 0 {
            bench.engine.background(Work::Prepare).unwrap();
        }
        bench.sync_put(&region, key).unwrap();
    }
    let used = bench.log_ids();
    let image = bench.device.image();
    // No checkpoint, no close.
    let again = Bench::open(image, options()).unwrap();
    let region = again.engine.region("r").unwrap();
    for key in 0..2000 {
        assert!(again.get(&region, &name(key)).unwrap().is_some(), "{key}");
    }
    assert!(used.len() > 3);
    assert_eq!(again.problems(), Vec::<String>::new());
}

#[test]
fn a_full_volume_takes_as_many_writes_with_a_stock_as_without() {
    let count = |has_stock: bool| {
        let small = Options {
            volume_bytes_max: 40 * SEGMENT_BYTES,
            ..options()
        };
        let bench = Bench::open(Image::default(), small).unwrap();
        let region = bench.engine.region("r").unwrap();
        let mut key = 0;
        while bench.sync_put(&region, key).is_ok() {
            key += 1;
            if has_stock && key % 500 == 0 {
                bench
                    .engine
                    .subsystems
                    .maintenance
                    .log_stock
                    .keep_stock(STOCK)
                    .unwrap();
            }
        }
        key
    };
    let (with, without) = (count(true), count(false));
    assert!(with * 20 >= without * 19, "{with} of {without}");
}

#[test]
fn a_write_ahead_that_fails_stops_the_store_as_any_other() {
    let (bench, region) = opened();
    bench.sync_put(&region, 1).unwrap();
    bench.device.inject(Fault::nth(1, Call::Write, Effect::Io));
    bench.engine.background(Work::Prepare).unwrap_err();
    let refused = bench.sync_put(&region, 2).unwrap_err();
    assert_eq!(refused.kind(), kreon_base::ErrorKind::Poisoned);
    assert_eq!(bench.free_written(), 0);
    assert!(
        !bench
            .engine
            .subsystems
            .storage
            .allocator
            .lock()
            .is_writing()
    );
}
