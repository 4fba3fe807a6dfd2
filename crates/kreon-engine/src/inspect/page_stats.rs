//! Counts of the mapping by kind of page.

use std::fmt;

use kreon_mapping::PriorityStats;

use super::Inspector;
use crate::level::log_source::LOG_PRIORITY;
use crate::level::source::is_leaf_priority;

/// Pages of one class since the store was opened. What experiments change about priorities changes the classes of
/// evictions and writes, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageClassStats {
    /// Reads that found the page in memory.
    pub hits: u64,
    /// Reads that had to wait for the device, or for another thread that did.
    pub misses: u64,
    /// Pages evicted.
    pub evicted: u64,
    /// Dirty pages written.
    pub written: u64,
}

/// All pages, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageStats {
    /// Index nodes.
    pub index: PageClassStats,
    /// Leaves.
    pub leaves: PageClassStats,
    /// Pages of the log; hits on single records are counted by themselves.
    pub log: PageClassStats,
}

impl PageClassStats {
    fn add(&mut self, stats: &PriorityStats) {
        self.hits += stats.hits;
        self.misses += stats.misses;
        self.evicted += stats.pages_evicted;
        self.written += stats.pages_written;
    }
}

impl Inspector {
    pub fn page_stats(&self) -> PageStats {
        let mut all = PageStats::default();
        for (priority, stats) in self.storage.mapping.stats_by_priority() {
            let class = match priority {
                LOG_PRIORITY => &mut all.log,
                priority if is_leaf_priority(priority) => &mut all.leaves,
                _ => &mut all.index,
            };
            class.add(&stats);
        }
        all
    }
}

impl fmt::Display for PageStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, class) in [
            ("index nodes", self.index),
            ("leaves", self.leaves),
            ("log pages", self.log),
        ] {
            let text = format!(
                "{} hits, {} misses, {} evicted, {} written",
                class.hits, class.misses, class.evicted, class.written
            );
            writeln!(f, "  {name:<12} {text:>50}")?;
        }
        Ok(())
    }
}
