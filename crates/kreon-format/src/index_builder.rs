//! Building an index node from children in order.

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result};

use crate::index::TAG_AMBIGUOUS;
use crate::node_draft::{NodeDraft, Plan, room_of_three};
use crate::{LONG_KEY_STORED_BYTES, NodeIdentity, PAGE_POINTER_BYTES, PagePointer, Pivot};

// Three maximal pivots with four children fit in any node.
const _: () = assert!(room_of_three(PAGE_POINTER_BYTES) > PAGE_POINTER_BYTES);

/// Builds index nodes, one after the other, from children in order.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    first: Option<PagePointer>,
    draft: NodeDraft,
}

impl IndexBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the builder.
    pub fn clear(&mut self) {
        self.first = None;
        self.draft.clear();
    }

    /// Number of children pushed since the last finish.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.draft.len()
    }

    /// Whether no child was pushed since the last finish.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Bytes of the page that the children take, header included; at most [`PAGE_BYTES`]. Exact.
    pub fn used_bytes(&self) -> usize {
        self.draft.used_bytes() + self.first.map_or(0, |_| PAGE_POINTER_BYTES)
    }

    /// Whether [`push`](Self::push) of a child behind `pivot` will succeed. Exact.
    pub fn fits(&self, pivot: &Pivot) -> bool {
        self.is_empty() || self.admit(pivot).is_ok()
    }

    /// Adds a child behind the others; `pivot` separates it from the one before. The pivot of a
    /// node's first child may be anything: it is not stored in the node, but belongs to the parent,
    /// where it separates this node from the one before.
    ///
    /// Fails with `InvalidArgument`, changing nothing, if there is no room, or the pivot is longer
    /// than [`LONG_KEY_STORED_BYTES`] or out of order.
    pub fn push(&mut self, pivot: &Pivot, child: PagePointer) -> Result<()> {
        if self.is_empty() {
            self.first = Some(child);
            return Ok(());
        }
        let plan = self.admit(pivot)?;
        let tag = if pivot.ambiguous { TAG_AMBIGUOUS } else { 0 };
        self.draft
            .push(plan, &pivot.bytes, tag, [&child.encode(), &[]]);
        Ok(())
    }

    /// Writes the node into `page`, sealed, and empties the builder. Fails with `InvalidArgument` if
    /// there is no child or `identity.level` is 0.
    pub fn finish(&mut self, identity: &NodeIdentity, page: &mut PageBytes) -> Result<PagePointer> {
        let count = self.len();
        match self.first.filter(|_| identity.level != 0) {
            None => Err(Error::invalid("an index node without child or of level 0")),
            Some(first) => {
                self.first = None;
                Ok(self.draft.finish(identity, count, &first.encode(), page))
            }
        }
    }

    fn admit(&self, pivot: &Pivot) -> Result<Plan> {
        if pivot.bytes.len() > LONG_KEY_STORED_BYTES {
            return Err(Error::invalid("a pivot above the longest"));
        }
        if let Some((last, _)) = self.draft.last() {
            let in_order = last < &pivot.bytes[..] || (pivot.ambiguous && last == &pivot.bytes[..]);
            if !in_order {
                return Err(Error::invalid("a pivot out of order in an index node"));
            }
        }
        let plan = self.draft.plan(&pivot.bytes, PAGE_POINTER_BYTES);
        if plan.used_bytes + PAGE_POINTER_BYTES > PAGE_BYTES {
            return Err(Error::invalid(
                "a child for which an index node has no room",
            ));
        }
        Ok(plan)
    }
}
