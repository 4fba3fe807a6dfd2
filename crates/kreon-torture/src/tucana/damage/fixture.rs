//! Volumes that are damaged.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::tucana::{Error, Recovery, Result};
use kreon_judge::value;
use kreon_sim::{Call, Effect, Fault, Image, SimDevice, SimOptions};

use super::super::setting::{MEMORY_BYTES_MIN, Style, keys, options};
use super::super::store::Tucana;
use crate::engines::{Durability, Engine};

/// Their names.
pub(super) const NAMES: [&str; 4] = ["short keys", "high tree", "lost run", "pages again"];

/// Commits of a fixture whose pages are used again.
const COMMITS: u64 = 160;

/// A volume and what it holds.
pub struct Fixture {
    pub image: Image,
    /// The same some commits ago.
    pub older: Image,
    pub pairs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A device that holds an image, and records nothing.
pub(super) fn device(image: Image) -> Arc<SimDevice> {
    let options = SimOptions {
        record: false,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

/// Opens the store on a device.
pub(super) fn open(device: &Arc<SimDevice>) -> Result<Tucana> {
    let options = options(MEMORY_BYTES_MIN, 1 << 30, Recovery::LastCommit);
    Tucana::on(device, &options)
}

/// Makes the fixture called `name`.
pub(super) fn make(name: &str) -> Result<Fixture> {
    let (style, count) = match name {
        "high tree" => (Style::LongPrefix, 700),
        _ => (Style::Short, 500),
    };
    let keys = keys(style, count);
    let device = device(Image::default());
    let mut pairs = BTreeMap::new();
    let store = open(&device)?;
    put(&store, keys.iter(), 1, &mut pairs)?;
    store.store.commit()?;
    let mut older = device.image();
    if name == "lost run" {
        lose(&device, store, &keys)?;
        older = device.image();
    } else {
        put(&store, keys.iter().step_by(3), 2, &mut pairs)?;
        for key in keys.iter().skip(100).take(90) {
            store.change(key, None, Durability::Buffered)?;
            pairs.remove(key);
        }
        store.close()?;
    }
    let store = open(&device)?;
    put(&store, keys.iter().step_by(5), 3, &mut pairs)?;
    if name == "pages again" {
        // So many commits that nodes stand where others were.
        for round in 0..COMMITS {
            put(&store, keys.iter().step_by(60), 10 + round, &mut pairs)?;
            store.store.commit()?;
            if round == COMMITS / 4 * 3 {
                older = device.image();
            }
        }
    }
    store.close()?;
    Ok(Fixture {
        image: device.image(),
        older,
        pairs,
    })
}

fn put<'a>(
    store: &Tucana,
    keys: impl Iterator<Item = &'a Vec<u8>>,
    stamp: u64,
    pairs: &mut BTreeMap<Vec<u8>, Vec<u8>>,
) -> Result<()> {
    for (number, key) in (0..).zip(keys) {
        let value = value::encode(stamp << 32 | number, 20 + (number % 40) as usize);
        store.change(key, Some(&value), Durability::Buffered)?;
        pairs.insert(key.clone(), value);
    }
    Ok(())
}

/// A run of the store whose records and nodes are on the device, and whose commit failed: those of the next run stand at the
/// same places.
fn lose(device: &Arc<SimDevice>, store: Tucana, keys: &[Vec<u8>]) -> Result<()> {
    store.close()?;
    let store = open(device)?;
    put(&store, keys.iter().step_by(5), 9, &mut BTreeMap::new())?;
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    let lost = store.store.commit();
    device.clear_faults();
    match lost {
        Err(_) => Ok(()),
        Ok(()) => Err(Error::invalid("a commit whose flush failed has ended")),
    }
}
