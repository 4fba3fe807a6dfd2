//! Growth of the volume, backing of its segments, and the reserve.
//!
//! A segment is *backed* before it is written: the file system has blocks for it. So a full disk shows
//! when a segment is handed out, where it fails one write cleanly, and never while something that was
//! acknowledged is on its way to the device. The reserve is a stock of backed free segments that only
//! deletions and upkeep may touch, so that a full store can still spill, checkpoint and delete. Unused pages of tree
//! segments are part of the reserve: upkeep takes them first.

use kreon_base::{ErrorKind, Result, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId};

use super::allocator::{Allocator, Purpose, RESERVE_SEGMENTS_MIN, out_of_space};

/// A file grows by this many segments (64 MiB of address space; sparse).
const GROW_SEGMENTS: u32 = 32;

/// See [`Allocator::set_spare`].
pub(super) const SPARE_SEGMENTS_MIN: u32 = 2;

/// Segments of the reserve that garbage collection may fill: with one more it can free any segment that
/// is not full of live records.
const COLLECTION_SEGMENTS: u32 = 3;

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
}
/// A call backs up to so many segments that follow each other, but no more than an eighth of the volume has: the file
/// system stops all transfers to a file while it works on it.
pub(super) const RUN_SEGMENTS_MAX: u32 = 16;

impl Allocator {
    /// Sets the reserve, in pages for nodes and whatever else upkeep needs. It is filled as far as the device has room.
    pub fn set_reserve(&mut self, pages: u64) {
        self.reserve_pages = pages;
        // A reserve that cannot be filled now is no error: allocations will say so when it matters.
        let _ = self.back_free_segments(self.reserve_segments());
    }

    /// So many pages of the reserve are for what is in L0s. Changes often: filled by whoever takes a segment next.
    pub fn set_reserve_of_l0s(&mut self, pages: u64) {
        self.reserve_pages_of_l0s = pages;
    }

    /// Free segments that the reserve needs beside so many unused pages of tree segments.
    fn missing_segments(&self, roomy: u64) -> u32 {
        let pages = self.reserve_pages.saturating_add(self.reserve_pages_of_l0s);
        let segments = pages.saturating_sub(roomy).div_ceil(SEGMENT_PAGES);
        (segments.min(u64::from(u32::MAX)) as u32).max(RESERVE_SEGMENTS_MIN)
    }

    /// How many backed free segments beyond the reserve are kept when segments become free, some at the least; the rest
    /// gives its blocks back to the file system. No call backs more than `run` together.
    pub fn set_spare(&mut self, segments: u32, run: u32) {
        self.spare_segments = segments.max(SPARE_SEGMENTS_MIN);
        self.run_segments_max = run.clamp(1, RUN_SEGMENTS_MAX);
    }

    /// Free segments that make up the reserve with the unused pages of tree segments.
    pub(super) fn reserve_segments(&self) -> u32 {
        self.missing_segments(self.roomy_pages)
    }

    /// Unused pages of tree segments are part of the reserve: new data takes none of them that free segments do not
    /// make up for.
    pub(super) fn check_room_for_pages(&mut self, pages: u64, purpose: Purpose) -> Result<()> {
        if purpose == Purpose::Upkeep || self.roomy_pages == 0 {
            return Ok(());
        }
        let left = self.roomy_pages.saturating_sub(pages);
        let needed = self.missing_segments(left);
        self.back_free_segments(needed)?;
        match self.free_backed >= needed {
            true => Ok(()),
            false => Err(out_of_space("new data")),
        }
    }

    /// Takes a backed free segment out of the stock: for a log one that was written, for anything else rather not.
    pub(super) fn take_free_segment(
        &mut self,
        purpose: Purpose,
        for_log: bool,
    ) -> Result<SegmentId> {
        let reserve = self.reserve_segments();
        let untouchable = match purpose {
            Purpose::Put => reserve,
            Purpose::Delete => reserve / 2,
            Purpose::Collection => reserve.saturating_sub(COLLECTION_SEGMENTS),
            Purpose::Upkeep => 0,
        };
        if self.free_backed <= untouchable {
            self.back_free_segments(untouchable + 1)?;
        }
        if self.free_backed <= untouchable {
            return Err(out_of_space(match purpose {
                Purpose::Put => "new data",
                Purpose::Delete => "deletions",
                Purpose::Collection => "moved records",
                Purpose::Upkeep => "a spill or checkpoint",
            }));
        }
        self.best_free_segment(for_log)
            .ok_or_else(|| out_of_space("a segment"))
    }

    /// Backs free segments, growing the volume where needed, until `wanted` are in stock or the
    /// device is full. Any other failure of the device is an error.
    fn back_free_segments(&mut self, wanted: u32) -> Result<()> {
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
                        self.segment_mut(id)?.backed = true;
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
        let used = self.segment_count() - self.free.len() as u32;
        (used / 8).clamp(1, self.run_segments_max)
    }

    /// Whether the volume could be made longer.
    pub(super) fn grow(&mut self) -> Result<bool> {
        let old = self.segment_count();
        let fit = (self.device.len_bytes_max() / SEGMENT_BYTES).min(u64::from(self.segments_max));
        let new = u64::from(old + GROW_SEGMENTS).min(fit) as u32;
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
        while self.free_backed > keep {
            let Some(id) = self.worst_free_segment() else {
                break;
            };
            // A segment that was not given back, or half, is free all the same: it is backed anew before
            // it is used.
            if let Err(error) = self.device.discard(id.offset_bytes(), SEGMENT_BYTES) {
                tracing::warn!(%error, %id, "giving space back to the file system failed");
            }
            self.unindex(id);
            let segment = self.segment_mut(id)?;
            (segment.backed, segment.was_written) = (false, false);
            self.index(id);
        }
        Ok(())
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
        }
    }

    /// Free segments, backed or not.
    pub fn free_segment_count(&self) -> u32 {
        self.free.len() as u32
    }
}
