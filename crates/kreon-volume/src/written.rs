//! A stock of free segments that were written, for logs.
//!
//! A flush of a log segment that was written before need not make blocks of the file system durable. A segment that a log
//! has filled is such a segment when it becomes free. Where writers wait for small flushes all the time, a stock of these
//! is kept, and if it is too small, zeroes are written to further segments.
//!
//! Always true:
//! - A segment that is being written is withheld: durable as free, and not handed out before the write has ended.
//!   Zeroes therefore never overwrite anything written since.
//! - A log reads nothing into the former content of a segment: replay ends at zeroes, and old records are of another
//!   place in the log or of another run. A crash during the write needs no repair.
//! - Segments of the stock are free segments beyond the reserve. Every allocation can have them, and they are given back
//!   to the file system when no writer waits for flushes any more.

use kreon_base::{Result, SEGMENT_BYTES, SegmentId};

use super::segment::Segment;
use super::segments::Segments;
use super::tuning::WRITTEN_ROOM_SHARE;

/// What is known of the stock, beside the segments themselves.
#[derive(Default)]
pub struct WrittenStock {
    /// So many backed ones beyond the reserve are kept; 0: no stock is kept.
    pub kept_max: u32,
    /// Segments that are being written.
    pub writing: u32,
    /// Segments that were written ahead so far.
    pub written_ahead: u64,
}

impl WrittenStock {
    /// Keeps up to `segments`, but no more than a share of the room for new data.
    pub fn set_kept_max(&mut self, segments: u32, room_bytes: u64) {
        let room = room_bytes / SEGMENT_BYTES / WRITTEN_ROOM_SHARE;
        self.kept_max = segments.min(u32::try_from(room).unwrap_or(u32::MAX));
    }

    pub fn is_short(&self, table: &Segments, wanted: u32) -> bool {
        table.free_written() < wanted.min(self.kept_max).div_ceil(2)
    }

    /// Segments that are to be written until there are `wanted`, or as many as may be kept.
    pub fn missing(&self, table: &Segments, wanted: u32) -> u32 {
        let there = table.free_written() + self.writing;
        wanted.min(self.kept_max).saturating_sub(there)
    }

    /// Withholds up to `count` free segments to be written, the last ones of the volume.
    pub fn begin(&mut self, table: &mut Segments, count: u32) -> Result<Vec<SegmentId>> {
        let is_blank = |segment: &Segment| segment.is_backed && !segment.was_written;
        let blank = table.free().rev().filter(|(_, segment)| is_blank(segment));
        let mut ids: Vec<_> = blank.map(|(id, _)| id).take(count as usize).collect();
        ids.sort_unstable();
        for id in &ids {
            table.change(*id, Segment::withhold)?;
        }
        self.writing += ids.len() as u32;
        Ok(ids)
    }

    pub fn end(&mut self, table: &mut Segments, ids: &[SegmentId], is_done: bool) -> Result<()> {
        assert!(
            self.writing as usize >= ids.len(),
            "{} segments were written of {}",
            ids.len(),
            self.writing
        );
        for id in ids {
            self.writing -= 1;
            self.written_ahead += u64::from(is_done);
            table.change(*id, |segment| {
                segment.was_written = is_done;
                segment.readmit();
            })?;
        }
        Ok(())
    }

    /// The backed free segment that suits a log best, or anything else.
    pub fn best_free(&self, table: &Segments, for_log: bool) -> Option<SegmentId> {
        let backed = || table.free().filter(|(_, segment)| segment.is_backed);
        // Without a stock the lowest is taken, so that free segments gather at the end of the volume.
        let may_suit = self.kept_max > 0 && (!for_log || table.free_written() > 0);
        let best = may_suit
            .then(|| backed().find(|(_, segment)| segment.is_written() == for_log))
            .flatten();
        best.or_else(|| backed().next()).map(|(id, _)| id)
    }

    /// The backed free segment to be given back first: the last one, but a written one of a stock only if all are.
    pub fn worst_free(&self, table: &Segments) -> Option<SegmentId> {
        let last = |keeps_written: bool| {
            let mut free = table.free().rev();
            let found = free
                .find(|(_, segment)| segment.is_backed && !(keeps_written && segment.was_written));
            found.map(|(id, _)| id)
        };
        let unwritten = (self.kept_max > 0).then(|| last(true)).flatten();
        unwritten.or_else(|| last(false))
    }
}
