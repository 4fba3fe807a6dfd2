//! Allocates, writes and counts the fresh pages of a merge.

use kreon_base::{PageBytes, Result};
use kreon_format::NodeIdentity;

use super::NodeSink;

pub(super) struct FreshPages<'k, K> {
    sink: &'k mut K,
    pub(super) leaves: u64,
    pub(super) indexes: u64,
}

impl<'k, K: NodeSink> FreshPages<'k, K> {
    pub(super) fn new(sink: &'k mut K) -> Self {
        Self {
            sink,
            leaves: 0,
            indexes: 0,
        }
    }

    /// Allocates a page for a node of `level`. The caller must write it.
    pub(super) fn place(&mut self, level: u8) -> Result<NodeIdentity> {
        Ok(NodeIdentity {
            store: self.sink.store(),
            page: self.sink.allocate()?,
            epoch: self.sink.epoch(),
            region: self.sink.region(),
            level,
        })
    }

    /// Writes the sealed node.
    pub(super) fn write(&mut self, identity: &NodeIdentity, bytes: &PageBytes) -> Result<()> {
        match identity.level {
            0 => self.leaves += 1,
            _ => self.indexes += 1,
        }
        self.sink.write(identity.page, identity.level, bytes)
    }
}
