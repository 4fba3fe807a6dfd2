//! Superblock slots that a device puts back.

use std::sync::Arc;

use kreon_base::{ErrorKind, PAGE_BYTES};
use kreon_device::Device;
use kreon_engine::{Durability, Engine, Operation, Terms};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_sim::{Image, SimDevice, SimOptions};
use kreon_torture::settings::options;

fn open(device: &Arc<SimDevice>) -> kreon_base::Result<Engine> {
    Engine::open(Arc::clone(device) as Arc<dyn Device>, options())
}

fn put(engine: &Engine, region: &str, key: &[u8]) {
    let region = engine.region(region).unwrap();
    let put = Operation {
        region: &region,
        key,
        value: Some(b"value"),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[put], Durability::Sync).unwrap();
}

/// What `now` holds, with the slots of `before` in place of the first `slots`.
fn with_slots_of(before: &Image, now: &Image, slots: usize) -> Arc<SimDevice> {
    let mut image = now.clone();
    for page in SUPERBLOCK_PAGES.iter().take(slots) {
        let start = page.offset_bytes();
        image.put_back(before, start..start + PAGE_BYTES as u64);
    }
    Arc::new(SimDevice::from_image(image, SimOptions::default()))
}

#[test]
fn one_newest_slot_is_enough_and_without_any_the_open_is_refused() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let engine = open(&device).unwrap();
    put(&engine, "region", b"first");
    engine.close().unwrap();
    let before = device.image();
    let engine = open(&device).unwrap();
    put(&engine, "region", b"second");
    engine.close().unwrap();
    let now = device.image();

    for slots in 0..4 {
        let engine = open(&with_slots_of(&before, &now, slots)).unwrap();
        let region = engine.existing_region("region").unwrap();
        for key in [b"first".as_slice(), b"second"] {
            assert!(engine.contains(&region, key, None).unwrap(), "{slots} old");
        }
        assert!(engine.verify().unwrap().is_clean());
    }
    let refused = open(&with_slots_of(&before, &now, 4)).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Corruption, "{refused}");
    assert!(
        refused.to_string().contains("older than the log"),
        "{refused}"
    );
}

#[test]
fn a_region_that_the_superblock_does_not_know_comes_from_the_log() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let engine = open(&device).unwrap();
    put(&engine, "first", b"key");
    let before = device.image();
    put(&engine, "second", b"key");
    engine.checkpoint().unwrap();
    let engine = open(&with_slots_of(&before, &device.image(), 4)).unwrap();
    for name in ["first", "second"] {
        let region = engine.existing_region(name).unwrap();
        assert!(engine.contains(&region, b"key", None).unwrap(), "{name}");
    }
    assert!(engine.verify().unwrap().is_clean());
}
