//! Building a tree at once.

use kreon_base::{Error, LogOffset, PageBytes, PageNo, Result};
use kreon_format::{PagePointer, TreeRecord};

use super::{Changes, EntryStream, MergeRules, NodeSink, NodeSource, Reference, merge};

/// Builds a tree from `input` alone, as a merge into an empty tree does; `referenced` is told of every
/// entry that points at a record. Leaves get consecutive pages. Nothing is read.
pub fn build<K: NodeSink, I: EntryStream>(
    sink: &mut K,
    input: &mut I,
    rules: &MergeRules<'_>,
    referenced: impl FnMut(Reference),
) -> Result<TreeRecord> {
    let empty = TreeRecord::default();
    merge(&Nothing, sink, &empty, input, rules, &mut Added(referenced))
}

/// The source of an empty tree: it is never asked.
struct Nothing;

impl NodeSource for Nothing {
    fn read_node<R>(
        &self,
        pointer: &PagePointer,
        _level: u8,
        _use_node: impl FnOnce(&PageBytes) -> Result<R>,
    ) -> Result<R> {
        let page = pointer.page;
        Err(Error::corruption(format!("{page} of an empty tree")))
    }

    fn prefetch(&self, _pointers: &[PagePointer], _level: u8) -> Result<()> {
        Ok(())
    }

    fn read_key(&self, offset: LogOffset, _key_bytes: u32, _key: &mut Vec<u8>) -> Result<()> {
        Err(Error::corruption(format!("{offset} of an empty tree")))
    }
}

struct Added<F>(F);

impl<F: FnMut(Reference)> Changes for Added<F> {
    fn freed(&mut self, _page: PageNo) {}

    fn referenced(&mut self, record: Reference) {
        (self.0)(record);
    }

    fn dropped(&mut self, _record: Reference) {}
}
