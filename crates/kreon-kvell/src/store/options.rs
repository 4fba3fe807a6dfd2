//! What a store is opened with.

use kreon_base::{Error, Result};
use kreon_device::processors;

use crate::format::PARTITIONS_MAX;

/// Bytes of keys in the index at most: of a longer key the head part of an item has the beginning.
const INDEX_KEY_BYTES_MAX: usize = 256;

/// Most workers that are started without being asked for: each has a queue at depth, and none was measured yet
/// that needs more.
const WORKERS_MAX_BY_DEFAULT: usize = 4;

/// Options of [`Options::open`]. The defaults suit a store of millions of items on a machine with other work to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory in bytes over indexes, caches and the state of slots; 256 MiB by default. An index takes about 40 bytes for
    /// each key; without room for another one a put of a new key fails with `OutOfSpace`. What is left caches items. An opening
    /// after a crash needs about three times the index of a few partitions for a while. If it finds less it reads all items
    /// several times, at most 14, and takes as many times as long.
    pub memory_bytes: usize,
    /// Partitions of a new store, 1 to 256; 8 by default. Each serves one request at a time, with many transfers in flight.
    /// An existing store keeps its number.
    pub partitions: u16,
    /// Of a new store: bytes that the device writes whole or not at all over a power cut, 512 to 4096, a power of two, at
    /// least its block; `None`: its block. Items up to this size are changed in place. The paper takes 4096 for granted
    /// (KVell 5.3); few devices promise it. The block of a file is 4096 where its file system does not do direct I/O in
    /// sectors, or does not tell (before Linux 6.1): then a power cut may tear what was durable. A raw device has that of
    /// its sectors.
    pub atomic_bytes: Option<usize>,
    /// Bytes of each key that stand in memory, beside the 4 of its region; 1 to 256, 32 by default. Keys that are longer and
    /// begin alike are told apart by reading their items, and a change of a longer key reads its item before. May change at
    /// every opening.
    pub index_key_bytes: usize,
    /// Threads that do the I/O, 1 to 256 and no more than partitions, each for its share of these. `None`, the default: as
    /// many as the processors that the process may use, 4 at most. May change at every opening.
    pub workers: Option<usize>,
    /// Transfers in flight for each worker, 1 to 1024; 64 by default.
    pub depth: usize,
    /// The device keeps what it took over a power cut: changes wait for no flushes. Wrong, acknowledged changes are lost, as
    /// they are where a file system goes through its page cache. Each extent is written twice, first with zeroes.
    pub assume_power_loss_protection: bool,
    /// The volume in a file never grows beyond so many bytes; `None`, the default: what the file system has.
    pub volume_bytes_max: Option<u64>,
    /// Create the store if there is none; `true` by default.
    pub create: bool,
    /// Create the store also over content that is no store: what was there is lost. Never over a volume of KVell, Kreon or
    /// Tucana, whole or damaged. `false` by default.
    pub format: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            partitions: 8,
            atomic_bytes: None,
            index_key_bytes: 32,
            workers: None,
            depth: 64,
            assume_power_loss_protection: false,
            volume_bytes_max: None,
            create: true,
            format: false,
        }
    }
}

impl Options {
    /// Workers for so many partitions.
    pub(super) fn workers_for(&self, partitions: usize) -> usize {
        let automatic = || processors().min(WORKERS_MAX_BY_DEFAULT);
        self.workers.unwrap_or_else(automatic).min(partitions)
    }

    /// `InvalidArgument` if a value is out of its range.
    pub(super) fn check(&self) -> Result<()> {
        let in_range = [
            (
                "partitions",
                usize::from(self.partitions),
                1,
                PARTITIONS_MAX,
            ),
            (
                "index_key_bytes",
                self.index_key_bytes,
                1,
                INDEX_KEY_BYTES_MAX,
            ),
            ("depth", self.depth, 1, 1024),
            ("workers", self.workers.unwrap_or(1), 1, PARTITIONS_MAX),
        ];
        for (name, value, min, max) in in_range {
            if !(min..=max).contains(&value) {
                return Err(Error::invalid(format!(
                    "{name} is {value}, not from {min} to {max}"
                )));
            }
        }
        Ok(())
    }
}
