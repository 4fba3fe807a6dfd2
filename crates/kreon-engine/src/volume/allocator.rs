//! Which segments and pages are in use.
//!
//! Invariants:
//! - A page is handed out only if its `used` bit is clear; `live` is a subset of `used`.
//! - `live` is what the next checkpoint records: the pages that its trees and catalogue reach. Pages of
//!   a spill under way are `used` but not `live`, so a crash forgets them; pages that a spill replaced
//!   are no longer `live`, but stay `used` until no reader reaches them (`Kreon 3.4`).
//! - `live_bytes` of a log segment is the sum of the records in it that level trees point at. Records
//!   behind the replay marker are not counted: their segment cannot be freed anyway.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Error, LogId, PageNo, Result, SEGMENT_PAGES, SegmentId};
use kreon_device::Device;
use kreon_format::{GROUP_HEAD_PAGES, GROUP_SEGMENTS, GroupPointer};

use super::free_space::{RUN_SEGMENTS_MAX, SPARE_SEGMENTS_MIN};
use super::page_bits::PageBits;
use super::reserve::Reserve;
use super::written::Written;

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Nothing.
    Free,
    /// Pages of level trees and of the catalogue.
    Tree,
    /// Records of a log; `sequence` counts the segments of that log.
    Log {
        /// The log.
        log: LogId,
        /// Place of the segment in the log.
        sequence: u64,
    },
}

/// How far an allocation may dip into the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// New data: leaves the whole reserve untouched.
    Put,
    /// Deletions: may use half of the reserve, so that a full store can be emptied.
    Delete,
    /// Garbage collection: may use a little of it. What it moves is freed by the next spill, which needs the rest.
    Collection,
    /// Spills and checkpoints: may use all of it, since they free space.
    Upkeep,
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub usage: Usage,
    pub used: PageBits,
    pub live: PageBits,
    pub live_bytes: u32,
    /// Freed, but a reader may still reach it: durable as free, not to be handed out.
    pub retiring: bool,
    /// The file system holds blocks for it, so that writing it cannot run out of space.
    pub backed: bool,
    /// If it is not: so many bytes from its start may have some.
    pub front_bytes: u32,
    /// All of it was written since it was backed: it was a full segment of a log.
    pub was_written: bool,
}

impl Segment {
    pub fn free() -> Self {
        Self {
            usage: Usage::Free,
            used: PageBits::default(),
            live: PageBits::default(),
            live_bytes: 0,
            retiring: false,
            backed: false,
            front_bytes: 0,
            was_written: false,
        }
    }

    /// No flush of it has to make blocks of the file system durable.
    pub fn is_written(&self) -> bool {
        self.backed && self.was_written
    }
}

pub(super) struct Group {
    pub pointer: Option<GroupPointer>,
    pub dirty: bool,
}

/// The state of all segments and pages of a volume.
pub struct Allocator {
    pub(super) device: Arc<dyn Device>,
    pub(super) segments: Vec<Segment>,
    pub(super) groups: Vec<Group>,
    /// Segments that can be handed out.
    pub(super) free: BTreeSet<u32>,
    pub(super) free_backed: u32,
    pub(super) written: Written,
    /// Live bytes of all log segments.
    pub(super) live_bytes: u64,
    /// Tree segments by their longest run of unused pages.
    pub(super) roomy: BTreeSet<(u64, u32)>,
    /// Unused pages of tree segments.
    pub(super) roomy_pages: u64,
    pub(super) segments_max: u32,
    pub(super) reserve: Reserve,
    /// Pages of the reserve that upkeep took since it was set.
    pub(super) taken_pages: u64,
    /// See [`super::log_room`].
    pub(super) is_small: bool,
    /// Segments that trees are packed into.
    pub(super) packed: BTreeSet<u32>,
    /// Backed free segments beyond the reserve that are kept when segments become free.
    pub(super) spare_segments: u32,
    /// Segments that are backed together at the most.
    pub(super) run_segments_max: u32,
    scatters_pages: bool,
}

impl Allocator {
    /// An allocator over `device` without any segment yet. The volume never grows beyond
    /// `segments_max`.
    pub fn new(device: Arc<dyn Device>, segments_max: u32) -> Self {
        Self {
            device,
            segments: Vec::new(),
            groups: Vec::new(),
            free: BTreeSet::new(),
            free_backed: 0,
            written: Written::default(),
            live_bytes: 0,
            roomy: BTreeSet::new(),
            roomy_pages: 0,
            segments_max,
            reserve: Reserve::default(),
            taken_pages: 0,
            is_small: true,
            packed: BTreeSet::new(),
            spare_segments: SPARE_SEGMENTS_MIN,
            run_segments_max: RUN_SEGMENTS_MAX,
            scatters_pages: false,
        }
    }

    /// From now on pages are taken one by one, the lowest first.
    pub fn scatter_pages(&mut self) {
        self.scatters_pages = true;
    }

    /// Length of the volume in segments.
    pub fn segment_count(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Adds the next segment of the volume; the first one of a group holds the group's head.
    pub(super) fn add_segment(&mut self) {
        let id = self.segments.len() as u32;
        let mut segment = Segment::free();
        if (id as usize).is_multiple_of(GROUP_SEGMENTS) {
            self.groups.push(Group {
                pointer: None,
                dirty: true,
            });
            (segment.usage, segment.backed) = (Usage::Tree, true);
            for page in 0..GROUP_HEAD_PAGES {
                segment.used.insert(page);
                segment.live.insert(page);
            }
        }
        self.segments.push(segment);
        self.index(SegmentId(id));
    }

    /// Hands out a whole segment.
    ///
    /// # Errors
    /// `OutOfSpace` if only the part of the reserve that `purpose` may not use is left.
    pub fn allocate_segment(&mut self, usage: Usage, purpose: Purpose) -> Result<SegmentId> {
        // Moved records are never waited for.
        let is_log = matches!(usage, Usage::Log { .. }) && purpose != Purpose::Collection;
        let id = self.take_free_segment(purpose, is_log)?;
        self.is_small = false;
        self.take_segment(id, usage).map(|()| id)
    }

    pub(super) fn take_segment(&mut self, id: SegmentId, usage: Usage) -> Result<()> {
        self.unindex(id);
        let segment = self.segment_mut(id)?;
        segment.usage = usage;
        if let Usage::Log { .. } = usage {
            segment.used = PageBits::ALL;
        }
        self.index(id);
        self.mark_dirty(id);
        Ok(())
    }

    /// Hands out up to `pages_max` consecutive pages for nodes or the catalogue; at least one.
    /// Prefers long runs, so that the writes of a spill stay large.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn allocate_pages(&mut self, pages_max: u64, purpose: Purpose) -> Result<(PageNo, u64)> {
        if self.scatters_pages
            && let Some(page) = self.lowest_free_page()
        {
            let id = page.segment();
            self.unindex(id);
            self.segment_mut(id)?.used.insert(page.0 % SEGMENT_PAGES);
            self.index(id);
            return Ok((page, 1));
        }
        let wanted = pages_max.clamp(1, SEGMENT_PAGES);
        self.check_room_for_pages(wanted, purpose)?;
        let id = self.segment_with_room(wanted, purpose)?;
        self.take_pages(id, wanted, purpose)
    }

    /// Up to `wanted` pages out of the longest gap of the tree segment `id`.
    pub(super) fn take_pages(
        &mut self,
        id: SegmentId,
        wanted: u64,
        purpose: Purpose,
    ) -> Result<(PageNo, u64)> {
        self.unindex(id);
        let segment = self.segment_mut(id)?;
        let (first, gap) = segment.used.longest_gap();
        let count = gap.min(wanted);
        for page in first..first + count {
            segment.used.insert(page);
        }
        self.index(id);
        if purpose == Purpose::Upkeep {
            self.note_taken(count);
        }
        Ok((PageNo(id.first_page().0 + first), count))
    }

    /// The first page of a tree segment that is not in use.
    fn lowest_free_page(&self) -> Option<PageNo> {
        let id = self.roomy.iter().map(|(_, id)| *id).min()?;
        let first = self.segments.get(id as usize)?.used.first_gap();
        Some(PageNo(SegmentId(id).first_page().0 + first))
    }

    fn segment_with_room(&mut self, wanted: u64, purpose: Purpose) -> Result<SegmentId> {
        let best = self.roomy.last().copied();
        let enough = wanted.min(RUN_PAGES_ENOUGH);
        if let Some((run, id)) = best
            && run >= enough
        {
            return Ok(SegmentId(id));
        }
        if let Some(id) = self.back_a_head()? {
            return Ok(id);
        }
        match (self.allocate_segment(Usage::Tree, purpose), best) {
            (Ok(id), _) => Ok(id),
            (Err(_), Some((_, id))) => Ok(SegmentId(id)),
            (Err(error), None) => Err(error),
        }
    }

    /// Makes pages part of the next checkpoint.
    pub fn keep_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        for &page in pages {
            self.segment_mut(page.segment())?
                .live
                .insert(page.0 % SEGMENT_PAGES);
            self.mark_dirty(page.segment());
        }
        Ok(())
    }

    /// Takes pages out of the next checkpoint; readers may still reach them.
    pub fn drop_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        for &page in pages {
            self.segment_mut(page.segment())?
                .live
                .remove(page.0 % SEGMENT_PAGES);
            self.mark_dirty(page.segment());
        }
        Ok(())
    }

    /// Gives pages back that nobody reaches any more. A tree segment without a used page becomes free.
    pub fn release_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        let mut touched = BTreeSet::new();
        for &page in pages {
            let id = page.segment();
            if touched.insert(id) {
                self.unindex(id);
            }
            let segment = self.segment_mut(id)?;
            segment.used.remove(page.0 % SEGMENT_PAGES);
            segment.live.remove(page.0 % SEGMENT_PAGES);
        }
        for id in touched {
            let segment = self.segment_mut(id)?;
            if segment.used.is_empty() {
                segment.usage = Usage::Free;
                self.mark_dirty(id);
            }
            self.index(id);
        }
        Ok(())
    }

    /// Adds `bytes` (negative: removes them) to the live bytes of a log segment.
    ///
    /// # Errors
    /// `Corruption` if the sum leaves 0..=segment size: an index points at something that was never
    /// counted.
    pub fn charge(&mut self, id: SegmentId, bytes: i64) -> Result<()> {
        let segment = self.segment_mut(id)?;
        let sum = i64::from(segment.live_bytes) + bytes;
        let valid = u32::try_from(sum)
            .ok()
            .filter(|_| matches!(segment.usage, Usage::Log { .. }));
        let Some(live_bytes) = valid else {
            return Err(Error::corruption(format!(
                "live bytes of {id} ({:?}) would become {sum}",
                segment.usage
            )));
        };
        let old = std::mem::replace(&mut segment.live_bytes, live_bytes);
        self.live_bytes = self.live_bytes - u64::from(old) + u64::from(live_bytes);
        self.mark_dirty(id);
        Ok(())
    }

    /// What the segment is used for; `None` behind the end of the volume.
    pub fn usage(&self, id: SegmentId) -> Option<Usage> {
        self.segments
            .get(id.0 as usize)
            .map(|segment| segment.usage)
    }

    /// Live bytes of a log segment.
    pub fn live_bytes(&self, id: SegmentId) -> u32 {
        self.segments
            .get(id.0 as usize)
            .map_or(0, |segment| segment.live_bytes)
    }

    /// Whether the next checkpoint records the page as in use.
    pub fn is_live(&self, page: PageNo) -> bool {
        self.segments
            .get(page.segment().0 as usize)
            .is_some_and(|segment| segment.live.contains(page.0 % SEGMENT_PAGES))
    }

    pub(super) fn segment_mut(&mut self, id: SegmentId) -> Result<&mut Segment> {
        let count = self.segments.len();
        self.segments.get_mut(id.0 as usize).ok_or_else(|| {
            Error::corruption(format!(
                "{id} lies behind the end of the volume ({count} segments)"
            ))
        })
    }

    pub(super) fn mark_dirty(&mut self, id: SegmentId) {
        if let Some(group) = self.groups.get_mut(id.0 as usize / GROUP_SEGMENTS) {
            group.dirty = true;
        }
    }

    /// Takes a segment out of the search structures before it changes...
    pub(super) fn unindex(&mut self, id: SegmentId) {
        let Some(segment) = self.segments.get(id.0 as usize) else {
            return;
        };
        if self.free.remove(&id.0) {
            self.free_backed -= u32::from(segment.backed);
            self.written.free -= u32::from(segment.is_written());
        }
        if segment.usage == Usage::Tree && segment.backed {
            self.roomy_pages -= segment.used.gaps();
        }
        self.roomy.remove(&(segment.used.longest_gap().1, id.0));
    }

    /// ... and puts it back after.
    pub(super) fn index(&mut self, id: SegmentId) {
        let Some(segment) = self.segments.get(id.0 as usize) else {
            return;
        };
        match segment.usage {
            Usage::Free if !segment.retiring => {
                self.free.insert(id.0);
                self.free_backed += u32::from(segment.backed);
                self.written.free += u32::from(segment.is_written());
            }
            Usage::Tree if segment.backed => {
                self.roomy_pages += segment.used.gaps();
                let run = segment.used.longest_gap().1;
                if run > 0 {
                    self.roomy.insert((run, id.0));
                }
            }
            Usage::Free | Usage::Tree | Usage::Log { .. } => {}
        }
    }
}

/// A run of this many free pages (256 KiB) is as good as a whole segment: the device is at its full
/// rate with writes of that size.
const RUN_PAGES_ENOUGH: u64 = 64;
