//! Segments of the volume for the log.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{LogId, Result, SegmentId};
use kreon_sync::RankedMutex;

use kreon_log::{LogSpace, TakenSegment};
use kreon_volume::{Allocator, Purpose};

/// Sleep between checks for segments being written ahead, which takes a few milliseconds.
const WRITING_NAP: Duration = Duration::from_micros(200);

/// The allocator, as the log uses it.
pub struct VolumeSpace(pub Arc<RankedMutex<Allocator>>);

impl LogSpace for VolumeSpace {
    fn allocate_segments(
        &self,
        log: LogId,
        first_sequence: u64,
        count: usize,
        purpose: Purpose,
    ) -> Result<Vec<TakenSegment>> {
        // All allocations happen under one lock, so no checkpoint sees segments that are given up after a failure.
        let mut allocator = self.0.lock();
        // Segments being written ahead are free again soon, so wait for them instead of failing.
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
