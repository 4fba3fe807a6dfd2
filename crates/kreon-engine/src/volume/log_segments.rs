//! Segments of logs: what recovery finds, and how they become free.

use kreon_base::{Error, LogId, Result, SEGMENT_BYTES, SegmentId};

use super::allocator::{Allocator, Usage};
use super::page_bits::PageBits;

impl Allocator {
    /// Takes the segment `id` for a log: recovery found it there behind the last checkpoint.
    ///
    /// # Errors
    /// `Corruption` if the checkpoint says that something else stands there.
    pub fn claim_log_segment(&mut self, id: SegmentId, log: LogId, sequence: u64) -> Result<()> {
        let usage = Usage::Log { log, sequence };
        if self.usage(id) == Some(usage) {
            return Ok(());
        }
        if self.usage(id) != Some(Usage::Free) {
            return Err(Error::corruption(format!(
                "{id} continues {log} as number {sequence}, but holds something else"
            )));
        }
        self.unindex(id);
        let segment = self.segment_mut(id)?;
        segment.usage = usage;
        segment.used = PageBits::ALL;
        segment.backed = true;
        self.mark_dirty(id);
        Ok(())
    }

    /// What the file system holds for a segment of the log that was never reached is not known.
    pub fn doubt(&mut self, id: SegmentId) -> Result<()> {
        self.unindex(id);
        let segment = self.segment_mut(id)?;
        (segment.backed, segment.front_bytes) = (false, SEGMENT_BYTES as u32);
        self.index(id);
        Ok(())
    }

    /// Frees a log segment that holds nothing.
    pub fn give_up_log_segment(&mut self, id: SegmentId) -> Result<()> {
        let segment = self.segment_mut(id)?;
        if segment.live_bytes != 0 {
            return Err(Error::corruption(format!(
                "{id} is not part of the log, but has live bytes"
            )));
        }
        segment.usage = Usage::Free;
        self.mark_dirty(id);
        self.reuse_segment(id)
    }

    /// Takes every segment of `log` before number `marker_sequence` that holds no live byte out of the
    /// next checkpoint, and returns them. They can be handed out after [`Self::reuse_segment`].
    pub fn retire_dead_log_segments(&mut self, log: LogId, marker_sequence: u64) -> Vec<SegmentId> {
        let mut retired = Vec::new();
        for (id, segment) in self.segments.iter_mut().enumerate() {
            let dead = matches!(segment.usage, Usage::Log { log: l, sequence }
                if l == log && sequence < marker_sequence)
                && segment.live_bytes == 0;
            if dead {
                segment.usage = Usage::Free;
                segment.retiring = true;
                segment.was_written = true;
                retired.push(SegmentId(id as u32));
            }
        }
        for &id in &retired {
            self.mark_dirty(id);
        }
        retired
    }

    /// Takes a log segment that was never written out of the next checkpoint. It can be handed out after
    /// [`Self::reuse_segment`], once that checkpoint is durable: until then a replay takes it for the log's.
    pub fn retire_log_segment(&mut self, id: SegmentId) -> Result<()> {
        let segment = self.segment_mut(id)?;
        (segment.usage, segment.retiring) = (Usage::Free, true);
        self.mark_dirty(id);
        Ok(())
    }

    /// Makes a retired segment available again.
    pub fn reuse_segment(&mut self, id: SegmentId) -> Result<()> {
        let segment = self.segment_mut(id)?;
        segment.retiring = false;
        segment.used = PageBits::default();
        self.index(id);
        Ok(())
    }
}
