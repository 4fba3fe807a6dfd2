//! Stores for tests, and what a power cut leaves of them.

use std::sync::Arc;

use kreon_device::Device;
use kreon_sim::{Image, Keep, SimDevice, SimOptions};
use kvell::{Options, Region, Store};

/// Several partitions, and more than one worker, whatever the machine has.
pub fn options() -> Options {
    Options {
        memory_bytes: 8 << 20,
        partitions: 5,
        workers: Some(2),
        ..Options::default()
    }
}

pub fn simulated(len_bytes_max: u64) -> Arc<SimDevice> {
    from_image(Image::default(), len_bytes_max)
}

pub fn from_image(image: Image, len_bytes_max: u64) -> Arc<SimDevice> {
    let options = SimOptions {
        len_bytes_max,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

pub fn open(device: &Arc<SimDevice>, options: &Options) -> Store {
    let device: Arc<dyn Device> = Arc::clone(device) as _;
    options.open_on(device).expect("a store")
}

/// A store on a device without an end, and a region of it.
pub fn new_store() -> (Arc<SimDevice>, Store, Region) {
    let device = simulated(1 << 40);
    let store = open(&device, &options());
    let region = store.region("r").expect("a region");
    (device, store, region)
}

/// The store as it comes up if the power were cut now, and nothing survived that was not flushed.
pub fn after_power_cut(device: &SimDevice) -> (Store, Region) {
    let history = device.history();
    let mut crash = history.crash();
    while crash.advance() {}
    let device = from_image(crash.image(&mut Keep::Nothing), 1 << 40);
    let store = open(&device, &options());
    let region = store.region("r").expect("the region");
    (store, region)
}

/// A value of some length that tells what wrote it.
pub fn value(number: u64, len_bytes: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(len_bytes.max(8), number as u8);
    bytes
}
