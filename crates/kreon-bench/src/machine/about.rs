//! What the figures were measured on.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::Disk;

/// The machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct About {
    /// The processor's name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Clock rate in MHz, for estimated cycles.
    pub mhz: f64,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// The kernel.
    pub kernel: String,
    /// The file system under the stores and its options.
    pub file_system: String,
    /// The block device under the stores, and its queue's settings.
    pub device: String,
}

impl About {
    /// This machine, with the stores in `dir`.
    pub fn here(dir: &Path) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: line("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            mhz: line("cpu MHz")
                .and_then(|mhz| mhz.parse().ok())
                .unwrap_or(0.0),
            memory_bytes: super::usage::field(&meminfo, "MemTotal:") << 10,
            kernel: kernel.trim().to_owned(),
            file_system: file_system(dir),
            device: device(dir),
        }
    }
}

fn file_system(dir: &Path) -> String {
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut best = ("", "unknown".to_owned());
    for mount in mounts.lines() {
        let fields: Vec<&str> = mount.split(' ').collect();
        if let [_, place, kind, options, ..] = fields[..]
            && dir.starts_with(place)
            && place.len() >= best.0.len()
        {
            best = (place, format!("{kind} ({options})"));
        }
    }
    best.1
}

fn device(dir: &Path) -> String {
    let Ok(disk) = Disk::under(dir) else {
        return "none that is told".to_owned();
    };
    let settings = [
        "scheduler",
        "nr_requests",
        "read_ahead_kb",
        "write_cache",
        "rotational",
    ];
    let settings = settings.map(|name| format!("{name} {}", disk.queue(name).unwrap_or_default()));
    format!("{}: {}", disk.name(), settings.join(", "))
}
