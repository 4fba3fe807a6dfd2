//! A store of Tucana as the hunts see it.

use std::collections::HashMap;
use std::sync::Arc;

use ::tucana::{Direction, Options, ScanRange, Store, StoreSnapshot};
use kreon_base::{Error, Result};
use kreon_device::Device;
use kreon_sim::SimDevice;

use super::regions::{MergedScan, Regions};
use crate::engines::{Durability, Engine, HadOne};

/// A store.
pub(crate) struct Tucana {
    pub(super) store: Store,
    regions: Regions,
}

impl Tucana {
    /// Opens the store on a device.
    pub(super) fn on(device: &Arc<SimDevice>, options: &Options) -> Result<Self> {
        Self::open(Arc::clone(device) as Arc<dyn Device>, options)
    }

    pub(super) fn open(device: Arc<dyn Device>, options: &Options) -> Result<Self> {
        Ok(Self {
            store: Store::open(device, options)?,
            regions: Regions::default(),
        })
    }

    /// The pairs of all regions.
    pub(super) fn scan(&self, range: &ScanRange, direction: Direction) -> MergedScan {
        self.regions.scan(&self.store, None, range, direction)
    }

    /// The same in a snapshot.
    pub(super) fn scan_in(
        &self,
        snapshot: &StoreSnapshot,
        range: &ScanRange,
        direction: Direction,
    ) -> MergedScan {
        let snapshot = Some(snapshot);
        self.regions.scan(&self.store, snapshot, range, direction)
    }

    /// The value of a key in a snapshot.
    pub(super) fn get_in(&self, snapshot: &StoreSnapshot, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.regions.existing(&self.store, key)? {
            Some(region) => snapshot.get(&region, key),
            None => Ok(None),
        }
    }
}

impl Engine for Tucana {
    const NAME: &'static str = "tucana";

    fn change(&self, key: &[u8], value: Option<&[u8]>, durability: Durability) -> Result<HadOne> {
        let durability = match durability {
            Durability::Buffered => ::tucana::Durability::Buffered,
            Durability::Sync => ::tucana::Durability::Sync,
        };
        let region = self.regions.of(&self.store, key)?;
        let outcome = match value {
            Some(value) => region.put_with(key, value, durability),
            None => region.delete_with(key, durability),
        };
        outcome.map(Some)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.regions.existing(&self.store, key)? {
            Some(region) => region.get(key),
            None => Ok(None),
        }
    }

    fn contents(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        let numbers: HashMap<&[u8], usize> = keys.iter().map(|key| &key[..]).zip(0..).collect();
        let mut found = vec![None; keys.len()];
        for pair in self.scan(&ScanRange::default(), Direction::Forward) {
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
        self.store.sync()
    }

    fn verify(&self) -> Result<()> {
        self.store.verify().map(drop)
    }

    fn close(self) -> Result<()> {
        self.store.close()
    }
}
