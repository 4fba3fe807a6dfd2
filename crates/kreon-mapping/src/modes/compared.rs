//! The variants, and which is which.

use kreon_device::MapAdvice;

use super::EVICT_BATCH_MAX;

/// Variants that experiments compare. The default measured best; the others have no other use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingModes {
    /// Where clean pages are read.
    pub backend: Backend,
    /// When single records are kept without the pages around them.
    pub records: KeepRecords,
    /// Which pages are evicted first.
    pub eviction: Eviction,
    /// How dirty pages become transfers.
    pub writeback: Writeback,
    /// Most transfers of a prefetch or a writeback in flight at once. 1: one after the other.
    pub depth_max: usize,
    /// Most pages that are evicted for one frame that is wanted, at least 1.
    pub evict_batch_max: usize,
    /// Locks over which the state of the pages is spread; 0: as many as the options of the mapping say.
    pub shards: usize,
    /// Lists of free frames, each with a lock; 0: as many as shards.
    pub free_lists: usize,
    /// Whether a page that gets new content is read from the device first, as a write fault of the kernel's mapping does.
    pub fresh_reads: bool,
}

/// Where clean pages are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// In frames.
    #[default]
    Pool,
    /// In the page cache, through the kernel's mapping of the volume. The device must not use direct I/O. Frames hold
    /// dirty pages only, in an eighth of the memory; the rest is left to the page cache. No single records are
    /// kept.
    Mmap(MapAdvice),
}

/// When records are kept by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRecords {
    /// Pages only.
    Never,
    /// When free frames are few. While they are plenty, whole pages are kept: a resident page is found without a lock and
    /// read without a copy.
    #[default]
    Scarce,
    /// Also while frames are plenty.
    Always,
}

/// Which pages are evicted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// The oldest of the highest priority number.
    #[default]
    Priority,
    /// The oldest, whatever their priority.
    Fifo,
}

/// How dirty pages become transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writeback {
    /// Sorted, neighbours in one transfer.
    #[default]
    Merged,
    /// Sorted, a transfer for each.
    Sorted,
    /// In no order, a transfer for each.
    Unsorted,
}

impl Default for MappingModes {
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            records: KeepRecords::default(),
            eviction: Eviction::default(),
            writeback: Writeback::default(),
            depth_max: usize::MAX,
            evict_batch_max: EVICT_BATCH_MAX,
            shards: 0,
            free_lists: 0,
            fresh_reads: false,
        }
    }
}

impl MappingModes {
    /// Whether clean pages are read from the page cache. The device must not use direct I/O then.
    pub fn reads_page_cache(&self) -> bool {
        self.backend != Backend::Pool
    }

    /// Whether there are single records.
    pub(crate) fn keeps_records(&self) -> bool {
        !self.reads_page_cache() && self.records != KeepRecords::Never
    }

    /// Whether whole pages are kept while frames are plenty.
    pub(crate) fn prefers_pages(&self) -> bool {
        self.records == KeepRecords::Scarce
    }

    /// Whether priorities say which pages are evicted first.
    pub(crate) fn evicts_by_priority(&self) -> bool {
        self.eviction == Eviction::Priority
    }

    /// Whether dirty pages are written in the order of their numbers.
    pub(crate) fn sorts_writes(&self) -> bool {
        self.writeback != Writeback::Unsorted
    }

    /// Whether dirty neighbours are written in one transfer.
    pub(crate) fn merges_writes(&self) -> bool {
        self.writeback == Writeback::Merged
    }

    /// Most transfers of a call that are in flight at once, at least 1.
    pub(crate) fn depth_max(&self) -> usize {
        self.depth_max.max(1)
    }

    /// Most frames that are evicted for one that is wanted, at least 1.
    pub(crate) fn evict_batch_max(&self) -> usize {
        self.evict_batch_max.max(1)
    }

    /// How many shards there are, where the options say `of_options`; 0: whoever plans them chooses.
    pub(crate) fn shards(&self, of_options: usize) -> usize {
        match self.shards {
            0 => of_options,
            shards => shards,
        }
    }

    /// Lists of free frames beside `shards` shards.
    pub(crate) fn free_lists(&self, shards: usize) -> usize {
        match self.free_lists {
            0 => shards,
            lists => lists,
        }
    }

    /// Whether a page that gets new content is read first.
    pub(crate) fn reads_before_fresh(&self) -> bool {
        self.fresh_reads
    }
}
