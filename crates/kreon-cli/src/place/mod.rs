//! What commands work on: a store in a file. The commands themselves do not look behind it.

mod region;
mod scan;

pub use region::{Batch, Bounds, Region};
pub use scan::{Direction, Keys, Scan};

use kreon::{Durability, Store};

use crate::failure::Result;

/// What commands work on. Clones are the same one.
#[derive(Clone)]
pub enum Place {
    /// A store that this process has open.
    Store(Store),
}

impl Place {
    /// The store, for what only a store can do.
    ///
    /// # Errors
    /// Wrong use if it is none.
    pub fn store(&self) -> Result<&Store> {
        match self {
            Self::Store(store) => Ok(store),
        }
    }

    /// The region to read from or delete in: it must be there.
    pub fn existing_region(&self, name: &str) -> Result<Region> {
        match self {
            Self::Store(store) => Ok(Region::Store(store.existing_region(name)?)),
        }
    }

    /// The region to write to: made if it is not there.
    pub fn region(&self, name: &str) -> Result<Region> {
        match self {
            Self::Store(store) => Ok(Region::Store(store.region(name)?)),
        }
    }

    /// The names of all regions, ascending.
    pub fn region_names(&self) -> Result<Vec<String>> {
        match self {
            Self::Store(store) => Ok(store.region_names()),
        }
    }

    /// Removes a region with all its pairs.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.drop_region(name)?),
        }
    }

    /// Writes a batch.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        match (self, batch) {
            (Self::Store(store), Batch::Store(batch)) => Ok(store.write(batch, durability)?),
        }
    }

    /// Everything that was written is durable.
    pub fn sync(&self) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.sync()?),
        }
    }

    /// Makes what was written durable and gives the place free.
    pub fn close(self) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.close()?),
        }
    }
}
