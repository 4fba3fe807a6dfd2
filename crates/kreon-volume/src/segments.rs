//! The table of all segments, and what can be found in it without a search.
//!
//! Always true between two calls:
//! - `free` has exactly the available segments; `free_backed` and `free_written` count those of them that are backed,
//!   and that are written besides.
//! - `roomy` has exactly the backed tree segments with unused pages, by their longest run; `roomy_pages` is the sum of
//!   their unused pages.
//! - `live_bytes` is the sum over all segments.
//! - A group is dirty if the durable form of one of its segments may differ from the group's last encoded bitmap block.

use std::collections::BTreeSet;

use kreon_base::{Error, PageNo, Result, SEGMENT_PAGES, SegmentId};
use kreon_format::{GROUP_HEAD_PAGES, GROUP_SEGMENTS, GroupPointer};

use super::segment::{Segment, Usage};

/// The state of all segments and pages of a volume.
#[derive(Default)]
pub struct Segments {
    table: Vec<Segment>,
    groups: Vec<Group>,
    free: BTreeSet<u32>,
    free_backed: u32,
    free_written: u32,
    /// (longest run, segment).
    roomy: BTreeSet<(u64, u32)>,
    roomy_pages: u64,
    live_bytes: u64,
}

/// The bitmap block of a group.
struct Group {
    /// Where its last encoded copy stands.
    pointer: Option<GroupPointer>,
    is_dirty: bool,
}

impl Segments {
    /// Length of the volume in segments.
    pub fn count(&self) -> u32 {
        self.table.len() as u32
    }

    pub fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.table.get(id.0 as usize)
    }

    /// # Errors
    /// `Corruption` if the volume has no such segment.
    pub fn known(&self, id: SegmentId) -> Result<&Segment> {
        self.at(id).map(|at| &self.table[at])
    }

    /// All segments, ascending.
    pub fn all(&self) -> impl Iterator<Item = (SegmentId, &Segment)> {
        (0..).map(SegmentId).zip(&self.table)
    }

    /// The first segments of all groups.
    pub fn group_heads(&self) -> impl Iterator<Item = (SegmentId, &Segment)> {
        let firsts = (0..self.table.len()).step_by(GROUP_SEGMENTS);
        firsts.map(|at| (SegmentId(at as u32), &self.table[at]))
    }

    /// The segments of one group; fewer than a whole group at the end of the volume.
    pub fn of_group(&self, number: u32) -> &[Segment] {
        let first = (number as usize * GROUP_SEGMENTS).min(self.table.len());
        let end = (first + GROUP_SEGMENTS).min(self.table.len());
        &self.table[first..end]
    }

    /// The available segments, ascending.
    pub fn free(&self) -> impl DoubleEndedIterator<Item = (SegmentId, &Segment)> {
        let ids = self.free.iter();
        ids.map(|id| (SegmentId(*id), &self.table[*id as usize]))
    }

    pub fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Available segments that are backed.
    pub fn free_backed(&self) -> u32 {
        self.free_backed
    }

    /// Available segments that are backed and written.
    pub fn free_written(&self) -> u32 {
        self.free_written
    }

    /// Segments that are not available.
    pub fn used_count(&self) -> u32 {
        self.count() - self.free_count()
    }

    /// Unused pages of tree segments.
    pub fn roomy_pages(&self) -> u64 {
        self.roomy_pages
    }

    /// The longest run of unused pages of a tree segment: (pages, segment).
    pub fn longest_run(&self) -> Option<(u64, SegmentId)> {
        let (run, id) = self.roomy.last()?;
        Some((*run, SegmentId(*id)))
    }

    /// The first unused page of all tree segments.
    pub fn lowest_unused_page(&self) -> Option<PageNo> {
        let id = SegmentId(self.roomy.iter().map(|(_, id)| *id).min()?);
        let first = self.get(id)?.first_unused_page();
        Some(PageNo(id.first_page().0 + first))
    }

    /// Live bytes of all log segments.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Adds the next segment of the volume. The first one of a group holds the group's head, and must be backed.
    pub fn add(&mut self) {
        let id = self.table.len();
        let is_first = id.is_multiple_of(GROUP_SEGMENTS);
        if is_first {
            self.groups.push(Group {
                pointer: None,
                is_dirty: true,
            });
        }
        self.table.push(match is_first {
            true => Segment::group_head(),
            false => Segment::default(),
        });
        self.index(id);
    }

    /// Adds the segments of a group as its bitmap block at `pointer` records them.
    pub fn add_recorded(&mut self, pointer: GroupPointer, segments: impl Iterator<Item = Segment>) {
        assert!(
            self.table.len().is_multiple_of(GROUP_SEGMENTS),
            "a group is added behind one that is not complete"
        );
        self.groups.push(Group {
            pointer: Some(pointer),
            is_dirty: false,
        });
        for segment in segments {
            self.live_bytes += u64::from(segment.live_bytes());
            self.table.push(segment);
            self.index(self.table.len() - 1);
        }
    }

    /// Changes a segment in a way that its bitmap block does not show.
    pub fn change<R>(
        &mut self,
        id: SegmentId,
        change: impl FnOnce(&mut Segment) -> R,
    ) -> Result<R> {
        let at = self.at(id)?;
        self.unindex(at);
        let outcome = change(&mut self.table[at]);
        self.index(at);
        Ok(outcome)
    }

    /// Changes a segment in a way that its bitmap block shows.
    pub fn change_recorded<R>(
        &mut self,
        id: SegmentId,
        change: impl FnOnce(&mut Segment) -> R,
    ) -> Result<R> {
        let outcome = self.change(id, change)?;
        self.mark_dirty(id);
        Ok(outcome)
    }

    /// Puts an available segment to use.
    pub fn take(&mut self, id: SegmentId, usage: Usage) -> Result<()> {
        self.change_recorded(id, |segment| segment.take(usage))
    }

    /// Up to `wanted` pages out of the longest run of the tree segment `id`.
    pub fn take_pages(&mut self, id: SegmentId, wanted: u64) -> Result<(PageNo, u64)> {
        let (first, count) = self.change(id, |segment| segment.take_run(wanted))?;
        Ok((PageNo(id.first_page().0 + first), count))
    }

    pub fn keep_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        self.for_recorded_pages(pages, Segment::keep_page)
    }

    pub fn drop_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        self.for_recorded_pages(pages, Segment::drop_page)
    }

    /// `change` touches nothing that the table has an index of.
    fn for_recorded_pages(
        &mut self,
        pages: &[PageNo],
        change: impl Fn(&mut Segment, u64),
    ) -> Result<()> {
        for page in pages {
            let at = self.at(page.segment())?;
            change(&mut self.table[at], page.0 % SEGMENT_PAGES);
            self.mark_dirty(page.segment());
        }
        Ok(())
    }

    pub fn release_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        let mut touched = BTreeSet::new();
        let mut outcome = Ok(());
        for page in pages {
            let at = match self.at(page.segment()) {
                Ok(at) => at,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            if touched.insert(at) {
                self.unindex(at);
            }
            self.table[at].release_page(page.0 % SEGMENT_PAGES);
        }
        for at in touched {
            if self.table[at].free_if_unused() {
                self.mark_dirty(SegmentId(at as u32));
            }
            self.index(at);
        }
        outcome
    }

    pub fn charge(&mut self, id: SegmentId, bytes: i64) -> Result<()> {
        let at = self.at(id)?;
        let segment = &mut self.table[at];
        let (old, usage) = (segment.live_bytes(), segment.usage());
        let sum = i64::from(old) + bytes;
        let valid = u32::try_from(sum)
            .ok()
            .filter(|_| matches!(usage, Usage::Log { .. }));
        let Some(live_bytes) = valid else {
            return Err(Error::corruption(format!(
                "live bytes of {id} ({usage:?}) would become {sum}"
            )));
        };
        assert!(
            self.live_bytes >= u64::from(old),
            "the sum of live bytes is less than those of {id}"
        );
        segment.set_live_bytes(live_bytes);
        self.live_bytes = self.live_bytes - u64::from(old) + u64::from(live_bytes);
        self.mark_dirty(id);
        Ok(())
    }

    pub fn live_pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        let all = self.all();
        let trees = all.filter(|(_, segment)| segment.usage() == Usage::Tree);
        trees.flat_map(|(id, segment)| {
            let head = match (id.0 as usize).is_multiple_of(GROUP_SEGMENTS) {
                true => GROUP_HEAD_PAGES,
                false => 0,
            };
            (head..SEGMENT_PAGES)
                .filter(|page| segment.is_live(*page))
                .map(move |page| PageNo(id.first_page().0 + page))
        })
    }

    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Where the last encoded bitmap blocks of the groups stand.
    pub fn group_pointers(&self) -> impl Iterator<Item = GroupPointer> {
        self.groups.iter().filter_map(|group| group.pointer)
    }

    /// The groups that need a new bitmap block, and where their last encoded ones stand.
    pub fn dirty_groups(&self) -> Vec<(u32, Option<GroupPointer>)> {
        let groups = (0..).zip(&self.groups);
        let dirty = groups.filter(|(_, group)| group.is_dirty);
        dirty
            .map(|(number, group)| (number, group.pointer))
            .collect()
    }

    /// The bitmap block of the group was encoded.
    pub fn set_encoded(&mut self, number: u32, pointer: GroupPointer) {
        self.groups[number as usize] = Group {
            pointer: Some(pointer),
            is_dirty: false,
        };
    }

    /// Place of a segment in the table.
    fn at(&self, id: SegmentId) -> Result<usize> {
        let (at, count) = (id.0 as usize, self.table.len());
        match at < count {
            true => Ok(at),
            false => Err(Error::corruption(format!(
                "{id} lies behind the end of the volume ({count} segments)"
            ))),
        }
    }

    fn mark_dirty(&mut self, id: SegmentId) {
        if let Some(group) = self.groups.get_mut(id.0 as usize / GROUP_SEGMENTS) {
            group.is_dirty = true;
        }
    }

    /// Takes a segment out of the search structures before it changes...
    fn unindex(&mut self, at: usize) {
        let (segment, id) = (&self.table[at], at as u32);
        let was_free = self.free.remove(&id);
        debug_assert_eq!(was_free, segment.is_available(), "segment {id}");
        if was_free {
            self.free_backed -= u32::from(segment.is_backed);
            self.free_written -= u32::from(segment.is_written());
        }
        if segment.offers_pages() {
            self.roomy_pages -= segment.unused_pages();
            self.roomy.remove(&(segment.longest_run(), id));
        }
    }

    /// ... and puts it back after.
    fn index(&mut self, at: usize) {
        let (segment, id) = (&self.table[at], at as u32);
        if segment.is_available() {
            debug_assert!(
                !segment.has_used_pages(),
                "segment {id} is free and has pages in use"
            );
            self.free.insert(id);
            self.free_backed += u32::from(segment.is_backed);
            self.free_written += u32::from(segment.is_written());
        }
        if segment.offers_pages() {
            self.roomy_pages += segment.unused_pages();
            let run = segment.longest_run();
            if run > 0 {
                self.roomy.insert((run, id));
            }
        }
        debug_assert!(self.free_written <= self.free_backed);
        debug_assert!(self.free_backed <= self.free_count());
    }

    /// Builds everything that the head of this file promises anew, and compares.
    #[cfg(test)]
    pub fn assert_consistent(&self) {
        let mut fresh = Self::default();
        for (at, segment) in self.table.iter().enumerate() {
            fresh.table.push(segment.clone());
            fresh.live_bytes += u64::from(segment.live_bytes());
            fresh.index(at);
        }
        assert_eq!(self.free, fresh.free);
        assert_eq!(self.free_backed, fresh.free_backed);
        assert_eq!(self.free_written, fresh.free_written);
        assert_eq!(self.roomy, fresh.roomy);
        assert_eq!(self.roomy_pages, fresh.roomy_pages);
        assert_eq!(self.live_bytes, fresh.live_bytes);
        assert_eq!(self.groups.len(), self.table.len().div_ceil(GROUP_SEGMENTS));
    }
}
