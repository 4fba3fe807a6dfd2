//! The nodes that are in memory, for those who must not wait for the device.

use std::cell::Cell;

use kreon_base::{Error, ErrorKind, LogOffset, PageBytes, PageNo, Result};
use kreon_format::PagePointer;
use kreon_mapping::PagesWanted;

use super::MappedNodes;
use super::source::node_priority;
use crate::tree::{Filtering, NodeSource};

/// Nodes as long as they are resident. Reads of a node that is not fail, and tell which it was.
pub struct ResidentNodes<'a> {
    pub nodes: MappedNodes<'a>,
    /// The last one that was not.
    pub missing: &'a Cell<Option<PagesWanted>>,
    /// The leaf that a filter let the key pass to in an earlier poll.
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
                // Seen by nobody.
                Err(Error::new(ErrorKind::Busy, String::new()))
            }
        }
    }

    fn prefetch(&self, _: &[PagePointer], _: u8) -> Result<()> {
        Ok(())
    }

    /// A leaf that was loaded since its filter was asked is no hit: what comes of it is to be counted.
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

    /// The rests of long keys are read waiting: they are as rare as keys of more than 1 KiB.
    fn read_key(&self, offset: LogOffset, key_bytes: u32, key: &mut Vec<u8>) -> Result<()> {
        self.nodes.read_key(offset, key_bytes, key)
    }
}
