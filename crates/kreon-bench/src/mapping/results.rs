//! What was measured, as it stands in `mapping.json`.

use serde::{Deserialize, Serialize};

use super::micro::Cost;
use super::piece::Measured;
use super::settings::Settings;
use crate::machine::about::About;
use crate::machine::memory;

/// `mapping.json`.
#[derive(Serialize, Deserialize)]
pub struct Results {
    /// The command line.
    pub command: String,
    /// Where it ran.
    pub machine: About,
    /// What was measured.
    pub settings: Settings,
    /// Whether the memory limits were enforced.
    pub is_limited: bool,
    /// Variants under workloads.
    pub rows: Vec<Row>,
    /// Single reads.
    pub costs: Vec<Cost>,
    /// Pieces of `--device`, `--ablate` and `--inserts-latency`.
    #[serde(default)]
    pub measured: Vec<Measured>,
    /// What could not be measured here, and why.
    #[serde(default)]
    pub skipped: Vec<String>,
}

/// One variant under one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Name of the variant.
    pub variant: String,
    /// Name of the workload.
    pub workload: String,
    /// Requests that were made.
    pub requests: u64,
    /// Requests a second.
    pub ops_per_second: f64,
    /// CPU time of the whole process, background work included.
    pub cpu_us_per_op: f64,
    /// Reads of the device, machine-wide.
    pub device_reads_per_op: f64,
    /// Bytes that the device read, machine-wide.
    pub device_read_bytes_per_op: f64,
    /// Bytes that the device wrote for each byte of keys and values, machine-wide; of inserts only.
    pub written_per_byte: Option<f64>,
    /// Most memory of the process; pages of a mapped file count.
    pub peak_rss_bytes: u64,
    /// The store's budget.
    pub budget_bytes: u64,
    /// Whether the kernel's mapping is read, whose pages are not the store's memory.
    pub is_mapped: bool,
}

impl Row {
    /// Whether the process took more memory than the store may: its budget, a twentieth and 32 MiB.
    pub fn is_over_budget(&self) -> bool {
        !self.is_mapped && self.peak_rss_bytes > memory::allowed_bytes(self.budget_bytes)
    }
}
