//! Pages that are being written to the device. A page that is still in its batch when that is dropped stays dirty.

use kreon_base::PageNo;
use kreon_device::Write;

use crate::modes::MappingModes;
use crate::table::{PageTable, stripe_of};
use crate::transfer::TRANSFER_PAGES_MAX;
use crate::well::{PageState, PageWrite};

/// Dirty pages marked as being written.
pub(super) struct DirtyBatch<'a> {
    table: &'a PageTable,
    writing: Vec<PageWrite<'a>>,
}

/// A number that does not depend on where the page is.
const fn scattered(page: PageNo) -> u64 {
    page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

impl<'a> DirtyBatch<'a> {
    /// Those of the sorted pages that are dirty and not being written by another thread.
    pub(super) fn of_pages(table: &'a PageTable, pages: &[PageNo]) -> Self {
        debug_assert!(pages.is_sorted());
        let mut writing = Vec::with_capacity(pages.len());
        for in_stripe in pages.chunk_by(|page, next| stripe_of(*page) == stripe_of(*next)) {
            let Some(first) = in_stripe.first() else {
                continue;
            };
            let locked = table.lock(*first);
            let begun = in_stripe
                .iter()
                .filter_map(|page| locked.begin_write(*page));
            writing.extend(begun);
        }
        Self { table, writing }
    }

    /// Up to `pages_max` dirty pages of sorted stripes. Also returns how many stripes are done, and adds pages that
    /// other threads are writing to `elsewhere`.
    pub(super) fn of_stripes(
        table: &'a PageTable,
        stripes: &[u64],
        pages_max: usize,
        elsewhere: &mut Vec<PageNo>,
    ) -> (Self, usize) {
        debug_assert!(stripes.is_sorted());
        let mut batch = Self {
            table,
            writing: Vec::new(),
        };
        for (i, &stripe) in stripes.iter().enumerate() {
            let locked = table.lock_stripe(stripe);
            for (page, state) in table.space().stripe(stripe) {
                match state {
                    PageState::Resident { writing: true, .. } => elsewhere.push(page),
                    PageState::Resident { dirty: true, .. } => {
                        if batch.writing.len() >= pages_max {
                            return (batch, i);
                        }
                        batch.writing.extend(locked.begin_write(page));
                    }
                    _ => {}
                }
            }
        }
        (batch, stripes.len())
    }

    /// The page, if it is dirty once no other thread is writing it.
    pub(super) fn of_page(table: &'a PageTable, page: PageNo) -> Option<Self> {
        let mut locked = table.lock(page);
        while let PageState::Resident { writing: true, .. } = table.space().state(page) {
            locked.wait();
        }
        let writing = vec![locked.begin_write(page)?];
        Some(Self { table, writing })
    }

    pub(super) fn len(&self) -> usize {
        self.writing.len()
    }

    /// Puts the pages into the order in which they are written: by page number, unless `modes` say otherwise.
    pub(super) fn arrange(&mut self, modes: &MappingModes) {
        if !modes.sorts_writes() {
            self.writing
                .sort_unstable_by_key(|writing| scattered(writing.page()));
        }
    }

    /// The transfers: neighbours in one if `modes` say so.
    pub(super) fn transfers(&self, modes: &MappingModes) -> Vec<Write<'_>> {
        let mut writes: Vec<Write<'_>> = Vec::new();
        let mut next = None;
        for writing in &self.writing {
            let page = writing.page();
            let bytes = writing.bytes().as_slice();
            match writes.last_mut() {
                Some(run)
                    if modes.merges_writes()
                        && next == Some(page)
                        && run.buffers.len() < TRANSFER_PAGES_MAX =>
                {
                    run.buffers.push(bytes);
                }
                _ => writes.push(Write::new(page.offset_bytes(), bytes)),
            }
            next = Some(PageNo(page.0 + 1));
        }
        writes
    }

    /// The writes have ended: the pages are clean if the device took them, else as dirty as before.
    pub(super) fn end(&mut self, taken: bool) {
        for writing in self.writing.drain(..) {
            self.table.lock(writing.page()).end_write(writing, taken);
        }
    }
}

impl Drop for DirtyBatch<'_> {
    fn drop(&mut self) {
        self.end(false);
    }
}
