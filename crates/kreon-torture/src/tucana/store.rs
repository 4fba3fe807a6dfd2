//! A store of Tucana as the hunts see it.

use std::collections::HashMap;
use std::sync::Arc;

use ::tucana::{Direction, Options, ScanRange, Store};
use kreon_base::{Error, Result};
use kreon_device::Device;
use kreon_sim::SimDevice;

use crate::engines::{Durability, Engine, HadOne};

/// A store.
pub(crate) struct Tucana(pub(super) Store);

impl Tucana {
    /// Opens the store on a device.
    pub(super) fn on(device: &Arc<SimDevice>, options: &Options) -> Result<Self> {
        Store::open(Arc::clone(device) as Arc<dyn Device>, options).map(Self)
    }
}

impl Engine for Tucana {
    const NAME: &'static str = "tucana";

    fn change(&self, key: &[u8], value: Option<&[u8]>, durability: Durability) -> Result<HadOne> {
        let durability = match durability {
            Durability::Buffered => ::tucana::Durability::Buffered,
            Durability::Sync => ::tucana::Durability::Sync,
        };
        let outcome = match value {
            Some(value) => self.0.put_with(key, value, durability),
            None => self.0.delete_with(key, durability),
        };
        outcome.map(Some)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn contents(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        let numbers: HashMap<&[u8], usize> = keys.iter().map(|key| &key[..]).zip(0..).collect();
        let mut found = vec![None; keys.len()];
        for pair in self.0.scan(ScanRange::default(), Direction::Forward) {
            let (key, value) = pair?;
            let number = numbers.get(&key[..]).ok_or_else(|| {
                Error::corruption(format!("a key that nobody put: {}", key.escape_ascii()))
            })?;
            if found[*number].replace(value).is_some() {
                return Err(Error::corruption(format!("key {number} is shown twice")));
            }
        }
        Ok(found)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    fn verify(&self) -> Result<()> {
        self.0.verify().map(drop)
    }

    fn close(self) -> Result<()> {
        self.0.close()
    }
}
