//! Consecutive pages for one writer of nodes.
//!
//! Every page that was handed out is either returned by `finish` or goes back to the allocator on drop.

use kreon_base::{PageNo, Result};
use kreon_mapping::Mapping;
use kreon_sync::RankedMutex;

use super::allocator::Allocator;
use super::purpose::Purpose;
use super::tuning::WRITER_RUN_PAGES;

/// Hands out consecutive pages from the longest runs of the volume. It remembers all of them, and gives them back when a
/// spill is abandoned.
pub struct PageRuns<'a> {
    allocator: &'a RankedMutex<Allocator>,
    mapping: &'a Mapping,
    purpose: Purpose,
    is_packed: bool,
    next: PageNo,
    left: u64,
    handed_out: Vec<PageNo>,
}

impl<'a> PageRuns<'a> {
    /// Starts without any page, for maintenance.
    pub fn new(allocator: &'a RankedMutex<Allocator>, mapping: &'a Mapping) -> Self {
        Self::with_purpose(allocator, mapping, Purpose::Maintenance)
    }

    /// Starts without any page, for a tree that is packed.
    pub fn packed(allocator: &'a RankedMutex<Allocator>, mapping: &'a Mapping) -> Self {
        let mut runs = Self::new(allocator, mapping);
        runs.is_packed = true;
        runs
    }

    /// Starts without any page.
    pub fn with_purpose(
        allocator: &'a RankedMutex<Allocator>,
        mapping: &'a Mapping,
        purpose: Purpose,
    ) -> Self {
        Self {
            allocator,
            mapping,
            purpose,
            is_packed: false,
            next: PageNo(0),
            left: 0,
            handed_out: Vec::new(),
        }
    }

    /// The next page.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub fn allocate(&mut self) -> Result<PageNo> {
        if self.left == 0 {
            let mut allocator = self.allocator.lock();
            (self.next, self.left) = match self.is_packed {
                true => allocator.allocate_packed(WRITER_RUN_PAGES)?,
                false => allocator.allocate_pages(WRITER_RUN_PAGES, self.purpose)?,
            };
        }
        let page = self.next;
        self.next = PageNo(page.0 + 1);
        self.left -= 1;
        self.handed_out.push(page);
        Ok(page)
    }

    /// Ends the writing: returns the pages that were handed out; the unused rest of the run goes back.
    pub fn finish(mut self) -> Result<Vec<PageNo>> {
        self.give_back_rest()?;
        Ok(std::mem::take(&mut self.handed_out))
    }

    fn give_back_rest(&mut self) -> Result<()> {
        let rest: Vec<_> = (self.next.0..self.next.0 + self.left).map(PageNo).collect();
        self.left = 0;
        self.allocator.lock().release_pages(&rest)
    }
}

impl Drop for PageRuns<'_> {
    /// Without [`Self::finish`] the work was abandoned, and all pages go back. Their frames are discarded first, so that
    /// no late writeback hits a page with a new owner.
    fn drop(&mut self) {
        let all = std::mem::take(&mut self.handed_out);
        discard(self.mapping, &all);
        // Both fail only for pages behind the end of the volume, and these came from the allocator.
        let _ = self.give_back_rest();
        let _ = self.allocator.lock().release_pages(&all);
    }
}

/// Discards the frames of pages, neighbours in one call: one lock for many pages.
pub fn discard(mapping: &Mapping, pages: &[PageNo]) {
    for run in pages.chunk_by(|page, next| page.0.checked_add(1) == Some(next.0)) {
        if let Some(first) = run.first() {
            mapping.discard(*first, run.len() as u64);
        }
    }
}
