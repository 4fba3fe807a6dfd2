//! The only way: the one that measured best.

use super::EVICT_BATCH_MAX;

/// How a mapping works. There is nothing to choose without the feature `comparison`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappingModes;

impl MappingModes {
    /// Whether clean pages are read from the page cache: they never are, all are read in frames.
    pub const fn reads_page_cache(&self) -> bool {
        false
    }

    /// Whether there are single records.
    pub(crate) const fn keeps_records(&self) -> bool {
        true
    }

    /// Whether whole pages are kept while frames are plenty: a resident page is found without a lock and read without a
    /// copy.
    pub(crate) const fn prefers_pages(&self) -> bool {
        true
    }

    /// Whether priorities say which pages are evicted first.
    pub(crate) const fn evicts_by_priority(&self) -> bool {
        true
    }

    /// Whether dirty pages are written in the order of their numbers.
    pub(crate) const fn sorts_writes(&self) -> bool {
        true
    }

    /// Whether dirty neighbours are written in one transfer.
    pub(crate) const fn merges_writes(&self) -> bool {
        true
    }

    /// Most transfers of a call that are in flight at once.
    pub(crate) const fn depth_max(&self) -> usize {
        usize::MAX
    }

    /// Most frames that are evicted for one that is wanted.
    pub(crate) const fn evict_batch_max(&self) -> usize {
        EVICT_BATCH_MAX
    }

    /// How many shards there are: as the options say.
    pub(crate) const fn shards(&self, of_options: usize) -> usize {
        of_options
    }

    /// Lists of free frames: one for each shard.
    pub(crate) const fn free_lists(&self, shards: usize) -> usize {
        shards
    }

    /// Whether a page that gets new content is read first: it never is.
    pub(crate) const fn reads_before_fresh(&self) -> bool {
        false
    }
}
