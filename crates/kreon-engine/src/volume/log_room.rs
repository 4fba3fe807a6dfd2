//! Room in the segments of the log.
//!
//! A small store backs only the front of its first log segment, and names the next one without backing it: both would be
//! most of what it takes. Half of the front is for new data, the rest for the deletions of that. When it needs more, the
//! store is no longer *small*: the segment is backed as a whole, and the reserve gets its least size.

use kreon_base::{LogId, PAGE_BYTES, Result, SEGMENT_BYTES, SegmentId};

use kreon_format::MOVED_SEQUENCE_MIN;

use super::allocator::{Allocator, Purpose, Usage};
use super::reserve::out_of_space_for;

/// The part of the front that new data may fill.
const FRONT_BYTES: u32 = 256 << 10;

/// The least that is granted beside what is asked for.
const GRANT_BYTES_MIN: u32 = 16 << 10;

/// A store that is opened with more segments in use is not small: group head, log, and the segment that the log names.
const SMALL_SEGMENTS: u32 = 3;

const SEGMENT: u32 = SEGMENT_BYTES as u32;

impl Allocator {
    /// Takes the segment number `sequence` of `log`. That of a small store may not be backed.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn allocate_log_segment(
        &mut self,
        log: LogId,
        sequence: u64,
        purpose: Purpose,
    ) -> Result<SegmentId> {
        let usage = Usage::Log { log, sequence };
        let is_named_only = self.is_small && sequence < MOVED_SEQUENCE_MIN;
        if !is_named_only || (self.free.is_empty() && !self.grow()?) {
            return self.allocate_segment(usage, purpose);
        }
        match self.free.first().copied().map(SegmentId) {
            Some(id) => self.take_segment(id, usage).map(|()| id),
            None => self.allocate_segment(usage, purpose),
        }
    }

    /// Makes sure that the log may write the segment `id` up to `needed`; it was allowed to up to `from`. Returns up to
    /// where it may write now.
    ///
    /// # Errors
    /// `OutOfSpace`: it may write what it might before.
    pub fn back_log(
        &mut self,
        id: SegmentId,
        (from, needed): (u32, u32),
        purpose: Purpose,
    ) -> Result<u32> {
        let front = self.segment_mut(id)?.front_bytes;
        let is_for_front = self.is_small && needed <= FRONT_BYTES;
        if is_for_front && front < 2 * FRONT_BYTES {
            self.back_front(id, 2 * FRONT_BYTES)?;
        }
        if is_for_front {
            let granted = self.grant(u64::from(FRONT_BYTES.saturating_sub(from)), purpose);
            if granted.is_ok() || purpose != Purpose::Delete {
                return granted.map(|()| FRONT_BYTES);
            }
        }
        if purpose == Purpose::Delete && needed <= front {
            return Ok(needed.next_multiple_of(PAGE_BYTES as u32));
        }
        self.is_small = false;
        let more = (self.grant_bytes() as u32).max(GRANT_BYTES_MIN);
        // Whole blocks of the device: the end of the log is padded to those.
        let plenty = needed
            .saturating_add(more)
            .next_multiple_of(GRANT_BYTES_MIN);
        let plenty = match plenty.saturating_add(more) {
            upto if upto < SEGMENT => plenty,
            _ => SEGMENT,
        };
        let least = needed.next_multiple_of(PAGE_BYTES as u32).min(SEGMENT);
        let mut upto = plenty.max(least);
        // New data may fill what a deletion is granted: no more of it than must be.
        let purpose_of_plenty = match purpose {
            Purpose::Delete => Purpose::Put,
            other => other,
        };
        if let Err(error) = self.grant(u64::from(upto.saturating_sub(from)), purpose_of_plenty) {
            if least == upto && purpose != Purpose::Delete {
                return Err(error);
            }
            upto = least;
            let granted = self.grant(u64::from(upto.saturating_sub(from)), purpose);
            // The rest of a segment that has its blocks is never refused to deletions.
            if purpose != Purpose::Delete || !self.segment_mut(id)?.backed {
                granted?;
            }
        }
        self.back_whole(id, purpose)?;
        Ok(upto)
    }

    fn back_front(&mut self, id: SegmentId, bytes: u32) -> Result<()> {
        if !self.segment_mut(id)?.backed {
            self.device.allocate(id.offset_bytes(), u64::from(bytes))?;
        }
        self.segment_mut(id)?.front_bytes = bytes;
        Ok(())
    }

    /// A deletion may give the blocks of a segment of the reserve for it.
    fn back_whole(&mut self, id: SegmentId, purpose: Purpose) -> Result<()> {
        if self.segment_mut(id)?.backed {
            return Ok(());
        }
        let mut outcome = self.device.allocate(id.offset_bytes(), SEGMENT_BYTES);
        let is_full = |outcome: &Result<()>| outcome.as_ref().is_err_and(super::is_out_of_space);
        if is_full(&outcome) && self.free_backed > self.untouchable(purpose) {
            self.unback_worst()?;
            outcome = self.device.allocate(id.offset_bytes(), SEGMENT_BYTES);
        }
        if is_full(&outcome) {
            return Err(out_of_space_for(purpose));
        }
        outcome?;
        self.segment_mut(id)?.backed = true;
        Ok(())
    }

    /// After a load: the segments `named` by the log may have no blocks, the `last` one, which it was written up to `end`,
    /// those of its front only, and a store with few segments is small.
    pub fn settle_log_end(
        &mut self,
        named: &[SegmentId],
        (last, end): (Option<SegmentId>, u32),
    ) -> Result<()> {
        for id in named {
            self.doubt(*id)?;
            self.segment_mut(*id)?.front_bytes = 0;
        }
        if let Some(last) = last
            && end <= 2 * FRONT_BYTES
        {
            let segment = self.segment_mut(last)?;
            (segment.backed, segment.front_bytes) = (false, 2 * FRONT_BYTES);
        }
        self.is_small = self.used_segments() <= SMALL_SEGMENTS;
        Ok(())
    }

    /// Gives the blocks of a segment back that the log has named and not written: it is backed anew before that.
    pub fn unback_named(&mut self, id: SegmentId) -> Result<()> {
        self.give_blocks_back(id);
        let segment = self.segment_mut(id)?;
        (segment.backed, segment.front_bytes) = (false, 0);
        (segment.was_written) = false;
        Ok(())
    }

    /// Gives the blocks of a segment of moved records behind `end` back: nothing more comes there.
    pub fn cut_tail(&mut self, id: SegmentId, end: u32) -> Result<()> {
        let end = end.next_multiple_of(PAGE_BYTES as u32).min(SEGMENT);
        if end == SEGMENT {
            return Ok(());
        }
        let at = id.offset_bytes() + u64::from(end);
        if let Err(error) = self.device.discard(at, u64::from(SEGMENT - end)) {
            tracing::warn!(%error, %id, "giving space back to the file system failed");
        }
        let segment = self.segment_mut(id)?;
        (segment.backed, segment.front_bytes) = (false, end);
        Ok(())
    }
}
