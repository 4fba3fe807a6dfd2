//! Counts of the reads of gets at the device.

use crate::tree::Filtering;
use kreon_sync::{AtomicU64, Ordering};

/// What gets of all kinds read from the device, and what filters spared them, since the store was opened.
/// Gets that find all in memory are not counted: they ask no filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetStats {
    /// Leaves that were read from the device.
    pub leaf_reads: u64,
    /// Index nodes that were read from the device.
    pub index_reads: u64,
    /// Times that the filter of a leaf that was not in memory was asked.
    pub filter_checks: u64,
    /// Of those, when the leaf need not be read, as it lacked the key.
    pub filter_exclusions: u64,
    /// Of those, when the leaf was read and lacked the key: false positives.
    pub filter_failures: u64,
}

impl GetStats {
    /// Of the leaves that lacked the key, the share that was read all the same, 0 to 1.
    pub fn false_positives(&self) -> f64 {
        match self.filter_exclusions + self.filter_failures {
            0 => 0.0,
            lacked => self.filter_failures as f64 / lacked as f64,
        }
    }

    /// Of the checks, the share that spared a read, 0 to 1.
    pub fn exclusions(&self) -> f64 {
        match self.filter_checks {
            0 => 0.0,
            checks => self.filter_exclusions as f64 / checks as f64,
        }
    }
}

/// The counters behind [`GetStats`]. Each is touched where the device is, or would be without a filter.
#[derive(Default)]
pub struct GetCounts {
    leaf_reads: AtomicU64,
    index_reads: AtomicU64,
    passed: AtomicU64,
    excluded: AtomicU64,
    in_vain: AtomicU64,
}

impl GetCounts {
    /// A node came from the device.
    pub fn read(&self, height: u8) {
        add_one(match height {
            0 => &self.leaf_reads,
            _ => &self.index_reads,
        });
    }

    /// A filter was asked, or was in vain.
    pub fn filtered(&self, answer: Filtering) {
        add_one(match answer {
            Filtering::Excluded => &self.excluded,
            Filtering::Passed => &self.passed,
            Filtering::InVain => &self.in_vain,
        });
    }

    /// What was counted so far.
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
