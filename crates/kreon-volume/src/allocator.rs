//! Which segments and pages of a volume are in use: the one owner of all parts of the control of space.
//!
//! Every method delegates to the part that it names, and says what that does: a function of a part that stands behind one
//! method has no documentation of its own. Threads share an allocator behind one lock, which callers hold over several
//! calls where these must be seen as one.

use std::sync::Arc;

use kreon_base::{Epoch, LogId, PageBytes, PageNo, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::Device;
use kreon_format::{GroupPointer, StoreId};

use super::backing::SegmentBacking;
use super::occupied::Occupied;
use super::page_placement::PagePlacement;
use super::purpose::Purpose;
use super::reserve::{L0sReserve, Reserve, SpaceReserve};
use super::segment::{Segment, Usage};
use super::segments::Segments;
use super::space::Space;
use super::supply::Supply;
use super::written::WrittenStock;
use super::{bitmap, log_room, log_segments};

/// The state of all segments and pages of a volume.
pub struct Allocator {
    supply: Supply,
    placement: PagePlacement,
}

/// How an allocator begins, and its durable form.
impl Allocator {
    /// An allocator over `device` without any segment yet. The volume never grows beyond
    /// `segments_max`.
    pub fn new(device: Arc<dyn Device>, segments_max: u32) -> Self {
        Self {
            supply: Supply {
                segments: Segments::default(),
                backing: SegmentBacking::new(device, segments_max),
                reserve: SpaceReserve {
                    is_small: true,
                    ..SpaceReserve::default()
                },
                written: WrittenStock::default(),
            },
            placement: PagePlacement::default(),
        }
    }

    /// Reads the durable state: `segments` segments, blocks as `pointers` say.
    ///
    /// # Errors
    /// `Corruption` if a block does not verify.
    pub fn load(
        device: Arc<dyn Device>,
        segments_max: u32,
        store: StoreId,
        segments: u32,
        pointers: &[GroupPointer],
    ) -> Result<Self> {
        let segments = bitmap::load(device.as_ref(), store, segments, pointers)?;
        let mut allocator = Self::new(device, segments_max);
        allocator.supply.segments = segments;
        Ok(allocator)
    }

    /// Encodes the blocks of all groups that changed, as epoch `epoch`, with the pages they go to.
    pub fn encode_changed(
        &mut self,
        store: StoreId,
        epoch: Epoch,
    ) -> Vec<(PageNo, Box<PageBytes>)> {
        bitmap::encode_changed(&mut self.supply.segments, store, epoch)
    }

    /// Where the blocks of the groups stand, for the catalogue. Complete after
    /// [`Self::encode_changed`].
    pub fn pointers(&self) -> Vec<GroupPointer> {
        self.supply.segments.group_pointers().collect()
    }

    /// Makes the allocator know `segments` segments. Heads of new groups are backed at once: a
    /// checkpoint writes them.
    pub fn extend_to(&mut self, segments: u32) -> Result<()> {
        self.supply
            .backing
            .extend_to(&mut self.supply.segments, segments)
    }

    /// The same for a volume that nobody writes: no group is backed.
    pub fn know(&mut self, segments: u32) {
        while self.supply.segments.count() < segments {
            self.supply.segments.add();
        }
    }

    /// After a load: the segments `named` by the log may have no blocks, the `last` one, which the log had written up
    /// to `end`, only those of its front, and a store with few segments is small.
    pub fn settle_log_end(
        &mut self,
        named: &[SegmentId],
        last: (Option<SegmentId>, u32),
    ) -> Result<()> {
        log_room::settle_end(&mut self.supply, named, last)
    }
}

/// What is in use.
impl Allocator {
    /// Length of the volume in segments.
    pub fn segment_count(&self) -> u32 {
        self.supply.segments.count()
    }

    /// Number of groups.
    pub fn group_count(&self) -> usize {
        self.supply.segments.group_count()
    }

    /// Free segments, backed or not.
    pub fn free_segment_count(&self) -> u32 {
        self.supply.segments.free_count()
    }

    /// What the segment is used for; `None` behind the end of the volume.
    pub fn usage(&self, id: SegmentId) -> Option<Usage> {
        self.supply.segments.get(id).map(Segment::usage)
    }

    /// Live bytes of a log segment.
    pub fn live_bytes(&self, id: SegmentId) -> u32 {
        self.supply.segments.get(id).map_or(0, Segment::live_bytes)
    }

    /// Whether all of the segment was written since it was backed, as far as is known.
    pub fn was_written(&self, id: SegmentId) -> bool {
        self.supply
            .segments
            .get(id)
            .is_some_and(|segment| segment.was_written)
    }

    /// Whether the next checkpoint records the page as in use.
    pub fn is_live(&self, page: PageNo) -> bool {
        let segment = self.supply.segments.get(page.segment());
        segment.is_some_and(|segment| segment.is_live(page.0 % kreon_base::SEGMENT_PAGES))
    }

    /// Every page of tree segments that the next checkpoint records as in use, group heads left out.
    pub fn live_pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.supply.segments.live_pages()
    }

    /// The segments that hold something, ascending.
    pub fn taken_segments(&self) -> Vec<SegmentId> {
        let all = self.supply.segments.all();
        let taken = all.filter(|(_, segment)| segment.usage() != Usage::Free);
        taken.map(|(id, _)| id).collect()
    }

    /// The log segments of `log` as (segment, sequence), in the order of the log.
    pub fn log_segments(&self, log: LogId) -> Vec<(SegmentId, u64)> {
        log_segments::of(&self.supply.segments, log)
    }

    /// How the space is used.
    pub fn space(&self) -> Space {
        Space::of(&self.supply.segments, &self.supply.reserve)
    }

    /// All that is in use, for a copy.
    pub fn occupied(&self) -> Occupied {
        Occupied::of(&self.supply.segments)
    }

    /// Bytes that new data can have, as far as that is known: free segments, and those that the volume could grow by;
    /// less what is in reserve, and no more than the file system has blocks for.
    pub fn room_bytes(&self) -> u64 {
        let reserved =
            u64::from(self.supply.reserve.segments(&self.supply.segments)) * SEGMENT_BYTES;
        let room = self.supply.backing.room_bytes(&self.supply.segments);
        room.saturating_sub(reserved)
    }
}

/// Pages of trees and of the catalogue.
impl Allocator {
    /// From now on pages are taken one by one, the lowest first.
    pub fn scatter_pages(&mut self) {
        self.placement.is_scattered = true;
    }

    /// Trees packed from now on stand apart from all pages that are in use now.
    pub fn begin_packing(&mut self) {
        self.placement.packed.clear();
    }

    /// Hands out up to `pages_max` consecutive pages for nodes or the catalogue; at least one.
    /// Prefers long runs, so that the writes of a spill stay large.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn allocate_pages(&mut self, pages_max: u64, purpose: Purpose) -> Result<(PageNo, u64)> {
        self.placement.take(&mut self.supply, pages_max, purpose)
    }

    /// Hands out up to `pages_max` consecutive pages in segments of packed trees; at least one.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn allocate_packed(&mut self, pages_max: u64) -> Result<(PageNo, u64)> {
        self.placement.take_packed(&mut self.supply, pages_max)
    }

    /// Makes pages part of the next checkpoint.
    pub fn keep_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        self.supply.segments.keep_pages(pages)
    }

    /// Takes pages out of the next checkpoint; readers may still reach them.
    pub fn drop_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        self.supply.segments.drop_pages(pages)
    }

    /// Gives back pages that no reader reaches any more. A tree segment without a used page becomes free.
    pub fn release_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        self.supply.segments.release_pages(pages)
    }
}

/// Segments of logs.
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
        log_room::take_segment(&mut self.supply, log, sequence, purpose)
    }

    /// Makes sure that the log may write the segment `id` up to `needed`; it was allowed to up to `from`. Returns up to
    /// where it may write now.
    ///
    /// # Errors
    /// `OutOfSpace`: the log may write no further than before.
    pub fn back_log(
        &mut self,
        id: SegmentId,
        (from, needed): (u32, u32),
        purpose: Purpose,
    ) -> Result<u32> {
        log_room::back(&mut self.supply, id, (from, needed), purpose)
    }

    /// Gives the blocks of a segment back that the log has named and not written: it is backed anew before that.
    pub fn unback_named(&mut self, id: SegmentId) -> Result<()> {
        self.supply.backing.unback(&mut self.supply.segments, id)
    }

    /// Gives the blocks of a segment of moved records behind `end` back: nothing more is written there.
    pub fn cut_tail(&mut self, id: SegmentId, end: u32) -> Result<()> {
        self.supply
            .backing
            .unback_behind(&mut self.supply.segments, id, end)
    }

    /// Adds `bytes` (negative: removes them) to the live bytes of a log segment.
    ///
    /// # Errors
    /// `Corruption` if the sum leaves 0..=segment size: an index points at something that was never
    /// counted.
    pub fn charge(&mut self, id: SegmentId, bytes: i64) -> Result<()> {
        self.supply.segments.charge(id, bytes)
    }

    /// Takes the segment `id` for a log: recovery found it there behind the last checkpoint.
    ///
    /// # Errors
    /// `Corruption` if the checkpoint says that something else stands there.
    pub fn claim_log_segment(&mut self, id: SegmentId, log: LogId, sequence: u64) -> Result<()> {
        log_segments::claim(&mut self.supply.segments, id, log, sequence)
    }

    /// It is not known which blocks a segment has that the log never reached.
    pub fn doubt(&mut self, id: SegmentId) -> Result<()> {
        self.supply
            .segments
            .change(id, |segment| segment.set_front_only(SEGMENT_BYTES as u32))
    }

    /// Frees a log segment that holds nothing.
    ///
    /// # Errors
    /// `Corruption` if it has live bytes.
    pub fn give_up_log_segment(&mut self, id: SegmentId) -> Result<()> {
        log_segments::give_up(&mut self.supply.segments, id)
    }

    /// Takes every segment of `log` before number `marker_sequence` that holds no live byte out of the
    /// next checkpoint, and returns them. They can be handed out after [`Self::reuse_segment`].
    pub fn retire_dead_log_segments(
        &mut self,
        log: LogId,
        marker_sequence: u64,
    ) -> Result<Vec<SegmentId>> {
        log_segments::retire_dead(&mut self.supply.segments, log, marker_sequence)
    }

    /// Takes a log segment that was never written out of the next checkpoint. It can be handed out after
    /// [`Self::reuse_segment`], once that checkpoint is durable: until then a replay takes it for the log's.
    pub fn retire_log_segment(&mut self, id: SegmentId) -> Result<()> {
        self.supply
            .segments
            .change_recorded(id, |segment| segment.retire(false))
    }

    /// Makes a retired segment available again.
    pub fn reuse_segment(&mut self, id: SegmentId) -> Result<()> {
        self.supply.segments.change(id, Segment::readmit)
    }
}

/// The reserve, and the stock of segments beyond it.
impl Allocator {
    /// Sets the reserve. It is filled as far as the device has room.
    pub fn set_reserve(&mut self, reserve: Reserve) {
        self.supply.reserve.set(reserve);
        // A reserve that cannot be filled now is no error: allocations will say so when it matters.
        let _ = self.supply.has_room(0);
    }

    /// The part of the reserve for what is in L0s. Changes often: filled by the next allocation of a segment or grant.
    pub fn set_reserve_of_l0s(&mut self, l0s: L0sReserve) {
        self.supply.reserve.needs.l0s = l0s;
    }

    /// Counts `entries` more in L0s, if the reserve for their spill can be had; whether it can. Moved records may take
    /// of the least reserve.
    ///
    /// # Errors
    /// `Io` of the device.
    pub fn grant_entries(&mut self, entries: u64) -> Result<bool> {
        self.supply.grant_entries(entries)
    }

    /// Whether new data could have so many segments now.
    ///
    /// # Errors
    /// `Io` of the device.
    pub fn has_room(&mut self, segments: u32) -> Result<bool> {
        self.supply.has_room(segments)
    }

    /// How many backed free segments beyond the reserve are kept when segments become free, some at the least; the rest
    /// gives its blocks back to the file system.
    pub fn set_spare(&mut self, segments: u32) {
        self.supply.backing.set_spare(segments);
    }

    /// Gives the blocks of free segments back to the file system, but for the reserve, spare segments and the stock of
    /// written ones. Segments that the device does not take back stay free.
    pub fn trim(&mut self) -> Result<()> {
        self.supply.trim()
    }

    /// Gives the blocks of heads of groups back but for the heads, where nothing else is in use, and keeps no spare
    /// segment: the store becomes as small as possible.
    ///
    /// # Errors
    /// `Io` of the device, when the reserve is backed anew.
    pub fn trim_all(&mut self) -> Result<()> {
        self.supply.trim_all()
    }

    /// Backs no more than so many segments at once, one at the least: the store is to take no more space ahead of its needs.
    pub fn set_run_max(&mut self, segments: u32) {
        self.supply.backing.set_run_max(segments);
    }

    /// Keeps up to `segments` free ones that were written, but no more than a share of the room that there is.
    pub fn set_written_stock(&mut self, segments: u32) {
        let room_bytes = self.room_bytes();
        self.supply.written.set_kept_max(segments, room_bytes);
    }

    /// Free segments that were written.
    pub fn free_written(&self) -> u32 {
        self.supply.segments.free_written()
    }

    /// Segments that were written ahead so far.
    pub fn written_ahead(&self) -> u64 {
        self.supply.written.written_ahead
    }

    /// Whether segments are being written: they can be had soon.
    pub fn is_writing(&self) -> bool {
        self.supply.written.writing > 0
    }

    /// Whether less than half of `wanted`, or of what may be kept, is there.
    pub fn is_short_of_written(&self, wanted: u32) -> bool {
        self.supply.written.is_short(&self.supply.segments, wanted)
    }

    /// Takes up to `most` free segments to be written, neighbours if there are any, until `wanted` of the stock were.
    /// Backs some for that, but takes none of the reserve. [`Self::end_writing`] follows.
    ///
    /// # Errors
    /// `Io` of the device. A lack of space is no error: fewer segments are taken.
    pub fn begin_writing(&mut self, wanted: u32, most: u32) -> Result<Vec<SegmentId>> {
        self.supply.begin_writing(wanted, most)
    }

    /// The writing of the segments has ended; all of them were written if `is_done`.
    pub fn end_writing(&mut self, ids: &[SegmentId], is_done: bool) -> Result<()> {
        self.supply
            .written
            .end(&mut self.supply.segments, ids, is_done)
    }
}

#[cfg(test)]
impl Allocator {
    pub(super) fn allocate_segment(&mut self, usage: Usage, purpose: Purpose) -> Result<SegmentId> {
        self.supply.take_segment(usage, purpose)
    }

    pub(super) fn assert_consistent(&self) {
        self.supply.segments.assert_consistent();
    }
}
