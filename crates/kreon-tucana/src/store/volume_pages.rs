//! Pages for nodes, from the volume.
//!
//! New data takes pages only while the reserve of the volume is whole, and before it changes anything: it
//! [stocks](VolumePages::stock) more than it needs. What runs out of the stock all the same, deletions and collection take
//! pages of the reserve: their commit frees others.
//!
//! A few pages are [kept](VolumePages::keep) from all of them: when nothing else is left after a crash, the replay of the next opening
//! has these for the nodes on the way of one record, and commits, which gives the ones back that they replace.

use std::sync::Arc;

use kreon_base::{PageNo, Result};
use kreon_sync::{AtomicUsize, Mutex, Ordering::Relaxed};
use kreon_volume::{Allocator, Purpose};

use super::home::out_of_space;
use crate::page_supply::PageSupply;

/// Pages that are taken at once: one call of the allocator, and neighbours on the device.
const RUN_PAGES: u64 = 64;

/// Pages that only a replay takes: a tree is less than ten nodes high, and each of them may get a new neighbour.
const KEPT_PAGES: usize = 32;

/// A write of new data begins with as many more: the nodes on the way to a leaf and their new neighbours, of several writers.
const STOCK_PAGES: usize = 32;

/// The pages of a volume.
pub(super) struct VolumePages {
    allocator: Arc<Mutex<Allocator>>,
    /// Pages that were taken, the highest first.
    run: Mutex<Vec<PageNo>>,
    count: AtomicUsize,
    /// So many of them are not given to anybody.
    kept: AtomicUsize,
}

impl VolumePages {
    pub(super) fn new(allocator: Arc<Mutex<Allocator>>) -> Self {
        Self {
            allocator,
            run: Mutex::default(),
            count: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
        }
    }

    /// Keeps some pages back from now on: what was to be replayed is in the tree.
    pub(super) fn keep(&self) {
        self.kept.store(KEPT_PAGES, Relaxed);
    }

    /// Takes pages for new data.
    ///
    /// # Errors
    /// `OutOfSpace`; those of the device.
    #[inline]
    pub(super) fn stock(&self) -> Result<()> {
        let wanted = self.kept.load(Relaxed) + STOCK_PAGES;
        match self.count.load(Relaxed) < wanted {
            true => self.take(&mut self.run.lock(), wanted, Self::for_new_data),
            false => Ok(()),
        }
    }

    fn take(
        &self,
        run: &mut Vec<PageNo>,
        wanted: usize,
        allocate: impl Fn(&Self) -> Result<(PageNo, u64)>,
    ) -> Result<()> {
        while run.len() < wanted {
            let (first, count) = allocate(self)?;
            let pages = (first.0..first.0 + count).rev().map(PageNo);
            run.splice(0..0, pages);
            self.count.store(run.len(), Relaxed);
        }
        Ok(())
    }

    fn for_new_data(&self) -> Result<(PageNo, u64)> {
        let mut allocator = self.allocator.lock();
        allocator.allocate_pages(RUN_PAGES, Purpose::Put)
    }

    /// Pages of the reserve. Where new data gets none, these are unused ones of segments that hold nodes: the last free segments are
    /// for the log, which can do with no less, while a commit gives the pages back that were copied.
    fn of_the_reserve(&self) -> Result<(PageNo, u64)> {
        let is_replay = self.kept.load(Relaxed) == 0;
        let mut allocator = self.allocator.lock();
        if is_replay || allocator.room_bytes() > 0 {
            return allocator.allocate_pages(RUN_PAGES, Purpose::Maintenance);
        }
        let free = allocator.free_segment_count();
        let (page, count) = allocator.allocate_pages(1, Purpose::Maintenance)?;
        if allocator.free_segment_count() < free {
            allocator.release_pages(&[page])?;
            return Err(out_of_space("changed nodes before the next commit"));
        }
        Ok((page, count))
    }
}

impl PageSupply for VolumePages {
    fn allocate(&self) -> Result<PageNo> {
        let mut run = self.run.lock();
        let kept = self.kept.load(Relaxed);
        if run.len() <= kept {
            self.take(&mut run, kept + 1, Self::of_the_reserve)?;
        }
        let page = run.pop();
        self.count.store(run.len(), Relaxed);
        page.ok_or_else(|| kreon_base::Error::invalid("a run without a page"))
    }

    fn release(&self, pages: &[PageNo]) {
        if let Err(error) = self.allocator.lock().release_pages(pages) {
            // They are lost until the store is opened again; nothing else is.
            tracing::error!(%error, "pages were not given back");
        }
    }
}
