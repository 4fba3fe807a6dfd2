//! The stores that are measured, behind one face.

mod kreon;
mod nothing;
pub mod tuning;
pub mod version;

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::path::Path;

use serde::{Deserialize, Serialize};

use tuning::Means;

/// A store under measurement. Clients on many threads share it.
pub trait Engine: Send + Sync {
    /// Inserts or overwrites a record, as durable as the means say.
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()>;

    /// Shows the value of `key`; whether there is one.
    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool>;

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

    /// Device writes and reads as offset and length in bytes since the last call, if the store can tell.
    fn take_trace(&self) -> Option<Trace> {
        None
    }
}

/// Device transfers in their order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// (offset, length, whether it is a write), in bytes.
    pub transfers: Vec<(u64, u64, bool)>,
    /// Length of the volume in bytes.
    pub volume_bytes: u64,
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
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
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
        match self {
            Self::Nothing => Ok(Box::new(nothing::Nothing::new(means.mix))),
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
            Self::Nothing | Self::Kreon => true,
            Self::Rocksdb | Self::Blobdb => cfg!(feature = "rocksdb"),
            Self::Lmdb => cfg!(feature = "lmdb"),
            Self::Fjall => cfg!(feature = "fjall"),
            Self::Redb => cfg!(feature = "redb"),
        }
    }
}
