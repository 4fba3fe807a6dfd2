//! The state of an open store that all its handles and threads share.

use std::sync::Arc;

use crate::sync::{AtomicBool, AtomicU64, Ordering};

use crate::sync::Mutex;
use kreon_base::{RegionId, Result};
use kreon_device::HomeProcess;

use super::collect::Collector;
use super::gate::Gate;
use super::images::Images;
use super::levels::{Holds, MergeWork};
use super::pressure::Pressure;
use super::region::Regions;
use super::reorganise::Reorganiser;
use super::scan_memory::ScanMemory;
use super::signal::Signal;
use super::snapshots::Snapshots;
use super::units::Units;
use crate::level::{GetCounts, MappedLog, MappedNodes, View};
use crate::options::{MemorySplit, Options};
use crate::state::Parts;
use crate::state::poison::closed;

/// See the module's text. Order of locks: `upkeep`, `rotation`, the gate, then those of the parts; the turn of `images` before `rotation`.
pub struct Core {
    /// The process that opened the store. In a forked child nothing here is touched: other threads of the parent may
    /// have held any of the locks.
    pub home: HomeProcess,
    /// Volume, log, levels.
    pub parts: Parts,
    /// Settings.
    pub options: Options,
    /// How the memory is split.
    pub split: MemorySplit,
    /// Regions by name.
    pub regions: Regions,
    /// Between writers and those who need a moment without any.
    pub gate: Gate,
    /// Batches under way.
    pub units: Units,
    /// Open snapshots.
    pub snapshots: Snapshots,
    /// Slows writers down.
    pub pressure: Pressure,
    /// Garbage collection. Its turn comes before all other locks.
    pub collector: Collector,
    /// Lays values together that scans read.
    pub reorganiser: Reorganiser,
    /// The memory of what scans have found ahead.
    pub scan_memory: Arc<ScanMemory>,
    /// Who builds on the lower trees of which region.
    pub holds: Holds,
    /// One spill, drop of a region or verification at a time.
    pub upkeep: Mutex<()>,
    /// One change from L0' to L0 at a time.
    pub rotation: Mutex<()>,
    /// What nobody reaches is given back by one at a time: who finds none is sure that no other has some in hand.
    pub giving_back: Mutex<()>,
    /// Images of L0.
    pub images: Images,
    /// What gets read.
    pub gets: Arc<GetCounts>,
    /// Entries without a value that scans passed one by one.
    pub scanned_dead: AtomicU64,
    /// Wakes the thread that spills.
    pub spill_wanted: Signal,
    /// Wakes a thread that merges levels.
    pub merge_wanted: Signal,
    /// What spills and merges did.
    pub merges: MergeWork,
    /// Set when the store is closed.
    pub closed: AtomicBool,
}

impl Core {
    /// # Errors
    /// `Closed` after the store was closed, and in a process that was forked from the one that opened it.
    pub fn check_open(&self) -> Result<()> {
        self.home.check()?;
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        Ok(())
    }

    /// # Errors
    /// `Closed`, or `Poisoned` after a failed write.
    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.parts.poison.check()
    }

    /// The nodes of the levels of `region` in `view`, L1 first.
    pub fn nodes(&self, view: &View, region: RegionId) -> Vec<MappedNodes<'_>> {
        let count = view.levels.of(region).len();
        (1..=count)
            .map(|level| self.nodes_of_level(region, level as u8))
            .collect()
    }

    /// The nodes of one level.
    pub fn nodes_of_level(&self, region: RegionId, level: u8) -> MappedNodes<'_> {
        MappedNodes {
            mapping: &self.parts.mapping,
            log: &self.parts.log,
            store: self.parts.store,
            region,
            level,
            counts: None,
            resident_only: false,
        }
    }

    /// The nodes of one level for gets, which count what they read.
    pub fn nodes_for_gets(&self, region: RegionId, level: u8) -> MappedNodes<'_> {
        MappedNodes {
            counts: Some(&self.gets),
            ..self.nodes_of_level(region, level)
        }
    }

    /// The nodes of an image of L0: they are evicted before all others but the log.
    pub fn nodes_of_image(&self, region: RegionId) -> MappedNodes<'_> {
        MappedNodes {
            store: self.parts.store.of_image(),
            ..self.nodes_of_level(region, u8::MAX)
        }
    }

    /// The log's pages.
    pub fn log_pages(&self) -> MappedLog<'_> {
        MappedLog {
            mapping: &self.parts.mapping,
        }
    }
}
