//! A disk that turns out to be full where the store thought it had space.

use std::sync::Arc;

use kreon_base::{ErrorKind, PAGE_BYTES};
use kreon_device::Device;
use kreon_engine::{Durability, Engine, Operation, Terms};
use kreon_sim::{Call, Effect, Fault, SimDevice, SimOptions};
use kreon_torture::settings::options;

/// Pages 32 and 33 hold the two copies of the first bitmap block.
const BITMAP_BYTES: std::ops::Range<u64> = 32 * PAGE_BYTES as u64..34 * PAGE_BYTES as u64;

#[test]
fn a_checkpoint_that_is_cut_short_by_a_full_disk_stops_the_store() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let open = || Engine::open(Arc::clone(&device) as Arc<dyn Device>, options()).unwrap();
    let engine = open();
    let region = engine.region("kept").unwrap();
    let put = Operation {
        region: &region,
        key: b"key",
        value: Some(b"value"),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[put], Durability::Sync).unwrap();

    device.inject(Fault::nth(1, Call::Write, Effect::OutOfSpace).within(BITMAP_BYTES));
    let error = engine.checkpoint().unwrap_err();
    // Not `OutOfSpace`: that would say that nothing was changed, and the next checkpoint would write
    // over the copy of the bitmap that the durable state needs.
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let error = engine.write(&[put], Durability::Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    assert!(engine.close().is_err());

    let engine = open();
    assert_eq!(engine.region_names(), ["kept"]);
    let report = engine.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_device_that_refuses_to_take_space_back_fails_nothing() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options()).unwrap();
    let region = engine.region("kept").unwrap();
    let value = vec![7; 2 << 20];
    device.inject(Fault::nth(1, Call::Discard, Effect::Io).for_ever());
    for number in 0..40_u8 {
        let put = Operation {
            region: &region,
            key: &[number],
            value: Some(&value),
            is_range: false,
            terms: Terms::default(),
        };
        engine.write(&[put], Durability::Buffered).unwrap();
    }
    for number in 0..40_u8 {
        let gone = Operation {
            region: &region,
            key: &[number],
            value: None,
            is_range: false,
            terms: Terms::default(),
        };
        engine.write(&[gone], Durability::Buffered).unwrap();
    }
    engine.checkpoint().unwrap();
    engine.checkpoint().unwrap();
    assert!(device.calls(Call::Discard) > 0);
    let put = Operation {
        region: &region,
        key: b"key",
        value: Some(&value),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[put], Durability::Sync).unwrap();
    assert!(engine.verify().unwrap().is_clean());
}

/// The file system has no block left since the store was closed. What is there can be deleted all the same, in small
/// stores and in those that have filled the front of their first segment.
#[test]
fn a_store_that_opens_on_a_full_device_takes_deletions() {
    for keys in [1, 100, 800] {
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        let open = || Engine::open(Arc::clone(&device) as Arc<dyn Device>, options()).unwrap();
        let names: Vec<_> = (0..keys).map(|n| format!("key{n:04}")).collect();
        let write = |engine: &Engine, key: &str, value: Option<&[u8]>| {
            let region = engine.region("kept").unwrap();
            let operation = Operation {
                region: &region,
                key: key.as_bytes(),
                value,
                is_range: false,
                terms: Terms::default(),
            };
            engine.write(&[operation], Durability::Sync).map(|_| ())
        };
        let engine = open();
        for name in &names {
            write(&engine, name, Some(&[7; 600])).unwrap();
        }
        engine.close().unwrap();
        drop(engine);

        device.inject(Fault::nth(1, Call::Allocate, Effect::OutOfSpace).for_ever());
        let engine = open();
        for name in &names {
            write(&engine, name, None)
                .unwrap_or_else(|error| panic!("{name} of {keys} keys: {error}"));
        }
        let region = engine.region("kept").unwrap();
        assert_eq!(
            engine
                .get(&region, names[0].as_bytes(), None, |_| ())
                .unwrap(),
            None
        );
        assert!(engine.verify().unwrap().is_clean());
    }
}
