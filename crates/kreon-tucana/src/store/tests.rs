//! Tests that need the parts of a store.

use std::sync::Arc;

use kreon_device::Device;
use kreon_sim::{Call, Effect, Fault, Image, Keep, SimDevice, SimOptions};
use kreon_volume::Purpose;

use super::opening;
use super::options::{Durability, Maintenance, Options};
use super::shared::Shared;

fn options() -> Options {
    Options {
        memory_bytes: 2 << 20,
        volume_bytes_max: 32 << 20,
        maintenance: Maintenance::Callers,
        ..Options::default()
    }
}

fn open(image: Image) -> (Arc<SimDevice>, Shared) {
    let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
    let opened = opening::open(Arc::clone(&device) as Arc<dyn Device>, &options()).unwrap();
    (device, Shared::begin(opened, &options()).unwrap())
}

/// A store that holds one key, with nothing of it in memory.
fn reopened() -> (Arc<SimDevice>, Shared) {
    let (device, shared) = open(Image::new(0));
    let put = shared.write(b"key", Some(b"old"), Durability::Buffered);
    assert!(!put.unwrap());
    shared.commit().unwrap();
    open(device.image())
}

fn value_after_a_crash(device: &SimDevice) -> Option<Vec<u8>> {
    let image = device.history().crash().image(&mut Keep::Nothing);
    open(image).1.tree.get(b"key").unwrap()
}

/// The leaf cannot be read, so the write is refused when its record is in the log already.
#[test]
fn a_refused_write_is_not_replayed() {
    let (device, shared) = reopened();
    device.inject(Fault::nth(1, Call::Read, Effect::Io).for_ever());
    let refused = shared.write(b"key", Some(b"new"), Durability::Buffered);
    assert!(refused.is_err());
    device.clear_faults();
    shared.sync().unwrap();
    assert_eq!(value_after_a_crash(&device).as_deref(), Some(&b"old"[..]));
    assert_eq!(
        shared.tree.get(b"key").unwrap().as_deref(),
        Some(&b"old"[..])
    );
}

/// Not even if no commit can leave it behind.
#[test]
fn a_refused_write_is_not_replayed_if_nothing_can_be_committed() {
    let (device, shared) = reopened();
    shared.pages.stock().unwrap();
    let take = || {
        let mut allocator = shared.home.allocator.lock();
        allocator.allocate_pages(512, Purpose::Maintenance)
    };
    while take().is_ok() {}
    device.inject(Fault::nth(1, Call::Read, Effect::Io).for_ever());
    let refused = shared.write(b"key", Some(b"new"), Durability::Buffered);
    assert!(refused.is_err());
    device.clear_faults();
    // It may not become durable by others' hands.
    let _ = shared.sync();
    assert_eq!(value_after_a_crash(&device).as_deref(), Some(&b"old"[..]));
}
