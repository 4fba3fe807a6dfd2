//! Counts of device reads by gets.

use crate::tree::Filtering;
use kreon_sync::{AtomicU64, Ordering};

/// Device reads by gets of all kinds, and reads that filters avoided, since the store was opened. A get that finds
/// all nodes in memory is not counted, because it asks no filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetStats {
    /// Leaves read from the device.
    pub leaf_reads: u64,
    /// Index nodes read from the device.
    pub index_reads: u64,
    /// Filter lookups for leaves that were not in memory.
    pub filter_checks: u64,
    /// Lookups that excluded the leaf and avoided its read.
    pub filter_exclusions: u64,
    /// False positives: lookups after which the leaf was read and lacked the key.
    pub filter_failures: u64,
}

impl GetStats {
    /// False positive rate: the share of the leaves without the key that was read, 0 to 1.
    pub fn false_positives(&self) -> f64 {
        match self.filter_exclusions + self.filter_failures {
            0 => 0.0,
            lacked => self.filter_failures as f64 / lacked as f64,
        }
    }

    /// The share of filter lookups that avoided a read, 0 to 1.
    pub fn exclusions(&self) -> f64 {
        match self.filter_checks {
            0 => 0.0,
            checks => self.filter_exclusions as f64 / checks as f64,
        }
    }
}

/// The counters behind [`GetStats`]. Only gets that read from the device, or would without a filter, update them.
#[derive(Default)]
pub struct GetCounts {
    leaf_reads: AtomicU64,
    index_reads: AtomicU64,
    passed: AtomicU64,
    excluded: AtomicU64,
    in_vain: AtomicU64,
}

impl GetCounts {
    /// Counts a node read from the device.
    pub fn read(&self, height: u8) {
        add_one(match height {
            0 => &self.leaf_reads,
            _ => &self.index_reads,
        });
    }

    /// Counts the outcome of a filter lookup.
    pub fn filtered(&self, answer: Filtering) {
        add_one(match answer {
            Filtering::Excluded => &self.excluded,
            Filtering::Passed => &self.passed,
            Filtering::InVain => &self.in_vain,
        });
    }

    /// The counts so far.
    pub fn stats(&self) -> GetStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let excluded = get(&self.excluded);
        GetStats {
            leaf_reads: get(&self.leaf_reads),
            index_reads: get(&self.index_reads),
            filter_checks: get(&self.passed) + excluded,
            filter_exclusions: excluded,
            filter_failures: get(&self.in_vain),
        }
    }
}

fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
