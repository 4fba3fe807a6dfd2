//! What the last checkpoint recorded, beside the allocator's bitmap.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{Epoch, Incarnation, Lsn, PageNo, RegionId, RegionOptions};
use kreon_format::{ImagePart, PagePointer, TreeRecord};

use super::MadeRegions;
use crate::by_region::{ByRegion, Chunk};

/// A region that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    /// Its name, unique among those that exist.
    pub name: Arc<str>,
    /// What it has of its own.
    pub options: RegionOptions,
}

/// What the durable catalogue has in pages of their own, by the number of the chunk.
pub type WrittenRegions = BTreeMap<u32, WrittenChunk>;

/// Regions that the durable catalogue has in pages of their own.
#[derive(Clone, Debug)]
pub struct WrittenChunk {
    /// As they were written.
    pub regions: Arc<Chunk<RegionEntry>>,
    /// Their trees.
    pub trees: Option<Arc<Chunk<Vec<TreeRecord>>>>,
    /// The pages.
    pub pages: Arc<[PagePointer]>,
}

impl WrittenChunk {
    /// Whether it has just these regions and trees. Shared chunks never change.
    pub fn is_of(
        &self,
        regions: &Arc<Chunk<RegionEntry>>,
        trees: Option<&Arc<Chunk<Vec<TreeRecord>>>>,
    ) -> bool {
        let are_same = self.trees.as_ref().map(Arc::as_ptr) == trees.map(Arc::as_ptr);
        are_same && Arc::ptr_eq(&self.regions, regions)
    }

    /// Numbers of the pages.
    pub fn page_numbers(&self) -> impl Iterator<Item = PageNo> {
        self.pages.iter().map(|pointer| pointer.page)
    }
}

/// The durable state's bookkeeping. Its lock is held for a whole checkpoint: checkpoints do not
/// overlap.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The durable epoch.
    pub epoch: Epoch,
    /// This run's number.
    pub incarnation: Incarnation,
    /// Regions from this number on are in the log alone.
    pub next_region: RegionId,
    /// The regions that exist, of those before.
    pub regions: ByRegion<RegionEntry>,
    /// Behind the record that made the last of them. In memory alone: the log is to be durable up to there before the
    /// catalogue that has them is, or a region would outlive buffered writes from before it.
    pub made_end: Lsn,
    /// Every write before is in the levels: replay starts here, or where the image ends.
    pub marker: Lsn,
    /// Every moved record before is in the levels, or nothing points at it. In memory alone: no run knows which
    /// records the one before it had moved and not spilled.
    pub moved_marker: Lsn,
    /// The image of L0 and L0', as far as there is one.
    pub image: Vec<ImagePart>,
    /// The one that this run found could not be read.
    pub found_damaged_image: bool,
    /// Pages of the durable catalogue, but for those of `written`.
    pub catalogue_pages: Vec<PageNo>,
    /// Its regions, if they stand in pages of their own.
    pub written: Arc<WrittenRegions>,
    /// From where on loads under way have records in the log that no tree points at yet, by region. In
    /// memory alone: a load does not outlive its run.
    pub loads: BTreeMap<RegionId, Lsn>,
}

impl Ledger {
    /// Moves the replay marker to `position`, if there is one and it lies further on.
    pub fn advance(&mut self, position: Option<Lsn>) {
        self.marker = position.map_or(self.marker, |position| position.max(self.marker));
    }

    /// Log segments before this that have no live byte can be freed.
    pub fn log_needed_from(&self) -> Lsn {
        let loads = self.loads.values().copied().min();
        loads.map_or(self.marker, |from| from.min(self.marker))
    }

    /// The ledger to change for a checkpoint: it knows the regions that were made since the last one, too.
    pub fn with_made(&self, made: &MadeRegions) -> Self {
        let mut ledger = self.clone();
        made.each(|region| {
            let entry = RegionEntry {
                name: Arc::clone(&region.name),
                options: region.options,
            };
            ledger.regions.insert(region.id, entry);
            ledger.next_region = RegionId(region.id.0.saturating_add(1));
            ledger.made_end = region.end;
        });
        ledger
    }

    /// All pages of the durable catalogue.
    pub fn pages(&self) -> impl Iterator<Item = PageNo> {
        let written = self.written.values().flat_map(WrittenChunk::page_numbers);
        self.catalogue_pages.iter().copied().chain(written)
    }

    /// Where a replay would start.
    pub fn replay_start(&self) -> Lsn {
        self.image.last().map_or(self.marker, |part| part.end)
    }
}
