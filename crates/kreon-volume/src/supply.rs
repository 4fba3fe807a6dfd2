//! Hands out free segments, and grants to the log, as far as the reserve allows.
//!
//! Always true:
//! - A purpose gets a segment or a grant only if at least as many backed free segments stay as it must leave alone.
//! - A refusal for lack of space changes nothing but the backing of free segments.

use kreon_base::{PageNo, Result, SEGMENT_PAGES, SegmentId};

use super::backing::SegmentBacking;
use super::purpose::{Purpose, out_of_space};
use super::reserve::SpaceReserve;
use super::segment::Usage;
use super::segments::Segments;
use super::tuning::{BACKED_RUN_SEGMENTS_MAX, DOUBTFUL_SEGMENTS_AT_ONCE};
use super::written::WrittenStock;

/// What is needed to hand out segments.
pub struct Supply {
    pub segments: Segments,
    pub backing: SegmentBacking,
    pub reserve: SpaceReserve,
    pub written: WrittenStock,
}

impl Supply {
    pub fn take_segment(&mut self, usage: Usage, purpose: Purpose) -> Result<SegmentId> {
        let untouchable = self.reserve.untouchable(&self.segments, purpose);
        if !self.back_up_to(untouchable + 1)? {
            return Err(purpose.out_of_space());
        }
        // Writers wait for flushes of the log, but not for those of moved records.
        let for_log = matches!(usage, Usage::Log { .. }) && purpose != Purpose::Collection;
        let best = self.written.best_free(&self.segments, for_log);
        let id = best.ok_or_else(|| out_of_space("a segment"))?;
        self.reserve.is_small = false;
        self.segments.take(id, usage)?;
        debug_assert!(self.segments.free_backed() >= untouchable);
        Ok(id)
    }

    /// Hands out the first free segment, backed or not, without regard to the reserve; `None` if the volume has none and
    /// cannot grow.
    pub fn take_unbacked(&mut self, usage: Usage) -> Result<Option<SegmentId>> {
        if self.segments.free_count() == 0 && !self.backing.grow(&mut self.segments)? {
            return Ok(None);
        }
        let first = self.segments.free().next().map(|(id, _)| id);
        if let Some(id) = first {
            self.segments.take(id, usage)?;
        }
        Ok(first)
    }

    /// Takes the first unused page of all tree segments.
    pub fn take_lowest_page(&mut self) -> Result<Option<PageNo>> {
        let Some(page) = self.segments.lowest_unused_page() else {
            return Ok(None);
        };
        let (id, within) = (page.segment(), page.0 % SEGMENT_PAGES);
        self.segments
            .change(id, |segment| segment.take_page(within))?;
        Ok(Some(page))
    }

    /// Up to `wanted` pages out of the longest run of the tree segment `id`.
    pub fn take_pages(
        &mut self,
        id: SegmentId,
        wanted: u64,
        purpose: Purpose,
    ) -> Result<(PageNo, u64)> {
        let taken = self.segments.take_pages(id, wanted)?;
        if purpose == Purpose::Maintenance {
            self.reserve.note_taken(taken.1);
        }
        Ok(taken)
    }

    /// Unused pages of tree segments count towards the reserve: new data takes only those that free segments replace.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn check_room_for_pages(&mut self, pages: u64, purpose: Purpose) -> Result<()> {
        if purpose == Purpose::Maintenance || self.segments.roomy_pages() == 0 {
            return Ok(());
        }
        let needed = self.reserve.segments_without(&self.segments, pages);
        match self.back_up_to(needed)? {
            true => Ok(()),
            false => Err(Purpose::Put.out_of_space()),
        }
    }

    /// Counts another grant of `bytes` to the log, unless the reserve for its entries cannot be had.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn grant(&mut self, bytes: u64, purpose: Purpose) -> Result<()> {
        self.reserve.add_grant(bytes);
        let needed = self.reserve.untouchable(&self.segments, purpose);
        match self.back_up_to(needed) {
            Ok(true) => Ok(()),
            refused => {
                self.reserve.undo_grant(bytes);
                refused.and(Err(purpose.out_of_space()))
            }
        }
    }

    pub fn grant_entries(&mut self, entries: u64) -> Result<bool> {
        let before = self.reserve.segments_for_spills(&self.segments);
        self.reserve.add_entries(entries);
        let needed = self.reserve.segments_for_spills(&self.segments);
        if needed <= before {
            return Ok(true);
        }
        let granted = self.back_up_to(needed);
        if !matches!(granted, Ok(true)) {
            self.reserve.undo_entries(entries);
        }
        granted
    }

    /// Backs the reserve and so many segments beyond as far as the device has room; whether it has for all.
    pub fn has_room(&mut self, segments: u32) -> Result<bool> {
        let reserve = self.reserve.segments(&self.segments);
        let wanted = reserve.saturating_add(segments);
        self.back_up_to(wanted)
    }

    /// Backs free segments until there are `wanted`; whether the device had room for as many.
    fn back_up_to(&mut self, wanted: u32) -> Result<bool> {
        self.backing.back_free(&mut self.segments, wanted)?;
        Ok(self.segments.free_backed() >= wanted)
    }

    /// Backs all of a log segment. A full device gives it the blocks of a free segment that `purpose` may use.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn back_whole(&mut self, id: SegmentId, purpose: Purpose) -> Result<()> {
        if self.segments.get(id).is_some_and(|s| s.is_backed) {
            return Ok(());
        }
        let mut is_backed = self.backing.back_taken(&mut self.segments, id)?;
        let untouchable = self.reserve.untouchable(&self.segments, purpose);
        if !is_backed && self.segments.free_backed() > untouchable {
            self.unback_worst()?;
            is_backed = self.backing.back_taken(&mut self.segments, id)?;
        }
        match is_backed {
            true => Ok(()),
            false => Err(purpose.out_of_space()),
        }
    }

    pub fn begin_writing(&mut self, wanted: u32, most: u32) -> Result<Vec<SegmentId>> {
        let missing = self.written.missing(&self.segments, wanted);
        if missing == 0 {
            return Ok(Vec::new());
        }
        let reserve = self.reserve.segments(&self.segments);
        let wanted = reserve.saturating_add(self.segments.free_written() + missing);
        // All at once: the file system stops transfers while it reserves blocks.
        let bare = wanted.saturating_sub(self.segments.free_backed());
        let run = bare.clamp(1, BACKED_RUN_SEGMENTS_MAX);
        self.backing.back_free_by(&mut self.segments, wanted, run)?;
        let beyond = self.segments.free_backed().saturating_sub(reserve);
        let count = missing.min(most).min(beyond);
        self.written.begin(&mut self.segments, count)
    }

    pub fn trim(&mut self) -> Result<()> {
        self.unback_beyond(self.backing.spare_segments.max(self.written.kept_max))?;
        self.backing
            .unback_doubtful(&mut self.segments, DOUBTFUL_SEGMENTS_AT_ONCE)
    }

    pub fn trim_all(&mut self) -> Result<()> {
        self.written.set_kept_max(0, 0);
        let outcome = self.unback_beyond(0);
        let outcome =
            outcome.and_then(|()| self.backing.unback_doubtful(&mut self.segments, usize::MAX));
        let outcome = outcome.and_then(|()| self.backing.unback_heads(&mut self.segments));
        // What was given back may have been part of the reserve.
        self.has_room(0)?;
        outcome
    }

    /// Keeps `spare` backed free segments beyond the reserve.
    fn unback_beyond(&mut self, spare: u32) -> Result<()> {
        let keep = self.reserve.segments(&self.segments).saturating_add(spare);
        while self.segments.free_backed() > keep && self.unback_worst()? {}
        Ok(())
    }

    /// Gives the blocks of the backed free segment back that is worth least; whether there was one.
    fn unback_worst(&mut self) -> Result<bool> {
        let Some(id) = self.written.worst_free(&self.segments) else {
            return Ok(false);
        };
        self.backing.unback(&mut self.segments, id)?;
        Ok(true)
    }
}
