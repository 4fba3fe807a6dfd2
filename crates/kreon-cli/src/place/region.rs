//! A region of a place.

use std::io::BufRead as _;
use std::time::SystemTime;

use kreon::{Durability, Value, WriteBatch};

use super::bounds::{Bounds, Direction};
use super::piecewise_scan::PiecewiseScan;
use super::scan::{Keys, Scan, TableScan};
use super::{lacks_it, of_cluster, of_kvell, of_tucana};
use crate::failure::{Failure, Result};
use crate::options::Engine;

/// A region of a store, or a table of a cluster.
pub enum Region {
    Store(kreon::Region),
    Kvell(kvell::Region),
    Tucana(tucana::Region),
    Cluster(kreon_client::Region),
}

impl Region {
    /// The region of a store, for what only a store can do.
    ///
    /// # Errors
    /// Wrong use if it is a table of a cluster.
    pub fn of_store(&self) -> Result<&kreon::Region> {
        match self {
            Self::Store(region) => Ok(region),
            Self::Kvell(_) => Err(lacks_it(Engine::Kvell)),
            Self::Tucana(_) => Err(lacks_it(Engine::Tucana)),
            Self::Cluster(_) => Err(Failure::usage(
                "keys expire in a store, not in a cluster: see `kreon cluster help`",
            )),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match self {
            // A copy: a slow reader of our output must not hold the frame.
            Self::Store(region) => Ok(region.get(key)?),
            Self::Kvell(region) => Ok(region.get(key)?.map(Value::from)),
            Self::Tucana(region) => Ok(region.get(key)?.map(Value::from)),
            Self::Cluster(region) => Ok(region.get(key)?.map(Value::from)),
        }
    }

    /// Gives `write` the value of a key in parts, as few in memory as the place can; false if there is no such key.
    pub fn stream(&self, key: &[u8], mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        match self {
            Self::Store(region) => {
                let Some(mut value) = region.get_reader(key)? else {
                    return Ok(false);
                };
                loop {
                    let bytes = value.bytes()?;
                    if bytes.is_empty() {
                        return Ok(true);
                    }
                    write(bytes)?;
                    let written = bytes.len();
                    value.consume(written);
                }
            }
            Self::Kvell(_) | Self::Tucana(_) | Self::Cluster(_) => match self.get(key)? {
                Some(value) => write(&value).map(|()| true),
                None => Ok(false),
            },
        }
    }

    pub fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        match self {
            Self::Store(region) => Ok(region.put_with(key, value, durability)?),
            Self::Kvell(region) => Ok(region.put(key, value, of_kvell(durability))?),
            Self::Tucana(region) => region
                .put_with(key, value, of_tucana(durability))
                .map(drop)
                .map_err(Failure::from),
            Self::Cluster(region) => Ok(region.put_with(key, value, of_cluster(durability))?),
        }
    }

    pub fn delete(&self, key: &[u8], durability: Durability) -> Result<()> {
        match self {
            Self::Store(region) => Ok(region.delete_with(key, durability)?),
            Self::Kvell(region) => Ok(region.delete(key, of_kvell(durability))?),
            Self::Tucana(region) => region
                .delete_with(key, of_tucana(durability))
                .map(drop)
                .map_err(Failure::from),
            Self::Cluster(region) => Ok(region.delete_with(key, of_cluster(durability))?),
        }
    }

    pub fn delete_range(&self, bounds: Bounds, durability: Durability) -> Result<()> {
        match self {
            Self::Store(region) => Ok(region.delete_range_with(bounds, durability)?),
            Self::Kvell(region) => Ok(region.delete_range(bounds, of_kvell(durability))?),
            Self::Tucana(region) => Ok(region.delete_range_with(bounds, of_tucana(durability))?),
            Self::Cluster(region) => Ok(region.delete_range_with(bounds, of_cluster(durability))?),
        }
    }

    /// The pairs with keys within `bounds`.
    pub fn scan(&self, bounds: Bounds, direction: Direction) -> Result<Scan> {
        match self {
            Self::Store(region) => Ok(Scan::Store(region.range(bounds), direction)),
            Self::Kvell(region) => Ok(Scan::Kvell(Box::new(region.range(bounds)), direction)),
            Self::Tucana(region) => Ok(Scan::Tucana(PiecewiseScan::new(region, bounds, direction))),
            Self::Cluster(region) => Ok(Scan::Cluster(TableScan::new(
                region, bounds, direction, false,
            ))),
        }
    }

    /// Only their keys: no value is read, but for Tucana, which has keys beside their values only.
    pub fn keys(&self, bounds: Bounds, direction: Direction) -> Result<Keys> {
        match self {
            Self::Store(region) => Ok(Keys::Store(region.range(bounds).keys(), direction)),
            Self::Kvell(region) => Ok(Keys::Kvell(
                Box::new(region.range(bounds).keys()),
                direction,
            )),
            Self::Tucana(region) => Ok(Keys::Tucana(PiecewiseScan::new(region, bounds, direction))),
            Self::Cluster(region) => Ok(Keys::Cluster(TableScan::new(
                region, bounds, direction, true,
            ))),
        }
    }

    /// Whether [`ingest`](Self::ingest) can be used here.
    pub fn loads_at_once(&self) -> bool {
        match self {
            Self::Store(_) => true,
            Self::Kvell(_) | Self::Tucana(_) | Self::Cluster(_) => false,
        }
    }

    /// Loads pairs that ascend, all or none, without going through memory.
    pub fn ingest(
        &self,
        pairs: impl Iterator<Item = kreon::Result<(Vec<u8>, Vec<u8>)>>,
    ) -> kreon::Result<()> {
        match self {
            Self::Store(region) => region.try_ingest(pairs).map(drop),
            Self::Kvell(_) | Self::Tucana(_) | Self::Cluster(_) => {
                Err(kreon::Error::invalid("pairs are not loaded at once here"))
            }
        }
    }

    /// An empty batch for [`Place::write`](super::Place::write).
    pub fn batch(&self) -> Batch {
        match self {
            Self::Store(_) => Batch::Store(WriteBatch::new()),
            Self::Kvell(region) => Batch::Kvell(Puts::new(region)),
            Self::Tucana(region) => Batch::Tucana(BufferedPuts::new(region)),
            // Rows of a file need not stand or fall together beyond their group.
            Self::Cluster(_) => Batch::Cluster(kreon_client::WriteBatch::new().split(true)),
        }
    }

    /// Adds a put to a batch of this place, of a value that stays or expires.
    ///
    /// # Errors
    /// Wrong use if it expires, and keys do not expire here.
    pub fn add(
        &self,
        batch: &mut Batch,
        (key, value): (&[u8], &[u8]),
        expires: Option<SystemTime>,
    ) -> Result<()> {
        match (self, batch, expires) {
            (Self::Store(region), Batch::Store(batch), None) => batch.put(region, key, value),
            (Self::Store(region), Batch::Store(batch), Some(moment)) => {
                batch.put_until(region, key, value, moment);
            }
            (Self::Cluster(region), Batch::Cluster(batch), None) => batch.put(region, key, value),
            (Self::Kvell(_), Batch::Kvell(batch), None) => batch.add(key, value),
            (Self::Tucana(_), Batch::Tucana(batch), None) => batch.add(key, value),
            (Self::Kvell(_) | Self::Tucana(_) | Self::Cluster(_), _, Some(_)) => {
                return Err(Failure::usage(
                    "a row expires, and keys expire in a store of the engine kreon only: --no-expires lets them stay",
                ));
            }
            // Its place refuses it when it is written.
            _ => {}
        }
        Ok(())
    }
}

/// Writes that belong together.
pub enum Batch {
    Store(WriteBatch),
    Kvell(Puts),
    Tucana(BufferedPuts),
    Cluster(kreon_client::WriteBatch),
}

impl Batch {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Store(batch) => batch.len(),
            Self::Kvell(puts) => puts.len(),
            Self::Tucana(puts) => puts.len(),
            Self::Cluster(batch) => batch.len(),
        }
    }
}

/// Puts into a region of KVell. They do not stand or fall together.
pub struct Puts {
    region: kvell::Region,
    pairs: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Puts {
    fn new(region: &kvell::Region) -> Self {
        Self {
            region: region.clone(),
            pairs: Vec::new(),
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.pairs.push((key.to_vec(), Some(value.to_vec())));
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Carries them out.
    pub fn write(&self, durability: kvell::Durability) -> Result<()> {
        Ok(self.region.write_many(&self.pairs, durability)?)
    }
}

/// Puts into a region of Tucana. They do not stand or fall together.
pub struct BufferedPuts {
    region: tucana::Region,
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl BufferedPuts {
    fn new(region: &tucana::Region) -> Self {
        Self {
            region: region.clone(),
            pairs: Vec::new(),
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.pairs.push((key.to_vec(), value.to_vec()));
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Carries them out. A sync of the store makes them durable.
    pub fn write(&self) -> Result<()> {
        for (key, value) in &self.pairs {
            let buffered = tucana::Durability::Buffered;
            self.region.put_with(key, value, buffered)?;
        }
        Ok(())
    }
}
