//! Batches: changes that are carried out together.

use kreon_wire::Violation;

use crate::error::{Error, Result};
use crate::parts::Changes;
use crate::range::{KeyRange, borrowed};
use crate::region::Region;

/// Changes that [`Cluster::write`](crate::Cluster::write) carries out all or not at all. A later change of a key wins over an earlier one. The
/// batch holds copies of keys and values, 17 MiB at most, and becomes the request as it is.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    changes: Changes,
    refused: Option<Error>,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it may be split by groups, each part then being carried out by itself; anew where what lies in which group
    /// changes meanwhile. Without it a batch over several groups is refused.
    #[must_use]
    pub fn split(mut self, is_split: bool) -> Self {
        self.changes.is_split = is_split;
        self
    }

    /// Adds a put of `value` for `key`. What is not allowed, [`Cluster::write`](crate::Cluster::write) refuses.
    pub fn put(&mut self, region: &Region, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let added = self
            .changes
            .body
            .put(region.name(), key.as_ref(), value.as_ref());
        self.refuse(added, "put");
    }

    /// Adds a deletion of `key`.
    pub fn delete(&mut self, region: &Region, key: impl AsRef<[u8]>) {
        let added = self.changes.body.delete(region.name(), key.as_ref());
        self.refuse(added, "deletion");
    }

    /// Adds a deletion of all keys of a range, those included that this batch has put so far.
    pub fn delete_range(&mut self, region: &Region, range: impl KeyRange) {
        let bounds = range.into_bounds();
        let added = self
            .changes
            .body
            .delete_range(region.name(), &borrowed(&bounds));
        self.refuse(added, "deletion of a range");
    }

    fn refuse(&mut self, added: std::result::Result<(), Violation>, what: &str) {
        if let Err(violation) = added {
            self.refused.get_or_insert(Error::refused(violation, what));
        }
    }

    /// How many changes it has.
    pub fn len(&self) -> usize {
        self.changes.body.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.changes.body.is_empty()
    }

    /// Bytes of the request that it becomes.
    pub fn len_bytes(&self) -> usize {
        self.changes.body.len_bytes()
    }

    pub(crate) fn changes(self) -> Result<Changes> {
        self.refused.map_or(Ok(self.changes), Err)
    }
}
