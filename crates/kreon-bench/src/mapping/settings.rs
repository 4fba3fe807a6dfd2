//! What is measured, and where.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub struct Settings {
    /// Records that are got.
    #[arg(long, default_value_t = 800_000)]
    pub records: u64,
    /// Bytes of a value of them, 8 at the least.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(8..))]
    pub value_bytes: u64,
    /// Memory limit of the process that gets, page cache included, in MiB; inserts have a quarter.
    #[arg(long, default_value_t = 256)]
    pub memory_mib: u64,
    /// Seconds of each workload of gets; those that need it run as long before, to fill the memory.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Records that are inserted.
    #[arg(long, default_value_t = 600_000)]
    pub inserts: u64,
    /// Bytes of a value of them, 8 at the least: short ones stand in the leaves, which spills rewrite.
    #[arg(long, default_value_t = 48, value_parser = clap::value_parser!(u64).range(8..))]
    pub insert_value_bytes: u64,
    /// Threads; of a list, stores are asked by as many as the largest says, and the others by each in turn.
    #[arg(long, default_value = "2", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: Vec<u64>,
    /// Only variants whose name contains this; `micro`: none, but the costs of single reads.
    #[arg(long, default_value = "")]
    pub only: String,
    /// With `--only micro`: misses and new content over a device in DRAM, beside the kernel's mapping of memory.
    #[arg(long)]
    pub device: Option<DeviceKind>,
    /// Parts of the mapping that are changed one at a time, without a store around it.
    #[arg(long, value_delimiter = ',')]
    pub ablate: Vec<Ablation>,
    /// Latencies of inserts while a checkpoint is made each second, by frames and by `mmap`.
    #[arg(long)]
    pub inserts_latency: bool,
    /// What operations demand of each lock, and the bound that follows; wants the feature `lock-times`.
    #[arg(long)]
    pub demands: bool,
    /// Rounds of `--device`, `--ablate` and `--inserts-latency`, by turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Where `mapping.json` and `mapping.md` go.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// A device that is not the real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum DeviceKind {
    /// Memory.
    Ram,
}

/// A part of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[clap(rename_all = "snake_case")]
pub enum Ablation {
    /// Locks over which the state of pages is spread.
    Shards,
    /// Lists of free frames.
    Lists,
    /// Pages that are evicted at once.
    EvictBatch,
    /// Pages that are read before they get new content.
    FreshReads,
    /// Merged writes of dirty pages.
    Writeback,
    /// Eviction by priority.
    Priorities,
}

impl Ablation {
    /// What it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shards => "locks over which the state of pages is spread",
            Self::Lists => "lists of free frames",
            Self::EvictBatch => "pages that are evicted at once",
            Self::FreshReads => "pages that are read before they get new content",
            Self::Writeback => "writes of dirty pages",
            Self::Priorities => "eviction by priority",
        }
    }

    /// Whether threads make a difference.
    pub const fn has_threads(self) -> bool {
        !matches!(self, Self::Writeback | Self::Priorities)
    }
}

impl Settings {
    /// Threads that ask a store.
    pub fn threads_max(&self) -> u64 {
        self.threads.iter().copied().max().unwrap_or(1)
    }

    /// Whether the device is memory.
    pub fn wants_ram(&self) -> bool {
        self.device == Some(DeviceKind::Ram)
    }

    /// Whether something else is asked for than variants of a store.
    pub fn has_experiments(&self) -> bool {
        self.wants_ram() || !self.ablate.is_empty() || self.inserts_latency
    }
}
