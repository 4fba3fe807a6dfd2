//! How a store is opened, and how durable its writes are.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Result, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_format::VOLUME_SEGMENTS_MAX;
use kreon_mapping::{Mapping, MappingOptions};

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is in the log in memory. A crash loses a suffix of the acknowledged writes at most: never one write without
    /// all that follow it in the log. The next commit makes it durable.
    #[default]
    Buffered,
    /// When it survives any crash of the process or the machine. Writers that wait at the same time share one flush of the
    /// log. With [`Recovery::LastCommit`] they wait for a commit instead.
    Sync,
}

/// What an opening finds after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// The last commit and the log behind it, up to its end: all that was acknowledged as durable, and what had reached the
    /// device of the rest, in its order. An opening reads what was written of the log since the last commit.
    #[default]
    ReplayLog,
    /// The last commit alone, as in the paper (`Tucana 2.2.3`). An opening replays no record of the log. Of a store that was
    /// written with [`ReplayLog`](Self::ReplayLog), it throws away what was durable in the log only.
    LastCommit,
}

/// Who commits, and collects dead records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maintenance {
    /// A thread of the store.
    #[default]
    Thread,
    /// The callers that write, when it is due; never because time has passed. Everything then follows from the calls:
    /// for tests.
    Callers,
}

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Memory for nodes and for what is read of the log, in bytes; 512 KiB at the least. Segments of the log in memory, 6 MiB
    /// in most cases, come on top. Default: 64 MiB. More: fewer reads, and fewer commits for want of frames.
    pub memory_bytes: usize,
    /// The longest that the volume may become, in bytes; rounded down to whole segments of 2 MiB. Default: 1 TiB. 16 MiB are the
    /// least that new data is taken in.
    pub volume_bytes_max: u64,
    /// The durability of [`put`](crate::Region::put) and [`delete`](crate::Region::delete). Default: `Buffered`.
    pub durability: Durability,
    /// What this opening finds if the store was not closed. Default: `ReplayLog`.
    pub recovery: Recovery,
    /// Who commits. Default: a thread.
    pub maintenance: Maintenance,
    /// The longest time from a write to the commit that contains it, if a thread commits. Default: 1 s. Longer: fewer copies
    /// of nodes that change all the time; more log to be replayed after a crash, and more writes that one loses if they are
    /// buffered.
    pub commit_interval: Duration,
    /// The most that is written to the log between two commits, in bytes. Default: 64 MiB. A store with little data commits
    /// more often, because records that no commit contains cannot be collected.
    pub commit_log_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            volume_bytes_max: 1 << 40,
            durability: Durability::default(),
            recovery: Recovery::default(),
            maintenance: Maintenance::default(),
            commit_interval: Duration::from_secs(1),
            commit_log_bytes: 64 << 20,
        }
    }
}

impl Options {
    pub(super) fn segments_max(&self) -> u32 {
        let segments = self.volume_bytes_max / SEGMENT_BYTES;
        segments.min(u64::from(VOLUME_SEGMENTS_MAX)) as u32
    }

    pub(super) fn mapping(&self, device: &Arc<dyn Device>) -> Result<Arc<Mapping>> {
        let volume_bytes_max = u64::from(self.segments_max()) * SEGMENT_BYTES;
        let options = MappingOptions::new(self.memory_bytes, volume_bytes_max);
        Ok(Arc::new(Mapping::new(Arc::clone(device), options)?))
    }
}
