//! The split of the memory budget.

use kreon_base::{Error, Result};

use super::{L0_BYTES_MAX, MIB, Options, check_most};

/// Log buffers: two segments at least, and no more than keep the device busy.
const LOG_BYTES_MIN: usize = 4 * MIB;
const LOG_BYTES_MAX: usize = 32 * MIB;

/// The split of the memory budget, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySplit {
    /// One L0.
    pub l0_bytes: usize,
    /// All buffers of the log.
    pub log_bytes: usize,
    /// Buffers of garbage collection.
    pub collector_bytes: usize,
    /// What collection knows of dead records.
    pub dead_record_bytes: usize,
    /// Entries that scans have read ahead.
    pub scan_bytes: usize,
    /// Frames of the mapping and their tables.
    pub mapping_bytes: usize,
}

impl Options {
    /// Memory for credits, by which scans count reads of scattered values: a credit for each leaf of a store ten times
    /// as large as its memory, with values of 1 KiB.
    pub(crate) fn credit_bytes(&self) -> usize {
        match self.scan_reorganisation {
            true => (self.memory_bytes / 1024).next_power_of_two().min(MIB),
            false => 0,
        }
    }

    /// Splits the budget: an eighth for each of L0 and L0', a sixteenth (4 to 32 MiB) for log buffers, small shares for
    /// collection and scans, the rest for frames.
    ///
    /// # Errors
    /// `InvalidArgument` if a value is out of range.
    pub fn split(&self) -> Result<MemorySplit> {
        self.check_ranges()?;
        let l0_bytes = self
            .l0_bytes
            .unwrap_or((self.memory_bytes / 8).min(L0_BYTES_MAX));
        check_most("l0_bytes", l0_bytes, L0_BYTES_MAX)?;
        let log_bytes = self.log_buffer_bytes.unwrap_or(self.memory_bytes / 16);
        let log_bytes = log_bytes.clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
        // Each half must be whole pages, for direct I/O.
        let collector_bytes = (self.memory_bytes / 32).clamp(MIB / 4, 4 * MIB) & !(MIB / 8 - 1);
        // Bits of a log as long as the memory.
        let dead_record_bytes = self.memory_bytes / 512;
        let taken =
            2 * l0_bytes + log_bytes + collector_bytes + dead_record_bytes + self.credit_bytes();
        let left_bytes = self.memory_bytes.saturating_sub(taken);
        // The smallest store has no share for scans.
        let scan_bytes = (self.memory_bytes.saturating_sub(4 * MIB) / 32).min(8 * MIB);
        let scan_bytes = scan_bytes.min(left_bytes.saturating_sub(MIB / 2));
        let mapping_bytes = left_bytes - scan_bytes;
        if l0_bytes == 0 || mapping_bytes < MIB / 2 {
            return Err(Error::invalid(format!(
                "two L0s of {l0_bytes} bytes and {log_bytes} bytes of log buffers leave no room for \
                 frames in {} bytes of memory",
                self.memory_bytes
            )));
        }
        Ok(MemorySplit {
            l0_bytes,
            log_bytes,
            collector_bytes,
            dead_record_bytes,
            scan_bytes,
            mapping_bytes,
        })
    }
}
