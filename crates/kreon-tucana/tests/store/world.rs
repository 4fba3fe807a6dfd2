//! A store, and a model of what it holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_device::Device;
use kreon_sim::{Image, SimDevice, SimOptions};
use tucana::{Direction, Maintenance, Options, Recovery, Result};

use crate::one_region::OneRegion;

pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A small pseudo-random generator.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % bound
    }
}

pub fn device() -> Arc<SimDevice> {
    Arc::new(SimDevice::new(SimOptions::default()))
}

pub fn device_of(image: Image) -> Arc<SimDevice> {
    Arc::new(SimDevice::from_image(image, SimOptions::default()))
}

/// Everything follows from the calls.
pub fn options() -> Options {
    Options {
        memory_bytes: 2 << 20,
        volume_bytes_max: 1 << 30,
        maintenance: Maintenance::Callers,
        ..Options::default()
    }
}

pub fn open_with(device: &Arc<SimDevice>, options: &Options) -> Result<OneRegion> {
    OneRegion::open(Arc::clone(device) as Arc<dyn Device>, options)
}

/// A store whose log counts for nothing.
pub fn open(device: &Arc<SimDevice>) -> Result<OneRegion> {
    let options = Options {
        recovery: Recovery::LastCommit,
        ..options()
    };
    open_with(device, &options)
}

/// All pairs of a store.
pub fn pairs(store: &OneRegion) -> Result<Model> {
    let forward = store.all(Direction::Forward)?;
    let reverse = store.all(Direction::Reverse)?;
    assert!(
        reverse.iter().rev().eq(&forward),
        "one order is that of the other"
    );
    Ok(forward.into_iter().collect())
}

/// Changes some keys, the same way in a store and in its model.
pub fn change(
    store: &OneRegion,
    model: &mut Model,
    random: &mut Random,
    writes: u64,
) -> Result<()> {
    for _ in 0..writes {
        let key = format!("user/{:05}", random.below(2000)).into_bytes();
        if random.below(3) == 0 {
            let known = store.delete(&key)?;
            assert_eq!(known, model.remove(&key).is_some());
            continue;
        }
        // Seldom so long that the log fills a segment.
        let len = match random.below(60) {
            0 => 60_000,
            _ => random.below(200),
        };
        let value = vec![random.below(256) as u8; len as usize];
        let known = store.put(&key, &value)?;
        assert_eq!(known, model.insert(key, value).is_some());
    }
    Ok(())
}
