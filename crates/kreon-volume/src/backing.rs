//! The length of the volume, and the blocks that the file system has for it.
//!
//! A segment is *backed* before it is written: the file system has blocks for all of it. A full disk therefore shows
//! when a segment is handed out, where it fails one write cleanly, and never while something that was acknowledged is on
//! its way to the device. Blocks that the device does not take back cost space and nothing else: the segment counts as
//! not backed, and is backed anew before it is used.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, PAGE_BYTES, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::Device;
use kreon_format::{GROUP_HEAD_PAGES, GROUP_SEGMENTS};

use super::segment::Segment;
use super::segments::Segments;
use super::tuning::{
    BACKED_RUN_SEGMENTS_MAX, BACKED_RUN_SHARE, GROW_SEGMENTS_MAX, GROW_SEGMENTS_MIN, GROW_SHARE,
    SPARE_SEGMENTS_MIN,
};

const HEAD_BYTES: u64 = GROUP_HEAD_PAGES * PAGE_BYTES as u64;

/// Backs the segments of one device.
pub struct SegmentBacking {
    device: Arc<dyn Device>,
    /// The volume never grows beyond so many segments.
    segments_max: u32,
    /// Backed free segments beyond the reserve that a trim keeps.
    pub spare_segments: u32,
    /// One call backs no more neighbours than this.
    run_segments_max: u32,
}

impl SegmentBacking {
    pub fn new(device: Arc<dyn Device>, segments_max: u32) -> Self {
        Self {
            device,
            segments_max,
            spare_segments: SPARE_SEGMENTS_MIN,
            run_segments_max: BACKED_RUN_SEGMENTS_MAX,
        }
    }

    pub fn set_spare(&mut self, segments: u32) {
        self.spare_segments = segments.max(SPARE_SEGMENTS_MIN);
    }

    pub fn set_run_max(&mut self, segments: u32) {
        self.run_segments_max = segments.clamp(1, BACKED_RUN_SEGMENTS_MAX);
    }

    /// Backs free segments, growing the volume where needed, until `wanted` are backed or the device is full. Any other
    /// failure of the device is an error.
    pub fn back_free(&self, segments: &mut Segments, wanted: u32) -> Result<()> {
        let run = segments.used_count() / BACKED_RUN_SHARE;
        self.back_free_by(segments, wanted, run.clamp(1, self.run_segments_max))
    }

    /// The same, with up to `run` neighbours in one call.
    pub fn back_free_by(&self, segments: &mut Segments, wanted: u32, run: u32) -> Result<()> {
        while segments.free_backed() < wanted {
            let bare = segments.free().find(|(_, segment)| !segment.is_backed);
            let is_room = match bare.map(|(id, _)| id) {
                Some(id) => self.back(segments, id, run)?,
                None => self.grow(segments)?,
            };
            if !is_room {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the device had room for the segment. Backs up to `run` neighbours behind it in the same call.
    fn back(&self, segments: &mut Segments, id: SegmentId, run: u32) -> Result<bool> {
        let is_bare = |id: &SegmentId| {
            let segment = segments.get(*id);
            segment.is_some_and(|segment| segment.is_available() && !segment.is_backed)
        };
        let run = (id.0..id.0 + run).map(SegmentId).take_while(is_bare);
        let run = run.count() as u32;
        for count in [run, 1] {
            let len_bytes = u64::from(count) * SEGMENT_BYTES;
            if has_room(self.device.allocate(id.offset_bytes(), len_bytes))? {
                for id in (id.0..id.0 + count).map(SegmentId) {
                    segments.change(id, |segment| {
                        segment.is_backed = true;
                        segment.front_bytes = 0;
                    })?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the volume could be made longer.
    pub fn grow(&self, segments: &mut Segments) -> Result<bool> {
        let old = segments.count();
        let more = (old / GROW_SHARE).clamp(GROW_SEGMENTS_MIN, GROW_SEGMENTS_MAX);
        let new = u64::from(old + more).min(self.fitting_segments()) as u32;
        if new <= old {
            return Ok(false);
        }
        let len_bytes = u64::from(new) * SEGMENT_BYTES;
        if self.device.len_bytes() < len_bytes && !has_room(self.device.grow(len_bytes))? {
            return Ok(false);
        }
        let is_extended = has_room(self.extend_to(segments, new))?;
        Ok(is_extended || segments.count() > old)
    }

    pub fn extend_to(&self, segments: &mut Segments, count: u32) -> Result<()> {
        while segments.count() < count {
            let id = SegmentId(segments.count());
            if (id.0 as usize).is_multiple_of(GROUP_SEGMENTS) {
                self.device.allocate(id.offset_bytes(), SEGMENT_BYTES)?;
            }
            segments.add();
        }
        Ok(())
    }

    fn fitting_segments(&self) -> u64 {
        (self.device.len_bytes_max() / SEGMENT_BYTES).min(u64::from(self.segments_max))
    }

    /// Gives the blocks of the segment back.
    pub fn unback(&self, segments: &mut Segments, id: SegmentId) -> Result<()> {
        self.discard(id, 0);
        segments.change(id, |segment| {
            segment.set_front_only(0);
            segment.was_written = false;
        })
    }

    pub fn unback_behind(&self, segments: &mut Segments, id: SegmentId, end: u32) -> Result<()> {
        let end = u64::from(end).next_multiple_of(PAGE_BYTES as u64);
        if end >= SEGMENT_BYTES {
            return Ok(());
        }
        self.discard(id, end);
        segments.change(id, |segment| segment.set_front_only(end as u32))
    }

    /// Gives the blocks back of up to `most` free segments that may have some and do not count as backed.
    pub fn unback_doubtful(&self, segments: &mut Segments, most: usize) -> Result<()> {
        let is_doubtful = |segment: &Segment| !segment.is_backed && segment.front_bytes > 0;
        let doubtful = segments
            .free()
            .rev()
            .filter(|(_, segment)| is_doubtful(segment));
        let doubtful: Vec<_> = doubtful.map(|(id, _)| id).take(most).collect();
        for id in doubtful {
            self.unback(segments, id)?;
        }
        Ok(())
    }

    /// Gives the blocks behind the heads of groups back, but in the first group, where nothing else is in use.
    pub fn unback_heads(&self, segments: &mut Segments) -> Result<()> {
        let heads = segments.group_heads().skip(1);
        let alone = heads.filter(|(_, segment)| segment.is_backed && segment.is_head_alone());
        let alone: Vec<_> = alone.map(|(id, _)| id).collect();
        for id in alone {
            self.discard(id, HEAD_BYTES);
            segments.change(id, |segment| segment.is_backed = false)?;
        }
        Ok(())
    }

    /// Backs the pages behind the head of a group; `None` if all of them are backed, or the device is full.
    pub fn back_a_head(&self, segments: &mut Segments) -> Result<Option<SegmentId>> {
        let bare = segments
            .group_heads()
            .find(|(_, segment)| !segment.is_backed);
        let Some(id) = bare.map(|(id, _)| id) else {
            return Ok(None);
        };
        let is_backed = self.back_taken(segments, id)?;
        Ok(is_backed.then_some(id))
    }

    /// Backs a segment that is in use; whether the device had room.
    pub fn back_taken(&self, segments: &mut Segments, id: SegmentId) -> Result<bool> {
        let has_room = has_room(self.device.allocate(id.offset_bytes(), SEGMENT_BYTES))?;
        if has_room {
            segments.change(id, |segment| segment.is_backed = true)?;
        }
        Ok(has_room)
    }

    /// Backs the first `bytes` of a log segment that is not backed as a whole.
    pub fn back_front(&self, segments: &mut Segments, id: SegmentId, bytes: u32) -> Result<()> {
        if segments.get(id).is_some_and(|s| !s.is_backed) {
            self.device.allocate(id.offset_bytes(), u64::from(bytes))?;
        }
        segments.change(id, |segment| segment.front_bytes = bytes)
    }

    /// Bytes that free segments and the growth of the volume make up, as far as the file system has blocks for them.
    pub fn room_bytes(&self, segments: &Segments) -> u64 {
        let new = self
            .fitting_segments()
            .saturating_sub(u64::from(segments.count()));
        let bare = u64::from(segments.free_count() - segments.free_backed()) + new;
        let free_bytes = self.device.free_bytes().unwrap_or(u64::MAX);
        u64::from(segments.free_backed()) * SEGMENT_BYTES + (bare * SEGMENT_BYTES).min(free_bytes)
    }

    /// Gives the blocks of the segment from byte `from` on back, if the device takes them.
    fn discard(&self, id: SegmentId, from: u64) {
        let at = id.offset_bytes() + from;
        if let Err(error) = self.device.discard(at, SEGMENT_BYTES - from) {
            tracing::warn!(%error, %id, "giving space back to the file system failed");
        }
    }
}

/// A device without room is no error.
fn has_room(outcome: Result<()>) -> Result<bool> {
    let is_full = |error: &Error| error.kind() == ErrorKind::OutOfSpace;
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if is_full(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
