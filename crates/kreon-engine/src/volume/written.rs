//! Free segments whose blocks were written: flushes of a log that goes there need not make blocks durable.
//!
//! A segment that a log has filled is one when it comes back. Where writers wait for small flushes all the time, some are
//! kept, and if there are too few, zeroes are written to others. These belong to nobody meanwhile: the durable bitmap says
//! that they are free, and nobody is given them before the write has ended. So no zero lands where anything else was
//! written since, and a crash leaves free segments with zeroes, or with what stood there before. A log gives no meaning
//! to either when it gets such a segment: zeroes are where a replay ends, and what was left behind is of another place in
//! the log, or of another run.
//!
//! They are segments of the stock beyond the reserve as any others: whoever needs a segment gets them, and they are
//! given back to the file system when nobody waits for flushes any more.

use kreon_base::{Result, SegmentId};

use super::allocator::Allocator;
use super::free_space::RUN_SEGMENTS_MAX;

/// The stock takes this part of the room that new data has, at the most.
const ROOM_SHARE: u64 = 8;

/// How many there are.
#[derive(Default)]
pub(super) struct Written {
    /// Segments that can be handed out and were written.
    pub free: u32,
    /// So many backed ones beyond the reserve are kept.
    pub stock: u32,
    /// Segments that are being written.
    writing: u32,
    /// Segments that were written ahead so far.
    count: u64,
}

impl Allocator {
    /// Keeps up to `segments` free ones that were written, but no more than a share of the room that there is.
    pub fn set_written_stock(&mut self, segments: u32) {
        let room = self.room_bytes() / kreon_base::SEGMENT_BYTES / ROOM_SHARE;
        self.written.stock = segments.min(u32::try_from(room).unwrap_or(u32::MAX));
    }

    /// Free segments that were written.
    pub fn free_written(&self) -> u32 {
        self.written.free
    }

    /// Whether less than half of `wanted`, or of what may be kept, is there.
    pub fn is_short_of_written(&self, wanted: u32) -> bool {
        self.written.free < wanted.min(self.written.stock).div_ceil(2)
    }

    /// Takes up to `most` free segments to be written, neighbours if there are any, until `wanted` of the stock were.
    /// Backs some for that, but takes none of the reserve. [`Self::end_writing`] follows.
    ///
    /// # Errors
    /// `Io` of the device. A lack of space is none: there are fewer then.
    pub fn begin_writing(&mut self, wanted: u32, most: u32) -> Result<Vec<SegmentId>> {
        let missing = wanted.min(self.written.stock);
        let missing = missing.saturating_sub(self.written.free + self.written.writing);
        if missing == 0 {
            return Ok(Vec::new());
        }
        let reserve = self.reserve_segments();
        // All at once: the file system stops transfers while it reserves blocks.
        let wanted = reserve.saturating_add(self.written.free + missing);
        let bare = wanted.saturating_sub(self.free_backed);
        self.back_free_segments_by(wanted, bare.clamp(1, RUN_SEGMENTS_MAX))?;
        let beyond = self.free_backed.saturating_sub(reserve);
        let count = missing.min(most).min(beyond) as usize;
        let is_bare = |id: &&u32| {
            let segment = self.segments.get(**id as usize);
            segment.is_some_and(|segment| segment.backed && !segment.was_written)
        };
        let mut ids: Vec<_> = self.free.iter().rev().filter(is_bare).take(count).collect();
        ids.sort_unstable();
        let ids: Vec<_> = ids.into_iter().copied().map(SegmentId).collect();
        for id in &ids {
            self.unindex(*id);
            self.segment_mut(*id)?.retiring = true;
        }
        self.written.writing += ids.len() as u32;
        Ok(ids)
    }

    /// Nobody writes to the segments any more; all of them were written if `is_done`.
    pub fn end_writing(&mut self, ids: &[SegmentId], is_done: bool) -> Result<()> {
        for id in ids {
            self.segment_mut(*id)?.was_written = is_done;
            self.written.count += u64::from(is_done);
            self.written.writing = self.written.writing.saturating_sub(1);
            self.reuse_segment(*id)?;
        }
        Ok(())
    }

    /// Segments that were written ahead so far.
    pub fn written_ahead(&self) -> u64 {
        self.written.count
    }

    /// Whether segments are being written: they can be had soon.
    pub fn is_writing(&self) -> bool {
        self.written.writing > 0
    }

    /// The free segment that suits a log best, or anything else.
    pub(super) fn best_free_segment(&self, for_log: bool) -> Option<SegmentId> {
        let backed = || {
            let ids = self
                .free
                .iter()
                .map(|id| (*id, self.segments.get(*id as usize)));
            ids.filter_map(|(id, segment)| segment.filter(|s| s.backed).map(|s| (id, s)))
        };
        // Without a stock the lowest comes first, so that what is free is at the end.
        let wants_written = (self.written.stock > 0).then_some(for_log);
        let suits = |is_written: bool| wants_written.is_none_or(|wanted| wanted == is_written);
        let may_suit = self.written.free > 0 || wants_written != Some(true);
        let best = may_suit
            .then(|| backed().find(|(_, segment)| suits(segment.is_written())))
            .flatten();
        best.or_else(|| backed().next())
            .map(|(id, _)| SegmentId(id))
    }

    /// The free segment to be given back first: the last one, but one that was written only if all were.
    pub(super) fn worst_free_segment(&self) -> Option<SegmentId> {
        let backed = |keeps_written: bool| {
            let mut ids = self.free.iter().rev();
            ids.find(|id| {
                let segment = self.segments.get(**id as usize);
                segment.is_some_and(|s| s.backed && !(keeps_written && s.was_written))
            })
        };
        let first = (self.written.stock > 0).then(|| backed(true)).flatten();
        first.or_else(|| backed(false)).copied().map(SegmentId)
    }
}
