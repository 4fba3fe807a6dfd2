//! A store that is used through one region, which is made by the first write.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use kreon_device::Device;
use tucana::{
    Direction, Durability, ErrorKind, Options, Region, Result, Store, StoreScan, StoreSnapshot,
};

/// Its name.
pub const REGION: &str = "default";

/// The store, and its region once that is there.
pub struct OneRegion {
    store: Store,
    region: OnceLock<Region>,
}

impl Deref for OneRegion {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl OneRegion {
    pub fn open(device: Arc<dyn Device>, options: &Options) -> Result<Self> {
        Ok(Self {
            store: Store::open(device, options)?,
            region: OnceLock::new(),
        })
    }

    /// The region, which is made if it is not there.
    pub fn own(&self) -> Result<&Region> {
        if self.region.get().is_none() {
            // Another thread may be quicker: it has the same one.
            let _ = self.region.set(self.store.region(REGION)?);
        }
        Ok(self.region.get().expect("it was just set"))
    }

    /// The region, if it is there.
    fn existing(&self) -> Result<Option<Region>> {
        if let Some(region) = self.region.get() {
            return Ok(Some(region.clone()));
        }
        match self.store.existing_region(REGION) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.own()?.put(key, value)
    }

    pub fn put_with(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<bool> {
        self.own()?.put_with(key, value, durability)
    }

    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        self.own()?.delete(key)
    }

    pub fn delete_with(&self, key: &[u8], durability: Durability) -> Result<bool> {
        self.own()?.delete_with(key, durability)
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.existing()? {
            Some(region) => region.get(key),
            None => Ok(None),
        }
    }

    /// All pairs, or an error.
    pub fn all(&self, direction: Direction) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        match self.existing()? {
            Some(region) => region.scan(.., direction).collect(),
            None => Ok(Vec::new()),
        }
    }

    /// A snapshot, and all pairs that it shows.
    pub fn snapshot(&self) -> StoreSnapshot {
        self.store.snapshot().unwrap()
    }

    pub fn all_in(&self, snapshot: &StoreSnapshot, direction: Direction) -> StoreScan {
        snapshot.scan(self.own().unwrap(), .., direction)
    }

    pub fn close(self) -> Result<()> {
        self.store.close()
    }
}
