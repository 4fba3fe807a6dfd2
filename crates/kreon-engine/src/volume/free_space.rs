//! Growth of the volume, backing of its segments, and the reserve.
//!
//! A segment is *backed* before it is written: the file system has blocks for it. So a full disk shows
//! when a segment is handed out, where it fails one write cleanly, and never while something that was
//! acknowledged is on its way to the device. The [reserve](super::reserve) is a stock of backed free segments that only
//! deletions and upkeep may touch, so that a full store can still spill, checkpoint and delete. Unused pages of tree
//! segments are part of the reserve: upkeep takes them first.

use kreon_base::{ErrorKind, PAGE_BYTES, Result, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId};
use kreon_format::{GROUP_HEAD_PAGES, GROUP_SEGMENTS};

use super::allocator::{Allocator, Purpose, Segment, Usage};
use super::reserve::{out_of_space, out_of_space_for};

/// A file grows by a quarter of its segments, within these bounds (up to 64 MiB of address space; sparse).
const GROW_SEGMENTS: (u32, u32) = (4, 32);

/// A trim gives the blocks of so many segments back that an earlier run may have left some in.
const DOUBTFUL_AT_ONCE: usize = 64;

/// See [`Allocator::set_spare`].
pub(super) const SPARE_SEGMENTS_MIN: u32 = 2;

/// Of the segments of a volume, how many are used for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// All.
    pub segments: u32,
    /// Those that can be handed out.
    pub free: u32,
    /// Of these, those that the file system holds blocks for.
    pub free_backed: u32,
    /// Free ones that new data may not use.
    pub reserve: u32,
    /// Live bytes of all log segments.
    pub log_live_bytes: u64,
    /// Bytes of the device that the volume has blocks for.
    pub taken_bytes: u64,
    /// Bytes of the reserve that are neither for nodes nor for L0s.
    pub fixed_reserve_bytes: u64,
}

/// A call backs up to so many segments that follow each other, but no more than an eighth of the volume has: the file
/// system stops all transfers to a file while it works on it.
pub(super) const RUN_SEGMENTS_MAX: u32 = 16;

impl Allocator {
    /// How many backed free segments beyond the reserve are kept when segments become free, some at the least; the rest
    /// gives its blocks back to the file system. No call backs more than `run` together.
    pub fn set_spare(&mut self, segments: u32, run: u32) {
        self.spare_segments = segments.max(SPARE_SEGMENTS_MIN);
        self.run_segments_max = run.clamp(1, RUN_SEGMENTS_MAX);
    }

    /// Takes a backed free segment out of the stock: for a log one that was written, for anything else rather not.
    pub(super) fn take_free_segment(
        &mut self,
        purpose: Purpose,
        for_log: bool,
    ) -> Result<SegmentId> {
        let untouchable = self.untouchable(purpose);
        if self.free_backed <= untouchable {
            self.back_free_segments(untouchable + 1)?;
        }
        if self.free_backed <= untouchable {
            return Err(out_of_space_for(purpose));
        }
        self.best_free_segment(for_log)
            .ok_or_else(|| out_of_space("a segment"))
    }

    /// Backs free segments, growing the volume where needed, until `wanted` are in stock or the
    /// device is full. Any other failure of the device is an error.
    pub(super) fn back_free_segments(&mut self, wanted: u32) -> Result<()> {
        self.back_free_segments_by(wanted, self.run_segments())
    }

    /// The same, up to `run` together.
    pub(super) fn back_free_segments_by(&mut self, wanted: u32, run: u32) -> Result<()> {
        while self.free_backed < wanted {
            let bare = self
                .free
                .iter()
                .find(|id| !self.segments[**id as usize].backed)
                .copied();
            match bare {
                Some(id) => {
                    if !self.back(SegmentId(id), run)? {
                        return Ok(());
                    }
                }
                None => {
                    if !self.grow()? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the device could back the segment. Backs some behind it, too, where there is room.
    fn back(&mut self, id: SegmentId, run: u32) -> Result<bool> {
        let is_bare = |id: &u32| self.free.contains(id) && !self.segments[*id as usize].backed;
        let run = (id.0..id.0 + run).take_while(is_bare);
        let run = run.count() as u64;
        for segments in [run, 1] {
            match self
                .device
                .allocate(id.offset_bytes(), segments * SEGMENT_BYTES)
            {
                Ok(()) => {
                    for id in (id.0..id.0 + segments as u32).map(SegmentId) {
                        self.unindex(id);
                        let segment = self.segment_mut(id)?;
                        (segment.backed, segment.front_bytes) = (true, 0);
                        self.index(id);
                    }
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// So many segments are backed together.
    fn run_segments(&self) -> u32 {
        (self.used_segments() / 8).clamp(1, self.run_segments_max)
    }

    /// Whether the volume could be made longer.
    pub(super) fn grow(&mut self) -> Result<bool> {
        let old = self.segment_count();
        let fit = (self.device.len_bytes_max() / SEGMENT_BYTES).min(u64::from(self.segments_max));
        let more = (old / 4).clamp(GROW_SEGMENTS.0, GROW_SEGMENTS.1);
        let new = u64::from(old + more).min(fit) as u32;
        if new <= old {
            return Ok(false);
        }
        let len_bytes = u64::from(new) * SEGMENT_BYTES;
        if self.device.len_bytes() < len_bytes {
            match self.device.grow(len_bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::OutOfSpace => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        match self.extend_to(new) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::OutOfSpace => Ok(self.segment_count() > old),
            Err(error) => Err(error),
        }
    }

    /// Makes the allocator know `segments` segments. Heads of new groups are backed at once: a
    /// checkpoint writes them.
    pub fn extend_to(&mut self, segments: u32) -> Result<()> {
        while self.segment_count() < segments {
            let id = SegmentId(self.segment_count());
            if (id.0 as usize).is_multiple_of(kreon_format::GROUP_SEGMENTS) {
                self.device.allocate(id.offset_bytes(), SEGMENT_BYTES)?;
            }
            self.add_segment();
        }
        Ok(())
    }

    /// Gives the blocks of free segments back to the file system, but for a stock of spare ones. As
    /// well as that goes: what is free stays free if the device refuses.
    pub fn trim(&mut self) -> Result<()> {
        let spare = self.spare_segments.max(self.written.stock);
        let keep = self.reserve_segments().saturating_add(spare);
        while self.free_backed > keep && self.unback_worst()? {}
        self.drop_doubtful(DOUBTFUL_AT_ONCE)
    }

    /// Gives the blocks of free segments back that may have some and do not count as backed, of `most` of them.
    fn drop_doubtful(&mut self, most: usize) -> Result<()> {
        let is_doubtful = |id: &&u32| {
            let segment = &self.segments[**id as usize];
            !segment.backed && segment.front_bytes > 0
        };
        let doubtful = self.free.iter().rev().filter(is_doubtful).take(most);
        let doubtful: Vec<_> = doubtful.copied().collect();
        for id in doubtful.into_iter().map(SegmentId) {
            self.unback_named(id)?;
        }
        Ok(())
    }

    /// Gives the blocks of the backed free segment back that is worth least; whether there was one.
    pub(super) fn unback_worst(&mut self) -> Result<bool> {
        let Some(id) = self.worst_free_segment() else {
            return Ok(false);
        };
        self.unindex(id);
        self.unback_named(id)?;
        self.index(id);
        Ok(true)
    }

    /// A segment that was not given back, or half, is free all the same: it is backed anew before it is used.
    pub(super) fn give_blocks_back(&self, id: SegmentId) {
        if let Err(error) = self.device.discard(id.offset_bytes(), SEGMENT_BYTES) {
            tracing::warn!(%error, %id, "giving space back to the file system failed");
        }
    }

    /// Gives the blocks of heads of groups back but for the heads, where nothing else is in use, and keeps no spare
    /// segment: the store was made as small as it gets.
    pub fn trim_all(&mut self) -> Result<()> {
        let spare = std::mem::take(&mut self.spare_segments);
        self.written.stock = 0;
        let outcome = self.trim().and_then(|()| self.drop_doubtful(usize::MAX));
        let outcome = outcome.and_then(|()| self.trim_heads());
        self.spare_segments = spare;
        // What was given back may have been part of the reserve.
        self.back_free_segments(self.reserve_segments())?;
        outcome
    }

    fn trim_heads(&mut self) -> Result<()> {
        let head_bytes = GROUP_HEAD_PAGES * PAGE_BYTES as u64;
        for id in (GROUP_SEGMENTS..self.segments.len()).step_by(GROUP_SEGMENTS) {
            let id = SegmentId(id as u32);
            let segment = self.segment_mut(id)?;
            let is_head_alone = segment.used.gaps() == SEGMENT_PAGES - GROUP_HEAD_PAGES;
            if !segment.backed || segment.usage != Usage::Tree || !is_head_alone {
                continue;
            }
            let (at, len) = (id.offset_bytes() + head_bytes, SEGMENT_BYTES - head_bytes);
            if let Err(error) = self.device.discard(at, len) {
                tracing::warn!(%error, %id, "giving space back to the file system failed");
            }
            self.unindex(id);
            self.segment_mut(id)?.backed = false;
            self.index(id);
        }
        Ok(())
    }

    /// Backs the pages of the head of a group behind the head itself; none: all of them are, or the device is full.
    pub(super) fn back_a_head(&mut self) -> Result<Option<SegmentId>> {
        let heads = (0..self.segments.len()).step_by(GROUP_SEGMENTS);
        let is_bare = |id: &usize| !self.segments[*id].backed;
        let Some(id) = heads.into_iter().find(is_bare) else {
            return Ok(None);
        };
        let id = SegmentId(id as u32);
        match self.device.allocate(id.offset_bytes(), SEGMENT_BYTES) {
            Ok(()) => {}
            Err(error) if super::is_out_of_space(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        self.unindex(id);
        self.segment_mut(id)?.backed = true;
        self.index(id);
        Ok(Some(id))
    }

    /// Whether new data could have so many segments now.
    pub fn has_room(&mut self, segments: u32) -> Result<bool> {
        let wanted = self.reserve_segments().saturating_add(segments);
        self.back_free_segments(wanted)?;
        Ok(self.free_backed >= wanted)
    }

    /// Whether all of the segment was written since it was backed, as far as is known.
    pub fn was_written(&self, id: SegmentId) -> bool {
        let segment = self.segments.get(id.0 as usize);
        segment.is_some_and(|segment| segment.was_written)
    }

    /// Bytes that new data can have, as far as that is known: free segments, and those that the volume could grow by;
    /// less what is in reserve, and no more than the file system has blocks for.
    pub fn room_bytes(&self) -> u64 {
        let fit = (self.device.len_bytes_max() / SEGMENT_BYTES).min(u64::from(self.segments_max));
        let new = fit.saturating_sub(u64::from(self.segment_count()));
        let bare = (self.free.len() as u64 - u64::from(self.free_backed) + new) * SEGMENT_BYTES;
        let bare = bare.min(self.device.free_bytes().unwrap_or(u64::MAX));
        let backed = u64::from(self.free_backed) * SEGMENT_BYTES;
        let reserved = u64::from(self.reserve_segments()) * SEGMENT_BYTES;
        (backed + bare).saturating_sub(reserved)
    }

    /// How the space is used.
    pub fn space(&self) -> Space {
        Space {
            segments: self.segment_count(),
            free: self.free.len() as u32,
            free_backed: self.free_backed,
            reserve: self.reserve_segments(),
            log_live_bytes: self.live_bytes,
            taken_bytes: self.segments.iter().map(taken_bytes).sum(),
            fixed_reserve_bytes: self.fixed_pages() * PAGE_BYTES as u64,
        }
    }

    /// Free segments, backed or not.
    pub fn free_segment_count(&self) -> u32 {
        self.free.len() as u32
    }
}

/// Bytes of the device that a segment has blocks for, as far as is known.
fn taken_bytes(segment: &Segment) -> u64 {
    match (segment.backed, segment.usage) {
        (true, _) => SEGMENT_BYTES,
        (false, Usage::Tree) => GROUP_HEAD_PAGES * PAGE_BYTES as u64,
        // What an earlier run may have left there is given back by and by.
        (false, Usage::Free) => 0,
        (false, Usage::Log { .. }) => u64::from(segment.front_bytes),
    }
}
