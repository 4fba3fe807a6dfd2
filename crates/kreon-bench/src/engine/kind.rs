//! Which stores there are, and how each is opened.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Engine;
#[cfg(feature = "bf-tree")]
use super::bftree;
#[cfg(feature = "fjall")]
use super::fjall;
#[cfg(feature = "lmdb")]
use super::lmdb;
use super::nothing::Nothing;
use super::planted::Planted;
#[cfg(feature = "redb")]
use super::redb;
#[cfg(feature = "rocksdb")]
use super::rocksdb;
use super::tuning::Means;
#[cfg(feature = "wiredtiger")]
use super::wiredtiger;
use super::{kreon, kvell, raw, tucana};

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
    /// This project's other store, which shares nothing and sorts nothing.
    Kvell,
    /// This project's tree that every write changes, over a log of pairs.
    Tucana,
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
    /// Bf-Tree, which is not durable (feature `bf-tree`).
    Bftree,
    /// WiredTiger, the system's library (feature `wiredtiger`).
    Wiredtiger,
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

    /// Whether what it took survives the end of its process.
    pub fn is_durable(self) -> bool {
        self != Self::Bftree
    }

    /// Clients that it is loaded by where only the time of the load counts: a store that answers when the device has a
    /// write is as quick as there are others under way.
    pub fn loaders(self) -> u64 {
        match self {
            Self::Kvell => 64,
            _ => 2,
        }
    }

    /// Its name in tables: one that is not durable is never shown beside others without a word.
    pub fn label(self) -> &'static str {
        match self {
            Self::Bftree => "bftree (not durable)",
            _ => self.name(),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Busy => "busy",
            Self::Device => "device",
            Self::Unwritten => "unwritten",
            Self::Kreon => "kreon",
            Self::Kvell => "kvell",
            Self::Tucana => "tucana",
            Self::Rocksdb => "rocksdb",
            Self::Blobdb => "blobdb",
            Self::Lmdb => "lmdb",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
            Self::Bftree => "bftree",
            Self::Wiredtiger => "wiredtiger",
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
            Self::Nothing => Ok(Box::new(Nothing::new(means.mix))),
            Self::Busy => Ok(Box::new(Nothing::busy(means.mix, BUSY))),
            Self::Device => raw::open(dir, means, true),
            Self::Unwritten => raw::open(dir, means, false),
            Self::Kreon => kreon::open(dir, means),
            Self::Kvell => kvell::open(dir, means),
            Self::Tucana => tucana::open(dir, means),
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
            #[cfg(feature = "bf-tree")]
            Self::Bftree => bftree::open(dir, means),
            #[cfg(feature = "wiredtiger")]
            Self::Wiredtiger => wiredtiger::open(dir, means),
            #[allow(unreachable_patterns, reason = "reached where features are off")]
            _ => Err(self.is_missing()),
        }
    }

    /// Makes sure that this build has it.
    ///
    /// # Errors
    /// It has not; which feature would.
    pub fn ensure_built(self) -> anyhow::Result<()> {
        match self.is_built() {
            true => Ok(()),
            false => Err(self.is_missing()),
        }
    }

    fn is_missing(self) -> anyhow::Error {
        let features = match self {
            Self::Wiredtiger => "wiredtiger",
            _ => "peers",
        };
        let name = self.name();
        anyhow::anyhow!("this build has no {name}: build it with --features {features}")
    }

    /// Whether this build has it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Nothing | Self::Busy | Self::Device | Self::Unwritten => true,
            Self::Kreon | Self::Kvell | Self::Tucana => true,
            Self::Rocksdb | Self::Blobdb => cfg!(feature = "rocksdb"),
            Self::Lmdb => cfg!(feature = "lmdb"),
            Self::Fjall => cfg!(feature = "fjall"),
            Self::Redb => cfg!(feature = "redb"),
            Self::Bftree => cfg!(feature = "bf-tree"),
            Self::Wiredtiger => cfg!(feature = "wiredtiger"),
        }
    }
}
