//! What commands work on: a store in a file, or a cluster. The commands themselves do not look behind it.

mod bounds;
mod opening;
mod piecewise_scan;
mod region;
mod scan;

pub use bounds::{Bounds, Direction};
pub use opening::open_store;
pub use region::{Batch, Region};
pub use scan::{Keys, Scan};

use kreon::{Durability, Store};
use kreon_client::{Cluster, ErrorKind};

use crate::failure::{Failure, Result, tell};
use crate::options::Engine;

/// What commands work on. Clones are the same one.
#[derive(Clone)]
pub enum Place {
    /// A store that this process has open.
    Store(Store),
    /// One of the engine KVell.
    Kvell(kvell::Store),
    /// One of the engine Tucana.
    Tucana(tucana::Store),
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
            Self::Kvell(_) => Err(lacks_it(Engine::Kvell)),
            Self::Tucana(_) => Err(lacks_it(Engine::Tucana)),
            Self::Cluster(_) => Err(Failure::usage(
                "this works on a store, not on a cluster: see `kreon cluster help`",
            )),
        }
    }

    /// The region to read from or delete in: it must be there.
    pub fn existing_region(&self, name: &str) -> Result<Region> {
        match self {
            Self::Store(store) => Ok(Region::Store(store.existing_region(name)?)),
            Self::Kvell(store) => Ok(Region::Kvell(store.existing_region(name)?)),
            Self::Tucana(store) => Ok(Region::Tucana(store.existing_region(name)?)),
            Self::Cluster(cluster) => Ok(Region::Cluster(cluster.region(name)?)),
        }
    }

    /// The region to write to: made if it is not there.
    pub fn region(&self, name: &str) -> Result<Region> {
        match self {
            Self::Store(store) => Ok(Region::Store(store.region(name)?)),
            Self::Kvell(store) => Ok(Region::Kvell(store.region(name)?)),
            Self::Tucana(store) => Ok(Region::Tucana(store.region(name)?)),
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
            Self::Kvell(store) => Ok(store.region_names()?),
            Self::Tucana(store) => Ok(store.region_names()?),
            Self::Cluster(cluster) => Ok(cluster.tables()?),
        }
    }

    /// Removes a region with all its pairs.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.drop_region(name)?),
            Self::Kvell(store) => Ok(store.drop_region(name)?),
            Self::Tucana(store) => Ok(store.drop_region(name)?),
            Self::Cluster(cluster) => Ok(cluster.drop_table(name)?),
        }
    }

    /// Writes a batch of an import. Where its primary is lost on the way, a cluster writes it again: whoever imports means
    /// these values, also if they were written before.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        match (self, batch) {
            (Self::Store(store), Batch::Store(batch)) => Ok(store.write(batch, durability)?),
            (Self::Kvell(_), Batch::Kvell(batch)) => batch.write(of_kvell(durability)),
            (Self::Tucana(store), Batch::Tucana(batch)) => {
                batch.write()?;
                match durability {
                    Durability::Buffered => Ok(()),
                    // One flush of the log for all.
                    Durability::Sync => Ok(store.sync()?),
                }
            }
            (Self::Cluster(cluster), Batch::Cluster(batch)) => again(|| {
                let durability = of_cluster(durability);
                cluster.write(batch.clone(), durability)
            }),
            _ => Err(Failure::usage("the batch belongs to another place")),
        }
    }

    /// Nothing that was written gets lost when this process ends: a store makes it durable, and what a cluster has
    /// acknowledged its servers have.
    pub fn sync(&self) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.sync()?),
            Self::Kvell(store) => Ok(store.sync()?),
            Self::Tucana(store) => Ok(store.sync()?),
            Self::Cluster(_) => Ok(()),
        }
    }

    /// Makes what was written durable and gives the place free.
    pub fn close(self) -> Result<()> {
        match self {
            Self::Store(store) => Ok(store.close()?),
            Self::Kvell(store) => Ok(store.close()?),
            Self::Tucana(store) => Ok(store.close()?),
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

/// The same in words of KVell.
const fn of_kvell(durability: Durability) -> kvell::Durability {
    match durability {
        Durability::Buffered => kvell::Durability::Buffered,
        Durability::Sync => kvell::Durability::Sync,
    }
}

/// The same in words of Tucana.
const fn of_tucana(durability: Durability) -> tucana::Durability {
    match durability {
        Durability::Buffered => tucana::Durability::Buffered,
        Durability::Sync => tucana::Durability::Sync,
    }
}

/// Wrong use: a store of the engine Kreon is meant.
fn lacks_it(engine: Engine) -> Failure {
    let name = engine.name();
    Failure::usage(format!(
        "this works on a store of the engine kreon; this one has {name}"
    ))
}

/// How often a batch whose primary was lost is written again. Each try waits for the next primary.
const TRIES_MAX: u32 = 5;

fn again(mut write: impl FnMut() -> kreon_client::Result<()>) -> Result<()> {
    let mut tries = 1;
    loop {
        match write() {
            Err(error) if is_passing(&error) && tries < TRIES_MAX => {
                tries += 1;
                tell(&format!("kreon: {error}; the rows are written again"));
            }
            written => return Ok(written?),
        }
    }
}

/// Whether it came of a change of primaries.
fn is_passing(error: &kreon_client::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unknown | ErrorKind::Unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_written_again_only_where_a_primary_was_lost_and_not_for_ever() {
        for (kind, tries) in [
            (ErrorKind::Unknown, TRIES_MAX),
            (ErrorKind::Unavailable, TRIES_MAX),
            (ErrorKind::OutOfSpace, 1),
        ] {
            let mut count = 0;
            let written = again(|| {
                count += 1;
                Err(kreon_client::Error::new(kind, "x"))
            });
            assert!(written.is_err());
            assert_eq!(count, tries, "{kind}");
        }
        let mut left = 2;
        let written = again(|| match left {
            0 => Ok(()),
            _ => {
                left -= 1;
                Err(kreon_client::Error::new(ErrorKind::Unknown, "x"))
            }
        });
        written.unwrap();
    }
}
