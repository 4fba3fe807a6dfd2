//! The memory of a store by class.

use std::fmt;

use kreon_base::PAGE_BYTES;

use super::Inspector;
use super::sizes::bytes;
use crate::level::log_source::LOG_PRIORITY;
use crate::level::source::is_leaf_priority;

/// The memory budget, class by class: the classes sum up to the budget exactly. What is given to a
/// class is its own: memory that it does not use just now counts for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Frames with index nodes, in bytes.
    pub index_bytes: u64,
    /// Frames with leaves, in bytes.
    pub leaf_bytes: u64,
    /// Frames with pages of the log, in bytes.
    pub log_page_bytes: u64,
    /// Frames with single records of the log, in bytes.
    pub record_bytes: u64,
    /// Frames that are free, or whose page is on its way in or out, in bytes.
    pub free_frame_bytes: u64,
    /// What the mapping keeps about pages and frames, in bytes: the most that it may be.
    pub table_bytes: u64,
    /// Buffers of the log, in bytes.
    pub log_buffer_bytes: u64,
    /// Buffers of garbage collection and what it knows of dead records, in bytes.
    pub collector_bytes: u64,
    /// What scans have found ahead, in bytes: the most that it may be.
    pub scan_bytes: u64,
    /// L0' and L0, in bytes: at their full size.
    pub l0_bytes: u64,
    /// Unused, in bytes: the remainder of rounding.
    pub spare_bytes: u64,
}

impl MemoryStats {
    /// All classes together: the memory budget.
    pub fn sum_bytes(&self) -> u64 {
        self.classes().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Names and bytes of the classes.
    fn classes(&self) -> [(&'static str, u64); 11] {
        [
            ("index nodes", self.index_bytes),
            ("leaves", self.leaf_bytes),
            ("log pages", self.log_page_bytes),
            ("records", self.record_bytes),
            ("free frames", self.free_frame_bytes),
            ("tables", self.table_bytes),
            ("log buffers", self.log_buffer_bytes),
            ("collector", self.collector_bytes),
            ("scans", self.scan_bytes),
            ("L0", self.l0_bytes),
            ("spare", self.spare_bytes),
        ]
    }
}

impl fmt::Display for MemoryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.classes()
            .into_iter()
            .filter(|(_, size)| *size > 0)
            .try_for_each(|(name, size)| writeln!(f, "  {name:<20} {:>20}", bytes(size)))
    }
}

impl Inspector {
    pub fn memory_stats(&self) -> MemoryStats {
        const FRAME_BYTES: u64 = PAGE_BYTES as u64;
        let mapping = &self.storage.mapping;
        let mut stats = MemoryStats {
            l0_bytes: self.l0_bytes(),
            log_buffer_bytes: self.storage.split.log_bytes as u64,
            collector_bytes: (self.storage.split.collector_bytes
                + self.storage.split.dead_record_bytes) as u64,
            scan_bytes: self.storage.split.scan_bytes as u64,
            ..MemoryStats::default()
        };
        // Pages come and go meanwhile: the free frames are what this one look leaves.
        let frames = mapping.stats().frames;
        let mut resident = 0;
        for (priority, pages) in mapping.pages_by_priority() {
            let pages = pages.min(frames - resident);
            resident += pages;
            let class = match priority {
                LOG_PRIORITY => &mut stats.log_page_bytes,
                priority if is_leaf_priority(priority) => &mut stats.leaf_bytes,
                _ => &mut stats.index_bytes,
            };
            *class += pages * FRAME_BYTES;
        }
        let records = mapping.stats().frames_of_records.min(frames - resident);
        stats.record_bytes = records * FRAME_BYTES;
        stats.free_frame_bytes = (frames - resident - records) * FRAME_BYTES;
        stats.table_bytes = mapping.memory_bytes() as u64 - frames * FRAME_BYTES;
        let budget_bytes = self.storage.options.memory_bytes as u64;
        stats.spare_bytes = budget_bytes.saturating_sub(stats.sum_bytes());
        stats
    }

    /// What L0s may take; what they take, where none is ever written.
    fn l0_bytes(&self) -> u64 {
        match self.storage.options.read_only {
            true => {
                let view = self.storage.views.load();
                view.l0s().map(|l0| l0.bytes() as u64).sum()
            }
            false => 2 * self.storage.split.l0_bytes as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_counts_in_the_sum() {
        let stats = MemoryStats {
            index_bytes: 1,
            leaf_bytes: 2,
            log_page_bytes: 4,
            free_frame_bytes: 8,
            table_bytes: 16,
            log_buffer_bytes: 32,
            l0_bytes: 64,
            spare_bytes: 128,
            record_bytes: 256,
            collector_bytes: 512,
            scan_bytes: 1024,
        };
        assert_eq!(stats.sum_bytes(), 2047);
        assert_eq!(stats.to_string().lines().count(), 11);
    }
}
