//! What a log stands on: device, space, identity, settings.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Incarnation, LogId, Result, SegmentId};
use kreon_device::{BLOCK_BYTES_MAX, Backing, Device};
use kreon_format::{FragmentSeal, StoreId, incarnation_mark};
use kreon_volume::Purpose;

use super::cut::SEGMENT;
use super::mirror::{Elsewhere, LogMirror};
use super::pages::WrittenPages;

/// A segment that a log was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenSegment {
    /// Which.
    pub id: SegmentId,
    /// All of it was written since it was backed. Only a hint: a wrong one makes flushes slower.
    pub was_written: bool,
}

/// Where a log gets its segments from.
pub trait LogSpace: Send + Sync {
    /// Takes `count` segments that will be the numbers from `first_sequence` on of `log`: all or none.
    /// What [`back`](Self::back) has allowed can be written without running out of space.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed.
    fn allocate_segments(
        &self,
        log: LogId,
        first_sequence: u64,
        count: usize,
        purpose: Purpose,
    ) -> Result<Vec<TakenSegment>>;

    /// Makes sure that `segment`, which may be written up to the first position of `range`, may be written up to the second.
    /// Returns up to where it may be written now.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed.
    fn back(&self, segment: SegmentId, range: (u32, u32), purpose: Purpose) -> Result<u32> {
        let _ = (segment, range, purpose);
        Ok(SEGMENT)
    }

    /// Gives back the blocks of a segment that was not written; it remains the log's.
    ///
    /// # Errors
    /// `Corruption`: there is no such segment.
    fn unback(&self, segment: SegmentId) -> Result<()> {
        let _ = segment;
        Ok(())
    }
}

/// What a log stands on.
#[derive(Clone)]
pub struct LogHome {
    /// The device under the volume.
    pub device: Arc<dyn Device>,
    /// Takes the writes and flushes of the log, without its moved records; the same bytes as `device`. `None`: `device`
    /// does.
    pub log_device: Option<Arc<dyn Device>>,
    /// Who else holds the log.
    pub mirror: Option<Arc<dyn LogMirror>>,
    /// Gives segments.
    pub space: Arc<dyn LogSpace>,
    /// Keeps what was written.
    pub pages: Arc<dyn WrittenPages>,
    /// The store, in every checksum.
    pub store: StoreId,
    /// Number of the log.
    pub log: LogId,
    /// This run of the store.
    pub incarnation: Incarnation,
}

impl LogHome {
    /// Takes the writes and flushes of the log.
    pub(super) fn log_device(&self) -> Arc<dyn Device> {
        Arc::clone(self.log_device.as_ref().unwrap_or(&self.device))
    }

    /// The mirror, or none.
    pub(super) fn elsewhere(&self) -> Elsewhere {
        Elsewhere::new(self.mirror.as_ref())
    }

    /// The unit of writing. With a mirror the largest that any device has: what a flush pads here ends on the border of a
    /// block of every member.
    pub(super) fn block_bytes(&self) -> u32 {
        match self.mirror {
            Some(_) => BLOCK_BYTES_MAX,
            None => self.log_device().block_bytes(),
        }
    }

    /// What the checksums of fragments in the segment `sequence` are seeded with.
    pub(super) fn seal(&self, sequence: u64) -> FragmentSeal {
        FragmentSeal {
            store: self.store,
            sequence,
        }
    }

    /// The bits of this run's incarnation that fragments carry.
    pub(super) fn mark(&self) -> u16 {
        incarnation_mark(self.incarnation)
    }
}

/// Settings of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Most segments in memory, 2 MiB each; 2 at the least.
    pub buffers_max: usize,
    /// Records that are older than this are written to the device by
    /// [`write_out_step`](super::Log::write_out_step), so that a killed process loses little.
    pub age_max: Duration,
    /// When a segment in memory becomes real.
    pub backing: Backing,
    /// Whether records are verified whenever they are read. If not, they are verified when they come from the device, and
    /// never while they are in memory since they were appended.
    pub verifies_every_read: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            buffers_max: 8,
            age_max: Duration::from_millis(100),
            backing: Backing::Ahead,
            verifies_every_read: false,
        }
    }
}
