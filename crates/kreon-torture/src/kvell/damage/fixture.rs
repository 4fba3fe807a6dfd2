//! Volumes with all structures, and what each key must have.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::kvell::Options;
use kreon_base::{ErrorKind, Result};
use kreon_sim::{Image, SimDevice, SimOptions};

use crate::engines::{Durability, Engine};
use crate::kvell::store::Kvell;

/// All fixtures by name.
pub(super) const NAMES: [&str; 3] = ["closed", "dirty", "pages"];

/// A volume, and what is known of it.
pub struct Fixture {
    pub options: Options,
    pub image: Image,
    /// The same volume when most items had an earlier value.
    pub older: Image,
    pub keys: BTreeMap<Vec<u8>, Known>,
}

/// What is known of a key.
#[derive(Default)]
pub struct Known {
    pub value: Option<Vec<u8>>,
    /// What it had before, besides nothing.
    pub earlier: Vec<Vec<u8>>,
    /// Its last change is newer than the durable mark: damage to it may be taken for a torn write.
    pub is_above_mark: bool,
}

/// Makes the fixture called `name`.
pub(super) fn make(name: &str) -> Result<Fixture> {
    let name = NAMES.into_iter().find(|it| *it == name).unwrap_or(NAMES[0]);
    let options = Options {
        // The cache holds little: damage under an open store is to be seen.
        memory_bytes: 110 << 10,
        partitions: 1,
        workers: Some(1),
        atomic_bytes: (name == "pages").then_some(4096),
        ..Options::default()
    };
    let device = device(Image::default());
    let mut fixture = Fixture {
        options,
        image: Image::default(),
        older: Image::default(),
        keys: BTreeMap::new(),
    };
    let store = fixture.open(&device)?;
    let items = items(name == NAMES[0]);
    for (number, (key, len_bytes)) in items.iter().enumerate() {
        fixture.put(&store, key, number, *len_bytes)?;
    }
    store.sync()?;
    fixture.older = device.image();
    for (number, (key, len_bytes)) in items.iter().enumerate() {
        match number % 3 {
            0 => fixture.put(&store, key, number + 100, *len_bytes)?,
            1 => fixture.put(&store, key, number + 100, len_bytes / 3)?,
            _ => {}
        }
        if number % 4 == 3 {
            fixture.delete(&store, key)?;
        }
    }
    store.close()?;
    if name == "dirty" {
        let store = fixture.open(&device)?;
        for (number, (key, len_bytes)) in items.iter().enumerate().step_by(5) {
            fixture.put(&store, key, number + 200, *len_bytes)?;
        }
        store.sync()?;
        fixture.keys.values_mut().for_each(|known| {
            let last = known.value.as_ref().and_then(|value| value.get(8));
            known.is_above_mark = last.is_some_and(|&stamp| stamp >= 200);
        });
        // Not closed: the last marks are those of the opening.
        fixture.image = device.image();
    } else {
        fixture.image = device.image();
    }
    Ok(fixture)
}

/// A device that holds an image, and records nothing.
pub(super) fn device(image: Image) -> Arc<SimDevice> {
    let options = SimOptions {
        record: false,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

impl Fixture {
    /// Opens the store on a device.
    pub fn open(&self, device: &Arc<SimDevice>) -> Result<Kvell> {
        Kvell::on(device, &self.options)
    }

    fn put(&mut self, store: &Kvell, key: &[u8], stamp: usize, len_bytes: usize) -> Result<()> {
        let value = value(stamp, len_bytes);
        match store.change(key, Some(&value), Durability::Buffered) {
            Ok(_) => {}
            // Longer than this build stores.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => return Ok(()),
            Err(error) => return Err(error),
        }
        let known = self.keys.entry(key.to_vec()).or_default();
        known.earlier.extend(known.value.replace(value));
        Ok(())
    }

    fn delete(&mut self, store: &Kvell, key: &[u8]) -> Result<()> {
        store.change(key, None, Durability::Buffered)?;
        let known = self.keys.entry(key.to_vec()).or_default();
        known.earlier.extend(known.value.take());
        Ok(())
    }
}

/// Keys, and the lengths of their values in bytes: slots that share a sector, one to a sector, of several, large; long keys,
/// and keys that begin alike.
///
/// Of large values, whose sectors are more than all others, one stays, and another, if `has_second`, is replaced and deleted. A
/// third of each length, which some keys get later, fits into a class that others have: a verification reads all extents.
fn items(has_second: bool) -> Vec<(Vec<u8>, usize)> {
    let mut items = Vec::new();
    let mut add = |prefix: &str, count: usize, len_bytes: usize| {
        let keys = (0..count).map(|number| format!("{prefix}{number}").into_bytes());
        items.extend(keys.map(|key| (key, len_bytes)));
    };
    add("small", 12, 20);
    add("third", 6, 100);
    add("whole", 5, 400);
    add("several", 8, 900);
    add("more", 4, 2900);
    add("big", 3, 8600);
    add("large", 1 + usize::from(has_second), 262_000);
    add(&"long".repeat(110), 4, 100);
    add("thirty two bytes of a key that go on alike ", 5, 60);
    items
}

/// A value that tells its stamp; the stamp stands in its ninth byte, too.
fn value(stamp: usize, len_bytes: usize) -> Vec<u8> {
    let mut value = (stamp as u64).to_le_bytes().to_vec();
    value.resize(len_bytes.max(12), stamp as u8);
    value
}
