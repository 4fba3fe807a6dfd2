//! The stores that are measured, behind one face.

pub mod kreon;
mod nothing;
pub mod planted;
mod raw;
pub mod tuning;
pub mod version;
mod watched;

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::randomness::Randomness;
use planted::Planted;
use tuning::Means;

/// A store under measurement. Clients on many threads share it.
pub trait Engine: Send + Sync {
    /// Inserts or overwrites a record, as durable as the means say.
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()>;

    /// Shows the value of `key`; whether there is one.
    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool>;

    /// Shows the values of `keys`, each with the number of its key; how many keys have one. Stores that can, ask the
    /// device for all of them at once.
    fn get_many(
        &self,
        keys: &[Vec<u8>],
        show: &mut dyn FnMut(usize, &[u8]),
    ) -> anyhow::Result<usize> {
        let mut found = 0;
        for (number, key) in keys.iter().enumerate() {
            found += usize::from(self.get(key, &mut |value| show(number, value))?);
        }
        Ok(found)
    }

    /// Shows up to `count` records from `start` on, in order of their keys; how many there were.
    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize>;

    /// Ends the background work that the requests so far left behind, and makes everything durable: it belongs to
    /// their cost.
    fn settle(&self) -> anyhow::Result<()>;

    /// Makes all requests so far durable, and leaves the background work for later.
    fn persist(&self) -> anyhow::Result<()> {
        self.settle()
    }

    /// Bytes of the log that an opening after a crash would have to replay now, if the store can tell.
    fn replay_bytes(&self) -> Option<u64> {
        None
    }

    /// How random the device transfers since the last call were, if the store can tell.
    fn take_randomness(&self) -> Option<Randomness> {
        None
    }

    /// Inserts or overwrites records together, as one batch that nobody waits for.
    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        let _ = pairs;
        anyhow::bail!("no batches of this store are measured")
    }

    /// What it asked of the file system since it was opened, if the store can tell.
    fn asked(&self) -> Option<Asked> {
        None
    }

    /// Where its space is, and what it wrote since it was opened, if the store can tell.
    fn inside(&self) -> Option<Inside> {
        None
    }
}

/// What a store asked of the file system, beside reads and writes of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Calls of `fallocate` for more space.
    pub allocations: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes of zeroes written ahead of a log.
    pub zeroed_bytes: u64,
}

/// What a store says of itself, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Length of the volume.
    pub volume_bytes: u64,
    /// Free within the volume, backed by blocks or not.
    pub free_bytes: u64,
    /// Segments of the log.
    pub log_bytes: u64,
    /// Of this, what the index points at.
    pub log_live_bytes: u64,
    /// Pages of the index.
    pub index_bytes: u64,
    /// Written to the device.
    pub write_bytes: u64,
    /// Of this, pages: the index, above all.
    pub page_write_bytes: u64,
}

/// The stores that can be measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[value(rename_all = "lower")]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Does nothing: what the harness costs.
    Nothing,
    /// Is busy for 5 us with each put: what the machine's noise does to the latencies of requests that take a while.
    Busy,
    /// The bare device: a block behind the one before, and a flush, in blocks that were written before.
    Device,
    /// The same in blocks that were only reserved.
    Unwritten,
    /// This project.
    Kreon,
    /// RocksDB (feature `rocksdb`).
    Rocksdb,
    /// RocksDB with values in blob files (feature `rocksdb`).
    Blobdb,
    /// LMDB (feature `lmdb`).
    Lmdb,
    /// fjall (feature `fjall`).
    Fjall,
    /// redb (feature `redb`).
    Redb,
}

impl Kind {
    /// Whether it is the bare device, which only takes loads.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::Unwritten)
    }

    /// Whether it is a store, and not part of the harness or the bare device.
    pub fn is_store(self) -> bool {
        !self.is_device() && !matches!(self, Self::Nothing | Self::Busy)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Busy => "busy",
            Self::Device => "device",
            Self::Unwritten => "unwritten",
            Self::Kreon => "kreon",
            Self::Rocksdb => "rocksdb",
            Self::Blobdb => "blobdb",
            Self::Lmdb => "lmdb",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
        }
    }

    /// Opens a new store in the empty folder `dir`.
    ///
    /// # Errors
    /// Of the store; or this build does not have it.
    pub fn open(self, dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
        let open = self.open_right(dir, means)?;
        Ok(match means.plant {
            Some(plant) if self != Self::Nothing => Box::new(Planted::new(open, plant)),
            _ => open,
        })
    }

    fn open_right(self, dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
        const BUSY: Duration = Duration::from_micros(5);
        match self {
            Self::Nothing => Ok(Box::new(nothing::Nothing::new(means.mix))),
            Self::Busy => Ok(Box::new(nothing::Nothing::busy(means.mix, BUSY))),
            Self::Device => raw::open(dir, means, true),
            Self::Unwritten => raw::open(dir, means, false),
            Self::Kreon => kreon::open(dir, means),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => rocksdb::open(dir, means, false),
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => rocksdb::open(dir, means, true),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => lmdb::open(dir, means),
            #[cfg(feature = "fjall")]
            Self::Fjall => fjall::open(dir, means),
            #[cfg(feature = "redb")]
            Self::Redb => redb::open(dir, means),
            #[allow(unreachable_patterns, reason = "reached where features are off")]
            _ => anyhow::bail!(
                "this build has no {}: build it with --features peers",
                self.name()
            ),
        }
    }

    /// Whether this build has it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Nothing | Self::Busy | Self::Device | Self::Unwritten | Self::Kreon => true,
            Self::Rocksdb | Self::Blobdb => cfg!(feature = "rocksdb"),
            Self::Lmdb => cfg!(feature = "lmdb"),
            Self::Fjall => cfg!(feature = "fjall"),
            Self::Redb => cfg!(feature = "redb"),
        }
    }
}
