//! What a phase used: CPU time, transfers, and how much others used meanwhile.

use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::disk::Disk;

/// Readings at one moment. The difference of two is what was used in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time of this process with all its threads, in seconds.
    pub cpu_seconds: f64,
    /// Of this, in the kernel.
    pub system_seconds: f64,
    /// CPU time of the whole machine, idle time left out, in seconds.
    pub machine_cpu_seconds: f64,
    /// Bytes that this process caused the device to read.
    pub process_read_bytes: u64,
    /// Bytes that this process caused the device to write.
    pub process_write_bytes: u64,
    /// Bytes that the device read, for whomever.
    pub device_read_bytes: u64,
    /// Bytes that the device wrote, for whomever.
    pub device_write_bytes: u64,
    /// Reads of the device.
    pub device_reads: u64,
    /// Writes of the device.
    pub device_writes: u64,
}

impl Usage {
    /// Readings now. `disk` is the device under the store, where it is known.
    pub fn now(disk: Option<&Disk>) -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let device = disk.map(Disk::transferred).unwrap_or_default();
        Self {
            cpu_seconds: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9,
            system_seconds: system_seconds().unwrap_or(0.0),
            machine_cpu_seconds: machine_cpu_seconds().unwrap_or(0.0),
            process_read_bytes: field(&io, "read_bytes:"),
            process_write_bytes: field(&io, "write_bytes:"),
            device_read_bytes: device.read_bytes,
            device_write_bytes: device.write_bytes,
            device_reads: device.reads,
            device_writes: device.writes,
        }
    }

    /// What was used since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
            system_seconds: self.system_seconds - before.system_seconds,
            machine_cpu_seconds: self.machine_cpu_seconds - before.machine_cpu_seconds,
            process_read_bytes: self.process_read_bytes - before.process_read_bytes,
            process_write_bytes: self.process_write_bytes - before.process_write_bytes,
            device_read_bytes: self.device_read_bytes - before.device_read_bytes,
            device_write_bytes: self.device_write_bytes - before.device_write_bytes,
            device_reads: self.device_reads - before.device_reads,
            device_writes: self.device_writes - before.device_writes,
        }
    }
}

/// Ticks of the kernel's clock in a second, in everything that `/proc` tells.
const TICKS: f64 = 100.0;

fn system_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in brackets, with any characters.
    let ticks: f64 = stat
        .rsplit(')')
        .next()?
        .split_whitespace()
        .nth(12)?
        .parse()
        .ok()?;
    Some(ticks / TICKS)
}

fn machine_cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|at| ticks.get(*at));
    Some(busy.sum::<f64>() / TICKS)
}

/// The number behind `name` in lines like those of `/proc/self/io`.
pub fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Bytes of disk that the files in `dir` take.
pub fn space_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => space_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen() {
        let before = Usage::now(None);
        let mut sum = 0u64;
        while Usage::now(None).since(&before).cpu_seconds < 0.02 {
            sum = std::hint::black_box(sum.wrapping_mul(3) + 1);
        }
        assert!(Usage::now(None).machine_cpu_seconds > 0.0);
    }

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(field("rchar: 5\nread_bytes: 7\n", "read_bytes:"), 7);
        assert_eq!(field("VmHWM:\t  12 kB\n", "VmHWM:"), 12);
        assert_eq!(field("", "x:"), 0);
    }
}
