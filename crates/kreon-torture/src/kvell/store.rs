//! A store of KVell as the hunts see it.

use std::sync::Arc;

use ::kvell::{Options, Region, Store};
use kreon_base::{Error, Result};
use kreon_device::Device;
use kreon_sim::SimDevice;

use crate::engines::{Durability, Engine, HadOne};

/// A store, and its region, if that could be opened.
pub(crate) struct Kvell {
    store: Store,
    region: Result<Region>,
}

impl Kvell {
    /// Opens the store on a device.
    pub(super) fn on(device: &Arc<SimDevice>, options: &Options) -> Result<Self> {
        let store = options.open_on(Arc::clone(device) as Arc<dyn Device>)?;
        Ok(Self::of(store))
    }

    pub(super) fn of(store: Store) -> Self {
        let region = store.region("r");
        Self { store, region }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn region(&self) -> Result<&Region> {
        self.region.as_ref().map_err(Error::clone)
    }
}

impl Engine for Kvell {
    const NAME: &'static str = "kvell";

    /// KVell does not tell whether a key had a value.
    fn change(&self, key: &[u8], value: Option<&[u8]>, durability: Durability) -> Result<HadOne> {
        let durability = match durability {
            Durability::Buffered => ::kvell::Durability::Buffered,
            Durability::Sync => ::kvell::Durability::Sync,
        };
        let region = self.region()?;
        let outcome = match value {
            Some(value) => region.put(key, value, durability),
            None => region.delete(key, durability),
        };
        outcome.map(|()| None)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.region()?.get(key)
    }

    fn contents(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    fn verify(&self) -> Result<()> {
        let report = self.store.verify()?;
        match report.damage.first() {
            Some(damage) => Err(Error::corruption(damage.to_string())),
            None => Ok(()),
        }
    }

    fn close(self) -> Result<()> {
        self.store.close()
    }
}
