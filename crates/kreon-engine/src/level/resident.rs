//! Nodes in memory, for readers that must not wait for the device.

use std::cell::Cell;

use kreon_base::{Error, ErrorKind, LogOffset, PageBytes, PageNo, Result};
use kreon_format::PagePointer;
use kreon_mapping::PagesWanted;

use super::MappedNodes;
use super::source::node_priority;
use crate::tree::{Filtering, NodeSource};

/// Reads resident nodes only. The read of any other node fails and stores that node in `missing`.
pub struct ResidentNodes<'a> {
    pub nodes: MappedNodes<'a>,
    /// The last node that was not resident.
    pub missing: &'a Cell<Option<PagesWanted>>,
    /// The leaf whose filter passed the key in an earlier poll.
    pub passed: &'a Cell<Option<PageNo>>,
}

impl NodeSource for ResidentNodes<'_> {
    fn read_node<R>(
        &self,
        pointer: &PagePointer,
        height: u8,
        use_node: impl FnOnce(&PageBytes) -> Result<R>,
    ) -> Result<R> {
        self.nodes.hint(pointer, height);
        let priority = node_priority(self.nodes.level, height);
        let mapping = self.nodes.mapping;
        match mapping.read_resident(pointer.page, priority, use_node) {
            Some(outcome) => outcome,
            None => {
                self.missing.set(Some(self.nodes.wanted(pointer, height)));
                // The caller checks `missing` and discards this error.
                Err(Error::new(ErrorKind::Busy, String::new()))
            }
        }
    }

    fn prefetch(&self, _: &[PagePointer], _: u8) -> Result<()> {
        Ok(())
    }

    /// A leaf loaded after its filter passed counts as not resident, so that a false positive is counted.
    fn is_resident(&self, pointer: &PagePointer) -> bool {
        self.passed.get() != Some(pointer.page) && self.nodes.is_resident(pointer)
    }

    fn filtered(&self, leaf: &PagePointer, answer: Filtering) {
        let is_told =
            answer == Filtering::Passed && self.passed.replace(Some(leaf.page)) == Some(leaf.page);
        if !is_told {
            self.nodes.filtered(leaf, answer);
        }
    }

    /// Blocks on the device, which is acceptable because keys above 1 KiB are rare.
    fn read_key(&self, offset: LogOffset, key_bytes: u32, key: &mut Vec<u8>) -> Result<()> {
        self.nodes.read_key(offset, key_bytes, key)
    }
}
