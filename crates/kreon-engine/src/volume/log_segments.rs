//! What recovery finds out about segments of logs.

use kreon_base::{Error, LogId, Result, SegmentId};

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
}
