//! Whole stores over a simulated device.

mod collecting;
mod damage;
mod damage_in_memory;
mod events;
mod expiring;
mod feeding;
mod filtering;
mod formats;
mod futures;
mod images;
mod interplay;
mod levels;
mod loads;
mod preparing;
mod primary;
mod refusals;
mod regions;
mod reorganising;
mod reused_segments;
mod scanning;
mod segment_borders;
mod spilling;
mod verifying;

use std::sync::Arc;

use kreon_base::{Error, LogOffset, Lsn, PageNo, Result};
use kreon_device::Device;
use kreon_sim::{Image, SimDevice, SimOptions};

use super::*;
use crate::maintenance::{Pairs, ReorganisationStats};
use crate::operation::{Operation, Terms};
use crate::options::{Background, Durability, Options, Work};
use crate::regions::RegionState;
use crate::visibility::OpenSnapshot;
use crate::write::{DeletedRange, Durable};

/// Keys of the region that [`filled`] makes.
const KEYS: u32 = 3000;

fn options() -> Options {
    Options {
        memory_bytes: 16 << 20,
        l0_bytes: Some(256 << 10),
        background: Background::Inline,
        store_id: Some(7),
        ..Options::default()
    }
}

/// A store over a device in memory.
struct Bench {
    device: Arc<SimDevice>,
    engine: Engine,
}

impl Bench {
    fn open(image: Image, options: Options) -> Result<Self> {
        let settings = SimOptions {
            record: false,
            ..SimOptions::default()
        };
        let device = Arc::new(SimDevice::from_image(image, settings));
        let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options)?;
        Ok(Self { device, engine })
    }

    /// A store whose region "r" has keys in L1, and none in L0.
    fn filled() -> Self {
        let bench = Self::open(Image::default(), options()).unwrap();
        let region = bench.engine.region("r").unwrap();
        for key in 0..KEYS {
            bench.put(&region, &name(key), &value(key)).unwrap();
        }
        bench.engine.checkpoint().unwrap();
        bench
    }

    fn put(&self, region: &RegionState, key: &[u8], value: &[u8]) -> Result<()> {
        let operation = Operation {
            region,
            key,
            value: Some(value),
            is_range: false,
            terms: Terms::default(),
        };
        self.engine.write(&[operation], Durability::Buffered)
    }

    fn get(&self, region: &RegionState, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.get(region, key, None, <[u8]>::to_vec)
    }

    /// Where the record of a key stands whose value is in the log.
    fn place_of(&self, region: &RegionState, key: &[u8]) -> LogOffset {
        let reader = &self.engine.subsystems.reader;
        let view = reader.view_of(region).unwrap();
        let located = reader.locate(&view, region, key, reader.now()).unwrap();
        let (offset, _) = located.unwrap().record(key).unwrap();
        offset
    }

    /// A page of the trees.
    fn tree_page(&self) -> PageNo {
        let storage = &self.engine.subsystems.storage;
        let catalogue = storage.ledger.lock().catalogue_pages.clone();
        let allocator = storage.allocator.lock();
        let mut pages = allocator.live_pages();
        pages.find(|page| !catalogue.contains(page)).unwrap()
    }

    /// The problems that a verification tells.
    fn problems(&self) -> Vec<String> {
        self.engine.verify().unwrap().problems
    }

    /// Closes the store; returns what the device holds then.
    fn closed(self) -> Image {
        self.engine.close().unwrap();
        self.device.image()
    }
}

fn name(key: u32) -> Vec<u8> {
    format!("key{key:06}").into_bytes()
}

/// Every third is placed in the leaf.
fn value(key: u32) -> Vec<u8> {
    let repeats = if key.is_multiple_of(3) { 5 } else { 50 };
    key.to_le_bytes().repeat(repeats)
}

/// Why the store on `image` does not open.
fn refused(image: Image, options: Options) -> Error {
    match Bench::open(image, options) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

/// A generator of numbers that all look different.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}
