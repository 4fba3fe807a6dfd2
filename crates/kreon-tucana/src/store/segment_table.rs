//! Which segments of the volume are the log's, and where their records are read.

use std::sync::Arc;

use kreon_base::SegmentId;
use kreon_sync::RwLock;

use super::log_buffer::LogBuffer;

/// The segments of both logs.
#[derive(Default)]
pub(super) struct SegmentTable(RwLock<Known>);

#[derive(Default)]
struct Known {
    /// By segment number; 0: not one of a log.
    sequences: Vec<u64>,
    /// Those that are not on the device as a whole.
    buffered: Vec<Arc<LogBuffer>>,
    count: u64,
}

/// Where records of a segment are read.
pub(super) enum Site {
    Memory(Arc<LogBuffer>),
    /// On the device; the number of the segment in its log.
    Device(u64),
}

impl Known {
    fn set(&mut self, segment: SegmentId, sequence: u64) {
        let at = segment.0 as usize;
        if self.sequences.len() <= at {
            self.sequences.resize(at + 1, 0);
        }
        self.count += u64::from(self.sequences[at] == 0);
        self.sequences[at] = sequence;
    }

    fn sequence(&self, segment: SegmentId) -> Option<u64> {
        let found = self.sequences.get(segment.0 as usize).copied();
        found.filter(|sequence| *sequence > 0)
    }
}

impl SegmentTable {
    /// A segment that is on the device.
    pub(super) fn add_written(&self, segment: SegmentId, sequence: u64) {
        self.0.write().set(segment, sequence);
    }

    /// A segment in memory.
    pub(super) fn add(&self, buffer: &Arc<LogBuffer>) {
        let mut known = self.0.write();
        known.set(buffer.segment, buffer.sequence);
        known.buffered.push(Arc::clone(buffer));
    }

    /// All of the segment is on the device.
    pub(super) fn written(&self, buffer: &Arc<LogBuffer>) {
        let mut known = self.0.write();
        known.buffered.retain(|other| !Arc::ptr_eq(other, buffer));
    }

    /// Nobody reaches a record of the segment any more.
    pub(super) fn remove(&self, segment: SegmentId) {
        let mut known = self.0.write();
        if let Some(sequence) = known.sequences.get_mut(segment.0 as usize)
            && *sequence > 0
        {
            *sequence = 0;
            known.count -= 1;
        }
    }

    /// The number of the segment in its log.
    pub(super) fn sequence(&self, segment: SegmentId) -> Option<u64> {
        self.0.read().sequence(segment)
    }

    /// Segments of both logs, those in reserve left out.
    pub(super) fn count(&self) -> u64 {
        self.0.read().count
    }

    pub(super) fn site(&self, segment: SegmentId) -> Option<Site> {
        let known = self.0.read();
        let sequence = known.sequence(segment)?;
        let mut buffered = known.buffered.iter();
        Some(match buffered.find(|buffer| buffer.segment == segment) {
            Some(buffer) => Site::Memory(Arc::clone(buffer)),
            None => Site::Device(sequence),
        })
    }
}
