//! The storage of an open store.

use std::sync::Arc;

use kreon_base::{Lsn, RegionId, Result};
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_mapping::Mapping;
use kreon_sync::RankedMutex;

use super::{DeadRecords, FeedLog, Ledger, Lifecycle, MadeRegions};
use crate::events::Event;
use crate::level::{GetCounts, MappedLog, MappedNodes, View, Views};
use crate::options::{MemorySplit, Options};
use kreon_log::{Log, MovedStream, Poison};
use kreon_volume::Allocator;

/// Everything of an open store that spills, checkpoints and recovery work on, each part with its own lock. Their
/// order is that of [`kreon_sync::Rank`].
pub struct Storage {
    /// The device under the volume.
    pub device: Arc<dyn Device>,
    /// The store's identity, in every checksum.
    pub store: StoreId,
    /// Pages of trees and of the log, in frames.
    pub mapping: Arc<Mapping>,
    /// Segments and pages in use.
    pub allocator: Arc<RankedMutex<Allocator>>,
    /// The value log.
    pub log: Arc<Log>,
    /// The stream of moved records.
    pub moved: RankedMutex<MovedStream>,
    /// The current view, and pages and segments that wait for readers of older ones.
    pub views: Views,
    /// What the last checkpoint made durable.
    pub ledger: RankedMutex<Ledger>,
    /// Regions that the log has and no checkpoint yet.
    pub made: MadeRegions,
    /// More regions than this have pages of their own beside the stream of the catalogue.
    pub regions_in_stream_max: usize,
    /// Records that no tree points at any more, as far as known.
    pub dead: DeadRecords,
    /// What of the log is kept for the change feed.
    pub feed: FeedLog,
    /// Set when writing must stop.
    pub poison: Poison,
    /// Settings.
    pub options: Options,
    /// How the memory is split.
    pub split: MemorySplit,
    /// Counts of what gets read from the device.
    pub gets: Arc<GetCounts>,
    /// Open or closed.
    pub lifecycle: Lifecycle,
}

impl Storage {
    /// Tells the listener.
    pub fn tell(&self, event: &Event) {
        self.options.events.tell(event);
    }

    /// Everything before this is durable and may be shown by the change feed. Of a log that is only read, what is known to be.
    pub fn feed_until(&self) -> Lsn {
        match self.options.read_only {
            true => self.log.found_durable(),
            false => self.feed.until(&self.log),
        }
    }

    /// # Errors
    /// Those of [`Lifecycle::check_open`].
    pub fn check_open(&self) -> Result<()> {
        self.lifecycle.check_open()
    }

    /// # Errors
    /// `Closed`, or `Poisoned` after a failed write.
    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.poison.check()
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
            mapping: &self.mapping,
            log: &self.log,
            store: self.store,
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
            store: self.store.of_image(),
            ..self.nodes_of_level(region, u8::MAX)
        }
    }

    /// The log's pages.
    pub fn log_pages(&self) -> MappedLog<'_> {
        MappedLog {
            mapping: &self.mapping,
        }
    }
}
