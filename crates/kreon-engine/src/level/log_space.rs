//! Segments for the log, out of the volume.

use std::sync::Arc;

use kreon_base::{LogId, Result, SegmentId};
use parking_lot::Mutex;

use crate::log::LogSpace;
use crate::volume::{Allocator, Purpose, Usage};

/// The volume, as the log sees it.
pub struct VolumeSpace(pub Arc<Mutex<Allocator>>);

impl LogSpace for VolumeSpace {
    fn allocate_segment(&self, log: LogId, sequence: u64, purpose: Purpose) -> Result<SegmentId> {
        self.0
            .lock()
            .allocate_segment(Usage::Log { log, sequence }, purpose)
    }
}
