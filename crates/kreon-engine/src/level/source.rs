//! Nodes through the mapping.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, LogOffset, PageBytes, Priority, RegionId, Result};
use kreon_format::{PagePointer, StoreId, check_node};
use kreon_mapping::{Mapping, PageRequest, PagesWanted};

use super::GetCounts;
use super::log_source::{LOG_PRIORITY, MappedLog};
use crate::tree::{Filtering, NodeSource};
use kreon_log::Log;

/// Added to the priority of leaves, so that leaves of any level are evicted before index nodes of 64 levels.
const LEAVES_BEHIND: u8 = 128;

/// Eviction priority of a node: 2i - 1 for index nodes of level i, 128 + 2i for its leaves. `height` is 0
/// for a leaf.
///
/// In `Kreon 3.3.1` leaves of level i outlive index nodes of level i + 1. Here index nodes hold the filters that
/// every get asks, while a get seldom reads leaves of more than one level.
pub fn node_priority(level: u8, height: u8) -> Priority {
    let twice = level.saturating_mul(2);
    Priority(match height {
        0 => (twice & !1).saturating_add(LEAVES_BEHIND).min(254),
        _ => twice.saturating_sub(1).min(253),
    })
}

/// Bytes that a search in a leaf reads first: header, heads and slots of a hundred entries.
const LEAF_FRONT_BYTES: usize = 1088;

/// The same in an index node, whose entries have filters.
const INDEX_FRONT_BYTES: usize = 320;

/// Whether pages of this priority are leaves.
pub fn is_leaf_priority(priority: Priority) -> bool {
    priority != LOG_PRIORITY && priority.0.is_multiple_of(2)
}

/// The nodes of one level of one region.
pub struct MappedNodes<'a> {
    /// Frames of the store.
    pub mapping: &'a Mapping,
    /// The log, for the rest of long keys.
    pub log: &'a Log,
    /// The store's identity.
    pub store: StoreId,
    /// The region.
    pub region: RegionId,
    /// 1 for L1.
    pub level: u8,
    /// Counters for gets; none for other readers.
    pub counts: Option<&'a Arc<GetCounts>>,
    /// Never wait for the device: reads of other than resident nodes, and of long keys, fail with `Busy`.
    pub resident_only: bool,
}

impl MappedNodes<'_> {
    /// The request to load a node in the background.
    pub fn wanted(&self, pointer: &PagePointer, height: u8) -> PagesWanted {
        let (store, pointer) = (self.store, *pointer);
        let counts = self.counts.cloned();
        PagesWanted {
            first: pointer.page,
            count: 1,
            priority: node_priority(self.level, height),
            check: Some(Arc::new(move |bytes: &PageBytes| {
                if let Some(counts) = &counts {
                    counts.read(height);
                }
                check_node(bytes, store, &pointer, height)
            })),
        }
    }

    /// Prefetches the cache lines that a search in the node reads first, so that their misses overlap: header, prefix,
    /// heads and slots.
    #[inline]
    pub fn hint(&self, pointer: &PagePointer, height: u8) {
        let front_bytes = match height {
            0 => LEAF_FRONT_BYTES,
            _ => INDEX_FRONT_BYTES,
        };
        self.mapping.hint_ends(pointer.page, front_bytes);
    }

    /// Counts and checks a node from the device.
    fn take(&self, bytes: &PageBytes, pointer: &PagePointer, height: u8) -> Result<()> {
        if let Some(counts) = self.counts {
            counts.read(height);
        }
        check_node(bytes, self.store, pointer, height)
    }
}

impl NodeSource for MappedNodes<'_> {
    fn read_node<R>(
        &self,
        pointer: &PagePointer,
        height: u8,
        use_node: impl FnOnce(&PageBytes) -> Result<R>,
    ) -> Result<R> {
        self.hint(pointer, height);
        let check = |bytes: &PageBytes| self.take(bytes, pointer, height);
        let priority = node_priority(self.level, height);
        let request = PageRequest {
            page: pointer.page,
            priority,
            check: &check,
        };
        if self.resident_only {
            let found = self.mapping.read_resident(pointer.page, priority, use_node);
            return found.unwrap_or_else(|| Err(Error::new(ErrorKind::Busy, String::new())));
        }
        self.mapping.read(request, use_node)?
    }

    fn prefetch(&self, pointers: &[PagePointer], height: u8) -> Result<()> {
        if self.resident_only {
            return Ok(());
        }
        let checks: Vec<_> = pointers
            .iter()
            .map(|pointer| move |bytes: &PageBytes| self.take(bytes, pointer, height))
            .collect();
        let priority = node_priority(self.level, height);
        let requests: Vec<_> = pointers
            .iter()
            .zip(&checks)
            .map(|(pointer, check)| PageRequest {
                page: pointer.page,
                priority,
                check,
            })
            .collect();
        self.mapping.prefetch(&requests)
    }

    fn is_resident(&self, pointer: &PagePointer) -> bool {
        self.mapping.is_resident(pointer.page)
    }

    fn filtered(&self, _leaf: &PagePointer, answer: Filtering) {
        if let Some(counts) = self.counts {
            counts.filtered(answer);
        }
    }

    fn read_key(&self, offset: LogOffset, key_bytes: u32, key: &mut Vec<u8>) -> Result<()> {
        if self.resident_only {
            return Err(Error::new(ErrorKind::Busy, String::new()));
        }
        let pages = MappedLog {
            mapping: self.mapping,
        };
        self.log.reader().read_key(&pages, offset, key_bytes, key)
    }
}
