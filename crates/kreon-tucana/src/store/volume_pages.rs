//! Pages for nodes, from the volume.
//!
//! New data takes pages only while the reserve of the volume is whole, and before it changes anything: it
//! [stocks](VolumePages::stock) more than it needs. What runs out of the stock all the same, deletions and collection take
//! pages of the reserve: their commit frees others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kreon_base::{PageNo, Result};
use kreon_volume::{Allocator, Purpose};
use parking_lot::Mutex;

use crate::page_supply::PageSupply;

/// Pages that are taken at once: one call of the allocator, and neighbours on the device.
const RUN_PAGES: u64 = 64;

/// A write of new data begins with as many: the nodes on the way to a leaf and their new neighbours, of several writers.
const STOCK_PAGES: usize = 32;

/// The pages of a volume.
pub(super) struct VolumePages {
    allocator: Arc<Mutex<Allocator>>,
    /// Pages that were taken, the highest first.
    run: Mutex<Vec<PageNo>>,
    count: AtomicUsize,
}

impl VolumePages {
    pub(super) fn new(allocator: Arc<Mutex<Allocator>>) -> Self {
        Self {
            allocator,
            run: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Takes pages for new data.
    ///
    /// # Errors
    /// `OutOfSpace`; those of the device.
    #[inline]
    pub(super) fn stock(&self) -> Result<()> {
        match self.count.load(Relaxed) < STOCK_PAGES {
            true => self.take(&mut self.run.lock(), STOCK_PAGES, Purpose::Put),
            false => Ok(()),
        }
    }

    fn take(&self, run: &mut Vec<PageNo>, wanted: usize, purpose: Purpose) -> Result<()> {
        while run.len() < wanted {
            let mut allocator = self.allocator.lock();
            let (first, count) = allocator.allocate_pages(RUN_PAGES, purpose)?;
            let pages = (first.0..first.0 + count).rev().map(PageNo);
            run.splice(0..0, pages);
            self.count.store(run.len(), Relaxed);
        }
        Ok(())
    }
}

impl PageSupply for VolumePages {
    fn allocate(&self) -> Result<PageNo> {
        let mut run = self.run.lock();
        if run.is_empty() {
            self.take(&mut run, 1, Purpose::Maintenance)?;
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
