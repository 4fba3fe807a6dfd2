//! Segments for the log, out of the volume.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{LogId, Result, SegmentId};
use kreon_sync::RankedMutex;

use kreon_log::{LogSpace, TakenSegment};
use kreon_volume::{Allocator, Purpose};

/// A write of some segments takes a few milliseconds.
const WRITING_NAP: Duration = Duration::from_micros(200);

/// The volume, as the log sees it.
pub struct VolumeSpace(pub Arc<RankedMutex<Allocator>>);

impl LogSpace for VolumeSpace {
    fn allocate_segments(
        &self,
        log: LogId,
        first_sequence: u64,
        count: usize,
        purpose: Purpose,
    ) -> Result<Vec<TakenSegment>> {
        // One lock for all: no checkpoint sees segments that are given back.
        let mut allocator = self.0.lock();
        // What is being written for logs can be had when that has ended: nobody is refused because of it.
        while allocator.is_writing() && !allocator.has_room(count as u32)? {
            drop(allocator);
            kreon_sync::sleep(WRITING_NAP);
            allocator = self.0.lock();
        }
        let mut taken = Vec::with_capacity(count);
        for sequence in first_sequence..first_sequence + count as u64 {
            match allocator.allocate_log_segment(log, sequence, purpose) {
                Ok(id) => taken.push(TakenSegment {
                    id,
                    was_written: allocator.was_written(id),
                }),
                Err(error) => {
                    for segment in taken {
                        allocator.give_up_log_segment(segment.id)?;
                    }
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    fn back(&self, segment: SegmentId, range: (u32, u32), purpose: Purpose) -> Result<u32> {
        self.0.lock().back_log(segment, range, purpose)
    }

    fn unback(&self, segment: SegmentId) -> Result<()> {
        self.0.lock().unback_named(segment)
    }
}
