//! What commands work on: a store in a file, or a cluster. The commands themselves do not look behind it.

mod region;
mod scan;

pub use region::{Batch, Bounds, Region};
pub use scan::{Direction, Keys, Scan};

use kreon::{Durability, Store};
use kreon_client::{Cluster, ErrorKind};

use crate::failure::{Failure, Result};

/// What commands work on. Clones are the same one.
#[derive(Clone)]
pub enum Place {
    /// A store that this process has open.
    Store(Store),
    /// A cluster, with its tables for regions.
    Cluster(Cluster),
}

impl Place {
    /// The store, for what only a store can do.
    ///
    /// # Errors
    /// Wrong use if it is none.
    pub fn store(&self) -> Result<&Store> {
        match self {
            Self::Store(store) => Ok(store),
            Self::Cluster(_) => Err(Failure::usage(
                "this works on a store, not on a cluster: see `kreon cluster help`",
            )),
        }
    }

    /// The region to read from or delete in: it must be there.
    pub fn existing_region(&self, name: &str) -> Result<Region> {
        match self {
            Self::Store(store) => Ok(Region::Store(store.existing_region(name)?)),
            Self::Cluster(cluster) => Ok(Region::Cluster(cluster.region(name)?)),
        }
    }

    /// The region to write to: made if it is not there.
    pub fn region(&self, name: &str) -> Result<Region> {
        match self {
            Self::Store(store) => Ok(Region::Store(store.region(name)?)),
            Self::Cluster(cluster) => match cluster.region(name) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let whole: [&[u8]; 0] = [];
                    Ok(Region::Cluster(cluster.create_table(name, &whole)?))
                }
                found => Ok(Region::Cluster(found?)),
            },
        }
    }

    /// The names of all regions, ascending.
    pub fn region_names(&self) -> Result<Vec<String>> {
        match self {
            Self::Store(store) => Ok(store.region_names()),
            Self::Cluster(cluster) => Ok(cluster.tables()?),
        }
    }

    /// Removes a region with all its pairs.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.drop_region(name)?),
            Self::Cluster(cluster) => Ok(cluster.drop_table(name)?),
        }
    }

    /// Writes a batch.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        match (self, batch) {
            (Self::Store(store), Batch::Store(batch)) => Ok(store.write(batch, durability)?),
            (Self::Cluster(cluster), Batch::Cluster(batch)) => {
                Ok(cluster.write(batch, of_cluster(durability))?)
            }
            (Self::Store(_), Batch::Cluster(_)) | (Self::Cluster(_), Batch::Store(_)) => {
                Err(Failure::usage("the batch belongs to another place"))
            }
        }
    }

    /// Nothing that was written gets lost when this process ends: a store makes it durable, and what a cluster has
    /// acknowledged its servers have.
    pub fn sync(&self) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.sync()?),
            Self::Cluster(_) => Ok(()),
        }
    }

    /// Makes what was written durable and gives the place free.
    pub fn close(self) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.close()?),
            Self::Cluster(_) => Ok(()),
        }
    }
}

/// The same in words of a cluster, which has nothing below `Replicated`.
const fn of_cluster(durability: Durability) -> kreon_client::Durability {
    match durability {
        Durability::Buffered => kreon_client::Durability::Replicated,
        Durability::Sync => kreon_client::Durability::Sync,
    }
}
