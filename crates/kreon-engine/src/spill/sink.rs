//! The sink for fresh nodes of a merge.

use kreon_base::{Epoch, PageBytes, PageNo, RegionId, Result};
use kreon_format::StoreId;

use crate::level::source::node_priority;
use crate::state::Storage;
use crate::tree::NodeSink;
use kreon_volume::PageRuns;

/// Fresh pages per write during the merge (1 MiB): enough for the device's full rate, too few to delay readers. The
/// commit writes only the rest of the last batch of each sink.
const WRITE_PAGES: usize = 256;

/// Writes fresh pages of one level through the mapping, without reading them first. They stay resident as long as their
/// priority allows.
pub struct FreshNodes<'a, 'b> {
    storage: &'a Storage,
    pages: &'b mut PageRuns<'a>,
    epoch: Epoch,
    region: RegionId,
    level: u8,
    unwritten: Vec<PageNo>,
}

impl<'a, 'b> FreshNodes<'a, 'b> {
    /// A sink into `pages` for nodes of the epoch that will make them durable, of a region and of a level (1 for L1).
    pub fn new(
        storage: &'a Storage,
        pages: &'b mut PageRuns<'a>,
        (epoch, region, level): (Epoch, RegionId, u8),
    ) -> Self {
        Self {
            storage,
            pages,
            epoch,
            region,
            level,
            unwritten: Vec::with_capacity(WRITE_PAGES),
        }
    }
}

impl NodeSink for FreshNodes<'_, '_> {
    fn allocate(&mut self) -> Result<PageNo> {
        self.pages.allocate()
    }

    fn write(&mut self, page: PageNo, height: u8, bytes: &PageBytes) -> Result<()> {
        let priority = node_priority(self.level, height);
        self.storage.mapping.fresh(page, priority, bytes)?;
        self.unwritten.push(page);
        if self.unwritten.len() >= WRITE_PAGES {
            // What cannot be committed any more ends here: a store that is abandoned waits for it.
            self.storage.poison.check()?;
            self.storage.mapping.write_back(&mut self.unwritten)?;
            self.unwritten.clear();
        }
        Ok(())
    }

    fn store(&self) -> StoreId {
        self.storage.store
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn region(&self) -> RegionId {
        self.region
    }
}
