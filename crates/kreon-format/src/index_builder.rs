//! Builds index nodes from children in order.

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result};

use crate::filter::FILTER_BYTES_MAX;
use crate::index::{TAG_AMBIGUOUS, TAG_FILTERED};
use crate::node_draft::{NodeDraft, Plan, room_beside};
use crate::{
    LONG_KEY_STORED_BYTES, LeafFilter, NodeIdentity, PAGE_POINTER_BYTES, PagePointer, Pivot,
};

// Three maximal pivots with four children fit in any node.
const _: () = assert!(room_beside(3, PAGE_POINTER_BYTES) > PAGE_POINTER_BYTES);
// So do two maximal pivots with three children and their filters.
const CHILD_BYTES_MAX: usize = PAGE_POINTER_BYTES + FILTER_BYTES_MAX;
const _: () = assert!(room_beside(2, CHILD_BYTES_MAX) > CHILD_BYTES_MAX);

/// Builds index nodes, one after the other, from children in order.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    first: Option<PagePointer>,
    first_filter: LeafFilter,
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
        self.first_filter = LeafFilter::NONE;
        self.draft.clear();
    }

    /// Number of children pushed since the last [`finish`](Self::finish).
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.draft.len()
    }

    /// Whether no child was pushed since the last [`finish`](Self::finish).
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Bytes of the page that the children take, header included; at most [`PAGE_BYTES`]. Exact.
    pub fn used_bytes(&self) -> usize {
        let first_bytes = PAGE_POINTER_BYTES + self.first_filter.as_bytes().len();
        self.draft.used_bytes() + self.first.map_or(0, |_| first_bytes)
    }

    /// Whether [`push`](Self::push) of a child with this pivot and filter will succeed. Exact.
    pub fn fits(&self, pivot: &Pivot, filter: &LeafFilter) -> bool {
        self.is_empty() || self.admit(pivot, filter).is_ok()
    }

    /// Appends a child, with its filter if it is a leaf that has one; `pivot` separates it from the child before. The
    /// pivot of a node's first child is not stored and may be anything: it belongs to the parent, where it separates
    /// this node from its left neighbour.
    ///
    /// Fails with `InvalidArgument` and without effect if there is no room, or the pivot is out of order or longer than
    /// [`LONG_KEY_STORED_BYTES`].
    pub fn push(&mut self, pivot: &Pivot, child: PagePointer, filter: &LeafFilter) -> Result<()> {
        if self.is_empty() {
            self.first = Some(child);
            self.first_filter.clone_from(filter);
        } else {
            let plan = self.admit(pivot, filter)?;
            let mut tag = if pivot.ambiguous { TAG_AMBIGUOUS } else { 0 };
            if !filter.is_none() {
                tag |= TAG_FILTERED;
            }
            let body = [&child.encode(), filter.as_bytes()];
            self.draft.push(plan, &pivot.bytes, tag, body);
        }
        self.draft.has_filters |= !filter.is_none();
        Ok(())
    }

    /// Writes the sealed node into `page` and empties the builder. Fails with `InvalidArgument` if there is no child,
    /// if `identity.level` is 0, or if a child has a filter and the level is not 1.
    pub fn finish(&mut self, identity: &NodeIdentity, page: &mut PageBytes) -> Result<PagePointer> {
        let count = self.len();
        if self.draft.has_filters && identity.level != 1 {
            return Err(Error::invalid("a filter for a child that is not a leaf"));
        }
        match self.first.filter(|_| identity.level != 0) {
            None => Err(Error::invalid("an index node without child or of level 0")),
            Some(first) => {
                let top = [&first.encode(), self.first_filter.as_bytes()].concat();
                let pointer = self.draft.finish(identity, count, &top, page);
                self.clear();
                Ok(pointer)
            }
        }
    }

    fn admit(&self, pivot: &Pivot, filter: &LeafFilter) -> Result<Plan> {
        if pivot.bytes.len() > LONG_KEY_STORED_BYTES {
            return Err(Error::invalid("a pivot above the longest"));
        }
        if let Some((last, _)) = self.draft.last() {
            let in_order = last < &pivot.bytes[..] || (pivot.ambiguous && last == &pivot.bytes[..]);
            if !in_order {
                return Err(Error::invalid("a pivot out of order in an index node"));
            }
        }
        let body_bytes = PAGE_POINTER_BYTES + filter.as_bytes().len();
        let first_bytes = PAGE_POINTER_BYTES + self.first_filter.as_bytes().len();
        let plan = self.draft.plan(&pivot.bytes, body_bytes);
        if plan.used_bytes + first_bytes > PAGE_BYTES {
            return Err(Error::invalid(
                "a child for which an index node has no room",
            ));
        }
        Ok(plan)
    }
}
