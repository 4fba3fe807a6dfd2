//! What every store gets, and how it is tuned for that. One page, so that anybody can judge whether it is fair.
//!
//! All stores get the same memory ([`Means::memory_bytes`]), which a limit on their process enforces where the
//! machine lets us: the page cache of a store that lives on it counts there, too. None compresses: values do not
//! shrink. None flushes per write unless [`Means::is_sync`] asks for it.

use serde::{Deserialize, Serialize};

use super::planted::Plant;
use crate::ycsb::mix::Mix;

/// What a store gets.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Means {
    /// Memory for everything, in bytes.
    pub memory_bytes: u64,
    /// Every write is durable when it returns.
    pub is_sync: bool,
    /// What it will hold.
    pub mix: Mix,
    /// Bytes of keys and values that it will hold, about.
    pub data_bytes: u64,
    /// Share of the memory for one L0, in percent, where a sweep sets it (kreon only).
    pub l0_percent: Option<u32>,
    /// Seconds from one checkpoint of L0 to the next, where a sweep sets them; 0: none (kreon only).
    pub l0_checkpoint_seconds: Option<u32>,
    /// Longest value that stands in the leaves of the index, where a sweep sets it (kreon only).
    pub inline_bytes: Option<u32>,
    /// Space for each byte of live records that the store may take, where a run sets it (kreon only).
    pub space_amplification: Option<f64>,
    /// Bytes that the store may write for each byte that overwrites another, where a run sets it (kreon only).
    pub write_amplification_max: Option<f64>,
    /// Between a load and the workloads behind it every record is read once: for what fits in memory.
    pub is_warmed: bool,
    /// Watch how random the device transfers are (kreon only).
    pub trace: bool,
    /// What is made wrong on purpose.
    pub plant: Option<Plant>,
}

impl Means {
    /// Memory for a store that manages its own: the rest is for the harness, the allocator and code.
    pub fn own_memory_bytes(&self) -> usize {
        const HARNESS_BYTES: u64 = 48 << 20;
        let own = self.memory_bytes.saturating_sub(HARNESS_BYTES);
        (own.max(self.memory_bytes / 2) as f64 * 0.95) as usize
    }
}

/// How Tucana is set: as it comes, within its memory.
pub struct Tucana {
    /// Frames for nodes and for what is read of the log.
    pub memory_bytes: usize,
    /// Segments of the log in memory beside them: the one that takes records, the one behind it, one of records that were moved,
    /// and full ones that wait to be written.
    pub log_bytes: usize,
    /// The longest time between two commits, in seconds: its default.
    pub commit_seconds: f64,
    /// The most log between two commits: its default.
    pub commit_log_bytes: u64,
}

/// See [`Tucana`].
pub fn tucana(means: &Means) -> Tucana {
    const SEGMENT_BYTES: usize = 2 << 20;
    let own_bytes = means.own_memory_bytes();
    let log_bytes = (5 * SEGMENT_BYTES).min(own_bytes / 4);
    let defaults = tucana::Options::default();
    Tucana {
        memory_bytes: own_bytes - log_bytes,
        log_bytes,
        commit_seconds: defaults.commit_interval.as_secs_f64(),
        commit_log_bytes: defaults.commit_log_bytes,
    }
}

/// How RocksDB is tuned.
#[cfg(feature = "rocksdb")]
pub struct Rocksdb {
    /// Reads and writes bypass the page cache. Not where everything fits in memory: each compaction would make it read from the
    /// device what it has just written.
    pub is_direct: bool,
    /// Block cache. With direct I/O there is no page cache behind it, so it gets most of the memory. Where everything fits
    /// in memory it holds all of the data, and the page cache has what is left.
    pub cache_bytes: usize,
    /// A clock in place of a list: its hits take no lock. The list evicts better where memory is scarce.
    pub has_clock_cache: bool,
    /// A memtable. Larger than the default of 64 MiB only where the memory is plentiful.
    pub write_buffer_bytes: usize,
    /// Memtables, the frozen ones included.
    pub write_buffers: i32,
    /// Bloom filters: 1 % false positives, as Kreon's own.
    pub filter_bits_per_key: f64,
    /// Index and filter blocks count as cache where memory is scarce; else they stay outside, which is faster.
    pub index_in_cache: bool,
    /// Flushes and compactions: as many threads as the papers' client has cores here.
    pub background_threads: i32,
    /// Values from this length on go to blob files, in the variant that has them.
    pub blob_bytes_min: u64,
}

/// See [`Rocksdb`].
#[cfg(feature = "rocksdb")]
pub fn rocksdb(means: &Means) -> Rocksdb {
    let own_bytes = means.own_memory_bytes();
    let write_buffer_bytes = (own_bytes / 12).clamp(8 << 20, 128 << 20);
    let write_buffers = 3;
    Rocksdb {
        is_direct: !means.is_warmed,
        cache_bytes: match means.is_warmed {
            true => (means.data_bytes as usize * 3 / 2).min(own_bytes / 2),
            false => own_bytes - write_buffer_bytes * write_buffers as usize,
        },
        has_clock_cache: means.is_warmed,
        write_buffer_bytes,
        write_buffers,
        filter_bits_per_key: 10.0,
        index_in_cache: means.data_bytes > means.memory_bytes,
        background_threads: 2,
        blob_bytes_min: 128,
    }
}

/// How Bf-Tree is tuned.
#[cfg(feature = "bf-tree")]
pub struct Bftree {
    /// Its circular buffer of hot records and pages, a power of two. Leaves beyond it come through the page cache.
    pub buffer_bytes: usize,
    /// A leaf on the device: of 8 to 32 KiB the smallest costs least where reads miss the buffer, and loads little more.
    pub leaf_bytes: usize,
    /// How many of a hundred reads that miss bring their record into the buffer. All where everything fits in memory: gets
    /// cost half as much there as with 30, its default, which saves the buffer for what is read again.
    pub promotion_percent: usize,
    /// The longest pair.
    pub record_bytes_max: usize,
    /// The longest key.
    pub key_bytes_max: usize,
}

/// See [`Bftree`].
#[cfg(feature = "bf-tree")]
pub fn bftree(means: &Means) -> Bftree {
    // The largest power of two that fits.
    let buffer_bytes = (means.own_memory_bytes() / 2 + 1).next_power_of_two();
    Bftree {
        buffer_bytes,
        leaf_bytes: 8 << 10,
        promotion_percent: if means.is_warmed { 100 } else { 30 },
        record_bytes_max: 2 << 10,
        key_bytes_max: 64,
    }
}

/// The map of LMDB: addresses, not memory. Copy-on-write needs about twice the data; the rest is for inserts.
#[cfg(feature = "lmdb")]
pub fn lmdb_map_bytes(means: &Means) -> usize {
    const PAGE_BYTES: u64 = 4096;
    let bytes = (means.data_bytes * 8).max(1 << 30);
    bytes.next_multiple_of(PAGE_BYTES) as usize
}

/// How fjall is tuned.
#[cfg(feature = "fjall")]
pub struct Fjall {
    /// Its cache of blocks and values. It reads through the page cache, too, and needs much memory beside the cache: with
    /// half and a third it was killed in the large preset. Where everything fits in memory it holds all of the data.
    pub cache_bytes: u64,
    /// A memtable. Small, because several wait for their flush during a load.
    pub write_buffer_bytes: u64,
    /// Flushes and compactions.
    pub background_threads: usize,
}

/// See [`Fjall`].
#[cfg(feature = "fjall")]
pub fn fjall(means: &Means) -> Fjall {
    let own_bytes = means.own_memory_bytes() as u64;
    Fjall {
        cache_bytes: match means.is_warmed {
            true => (means.data_bytes * 5 / 4).min(own_bytes / 3),
            false => own_bytes / 5,
        },
        write_buffer_bytes: (own_bytes / 32).clamp(8 << 20, 64 << 20),
        background_threads: 2,
    }
}

/// After so many puts one of redb's is durable: only then does it free the pages of the versions before, four or so for each
/// put. A twentieth of the records: with 20 000 puts of 100 000 records the file had three times the data, and did not fit
/// into the memory of `quick` any more.
#[cfg(feature = "redb")]
pub fn redb_puts_per_flush(means: &Means) -> u64 {
    let records = means.data_bytes as f64 / means.mix.pair_bytes_mean();
    (records as u64 / 20).clamp(1000, 20_000)
}

/// The cache of redb: it reads and writes through the page cache, too, so it gets half. Where everything fits in memory it
/// holds all pages of the data, two thirds full as those of B-trees are, and what is written meanwhile.
#[cfg(feature = "redb")]
pub fn redb_cache_bytes(means: &Means) -> usize {
    let own_bytes = means.own_memory_bytes();
    match means.is_warmed {
        true => (means.data_bytes as usize * 5 / 2).min(own_bytes * 2 / 3),
        false => own_bytes / 2,
    }
}

/// How WiredTiger is tuned. It reads and writes through the page cache. With direct I/O each page takes twice its length of the
/// heap, because of its alignment, and whoever evicts waits for the device: with twice as much data as memory a put cost twice
/// the CPU time, and reads outgrew the limit.
#[cfg(feature = "wiredtiger")]
pub struct Wiredtiger {
    /// Its cache of pages and of what was written since. Less than it may have: its log has 32 MiB of buffers beside, the heap
    /// its holes, and the page cache holds what was evicted. Where everything fits in memory it holds all of the data, the
    /// versions of records that a page does not have yet included.
    pub cache_bytes: usize,
    /// A leaf on the device: four records. Where everything fits in memory nothing reads them, and fewer cost less.
    pub leaf_bytes: usize,
    /// Longer values stand outside of the leaves, and cost one more read. The default is half a leaf.
    pub leaf_value_bytes_max: usize,
    /// The kernel may read ahead: it would read megabytes for each leaf that is missed, so only where none is.
    pub has_readahead: bool,
    /// From this share of changed pages in the cache on they are written in the background, in percent. Where everything fits
    /// in memory they need not leave before the checkpoint: the default of 5 cost puts there two and a half times the CPU time.
    pub dirty_percent: u32,
    /// From this share on writers must help. The default is 20.
    pub dirty_percent_max: u32,
    /// A file of the log, in bytes.
    pub log_file_bytes: u64,
    /// Files of the log are filled with zeroes ahead: only for flushes, which are quicker over blocks that were written before.
    /// The files are smaller then, because each is filled in one go beside the writers.
    pub has_zeroed_log: bool,
    /// Threads that evict, at the most: as many as MongoDB has.
    pub eviction_threads_max: usize,
    /// From one checkpoint to the next, in seconds: MongoDB's.
    pub checkpoint_seconds: u32,
    /// Or after so many bytes of the log, which it keeps until then.
    pub checkpoint_log_bytes: u64,
}

/// See [`Wiredtiger`].
#[cfg(feature = "wiredtiger")]
pub fn wiredtiger(means: &Means) -> Wiredtiger {
    const LOG_BUFFER_BYTES: usize = 32 << 20;
    const CACHE_BYTES_MIN: usize = 8 << 20;
    let own_bytes = means.own_memory_bytes().saturating_sub(LOG_BUFFER_BYTES);
    let is_warmed = means.is_warmed;
    // Beyond memory 64 clients hold pages beside the cache: with three quarters it outgrew 256 MiB in C and E, and was killed.
    let cache_bytes = match is_warmed {
        true => own_bytes * 3 / 4,
        false => own_bytes / 2,
    };
    let cache_bytes = cache_bytes.max(CACHE_BYTES_MIN);
    Wiredtiger {
        cache_bytes: match is_warmed {
            true => cache_bytes.min((means.data_bytes as usize * 5 / 2).max(CACHE_BYTES_MIN)),
            false => cache_bytes,
        },
        leaf_bytes: if is_warmed { 16 << 10 } else { 4 << 10 },
        leaf_value_bytes_max: 64 << 10,
        has_readahead: is_warmed,
        dirty_percent: if is_warmed { 60 } else { 5 },
        dirty_percent_max: if is_warmed { 80 } else { 20 },
        log_file_bytes: if means.is_sync { 16 << 20 } else { 100 << 20 },
        has_zeroed_log: means.is_sync,
        eviction_threads_max: 4,
        checkpoint_seconds: 60,
        checkpoint_log_bytes: 1 << 30,
    }
}
