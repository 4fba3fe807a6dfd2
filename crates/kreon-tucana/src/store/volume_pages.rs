//! Pages for nodes, from the volume.

use std::sync::Arc;

use kreon_base::{PageNo, Result};
use kreon_volume::{Allocator, Purpose};
use parking_lot::Mutex;

use crate::page_supply::PageSupply;

/// Pages that are taken at once: one call of the allocator, and neighbours on the device.
const RUN_PAGES: u64 = 64;

/// The pages of a volume.
pub(super) struct VolumePages {
    allocator: Arc<Mutex<Allocator>>,
    /// Pages that were taken, the highest first.
    run: Mutex<Vec<PageNo>>,
}

impl VolumePages {
    pub(super) fn new(allocator: Arc<Mutex<Allocator>>) -> Self {
        Self {
            allocator,
            run: Mutex::default(),
        }
    }
}

impl PageSupply for VolumePages {
    fn allocate(&self) -> Result<PageNo> {
        let mut run = self.run.lock();
        if let Some(page) = run.pop() {
            return Ok(page);
        }
        let mut allocator = self.allocator.lock();
        let (first, count) = allocator.allocate_pages(RUN_PAGES, Purpose::Put)?;
        run.extend((first.0 + 1..first.0 + count).rev().map(PageNo));
        Ok(first)
    }

    fn release(&self, pages: &[PageNo]) {
        if let Err(error) = self.allocator.lock().release_pages(pages) {
            // They are lost until the store is opened again; nothing else is.
            tracing::error!(%error, "pages were not given back");
        }
    }
}
