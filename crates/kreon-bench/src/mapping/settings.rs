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
    /// Threads.
    #[arg(long, default_value_t = 2)]
    pub threads: u64,
    /// Only variants whose name contains this; `micro`: none, but the costs of single reads.
    #[arg(long, default_value = "")]
    pub only: String,
    /// Where `mapping.json` and `mapping.md` go.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}
