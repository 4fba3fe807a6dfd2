//! Where a merge puts fresh nodes.

use kreon_base::{Epoch, PageBytes, PageNo, RegionId, Result};
use kreon_format::StoreId;
use kreon_mapping::Mapping;

use crate::level::source::node_priority;
use crate::tree::NodeSink;
use crate::volume::PageRuns;

/// Fresh pages of one level, written through the mapping: they are never read first and stay resident
/// as long as their priority allows.
pub struct FreshNodes<'a, 'b> {
    /// Frames of the store.
    pub mapping: &'a Mapping,
    /// Where pages come from.
    pub pages: &'b mut PageRuns<'a>,
    /// The store's identity.
    pub store: StoreId,
    /// The epoch that will make the nodes durable.
    pub epoch: Epoch,
    /// The region.
    pub region: RegionId,
    /// 1 for L1.
    pub level: u8,
}

impl NodeSink for FreshNodes<'_, '_> {
    fn allocate(&mut self) -> Result<PageNo> {
        self.pages.allocate()
    }

    fn write(&mut self, page: PageNo, height: u8, bytes: &PageBytes) -> Result<()> {
        self.mapping
            .fresh(page, node_priority(self.level, height), bytes)
    }

    fn store(&self) -> StoreId {
        self.store
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn region(&self) -> RegionId {
        self.region
    }
}
