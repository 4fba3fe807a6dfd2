//! Reading an index node.

use std::fmt;

use kreon_base::{PageBytes, RegionId, Result};

use crate::bytes::array_at;
use crate::filter::FilterView;
use crate::node::{KeyPosition, NodeView, stored_part};
use crate::{LeafFilter, PAGE_POINTER_BYTES, PagePointer, Pivot};

/// Tag of an entry with an ambiguous pivot; other entries have tag 0.
pub(crate) const TAG_AMBIGUOUS: u8 = 1;

/// Flag in the tag of an entry that has a filter behind its pointer.
pub(crate) const TAG_FILTERED: u8 = 2;

/// An index node: children `0..len`, with a pivot before each but the first.
#[derive(Clone, Copy)]
pub struct IndexNode<'a>(NodeView<'a>);

/// The children under which a key can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// All versions of the key are under this child, if there are any.
    Child(usize),
    /// The key is under one or several of the children `first..end` (at least two). The pivots between them tie with
    /// the key, so the caller compares it with the first (key, LSN) under each.
    Ambiguous {
        /// The first such child.
        first: usize,
        /// One past the last.
        end: usize,
    },
}

impl<'a> IndexNode<'a> {
    /// Opens an index node, in constant time. The page should have passed [`check_node`](crate::check_node); otherwise
    /// accessors return errors or wrong children, but never panic.
    pub fn open(page: &'a PageBytes) -> Result<Self> {
        NodeView::open(page, false).map(Self)
    }

    /// Number of children, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.heads.len() + 1
    }

    /// Height above the leaves, at least 1; the children are of level `level() - 1`.
    pub fn level(&self) -> u8 {
        self.0.level()
    }

    /// The region whose tree the node is part of.
    pub fn region(&self) -> RegionId {
        self.0.region()
    }

    /// Bytes in use, header included.
    pub fn used_bytes(&self) -> usize {
        self.0.used_bytes()
    }

    /// Pointer to child `index`, 0 to `len() - 1`.
    pub fn child(&self, index: usize) -> Result<PagePointer> {
        let bytes = match index.checked_sub(1) {
            None => self.0.top(),
            Some(entry) => array_at(self.0.entry(entry)?.body, 0),
        };
        let bytes = bytes.ok_or_else(|| self.0.damaged(index))?;
        Ok(PagePointer::decode(&bytes))
    }

    /// Whether child `index`, a leaf, may hold `key` (whole); `None` if it has no filter for it.
    pub fn may_hold(&self, index: usize, key: &[u8]) -> Result<Option<bool>> {
        let filter = self.filter_view(index)?;
        Ok(filter.map(|filter| filter.may_hold(key)))
    }

    /// A copy of the filter of child `index`; empty if it has none.
    pub fn filter(&self, index: usize) -> Result<LeafFilter> {
        let filter = self.filter_view(index)?;
        Ok(filter.map(|filter| filter.to_owned()).unwrap_or_default())
    }

    fn filter_view(&self, index: usize) -> Result<Option<FilterView<'a>>> {
        let bytes = match index.checked_sub(1) {
            None => self.0.top_filter(),
            Some(entry) => {
                let entry = self.0.entry(entry)?;
                let has_filter = entry.tag & TAG_FILTERED != 0;
                has_filter.then(|| entry.body.get(PAGE_POINTER_BYTES..).unwrap_or_default())
            }
        };
        let open = |bytes| FilterView::open(bytes).ok_or_else(|| self.0.damaged(index));
        bytes.map(open).transpose()
    }

    /// The pivot before child `index`, 1 to `len() - 1`.
    pub fn pivot(&self, index: usize) -> Result<Pivot> {
        let mut pivot = Pivot::default();
        self.pivot_into(index, &mut pivot)?;
        Ok(pivot)
    }

    /// Like [`pivot`](Self::pivot), reusing the memory of `pivot`.
    pub fn pivot_into(&self, index: usize, pivot: &mut Pivot) -> Result<()> {
        let entry = index
            .checked_sub(1)
            .ok_or_else(|| kreon_base::Error::invalid("the first child has no pivot"))?;
        pivot.ambiguous = self.is_ambiguous(entry)?;
        self.0.key_into(entry, &mut pivot.bytes)
    }

    /// The child or children under which `key` (whole) can be.
    pub fn route(&self, key: &[u8]) -> Result<Route> {
        let probe = match self.0.place(stored_part(key)) {
            KeyPosition::Before => return Ok(Route::Child(0)),
            KeyPosition::After => return Ok(Route::Child(self.0.heads.len())),
            KeyPosition::Among(probe) => probe,
        };
        let (at, equal) = self.0.seek(&probe)?;
        if !equal {
            return Ok(Route::Child(at));
        }
        // Of equal pivots only the first can be exact, and sends the key to its right. The ambiguous ones tie with each key
        // of this stored part: with one that ends here, or, behind 1024 equal bytes, with any that continues.
        let first = at + usize::from(!self.is_ambiguous(at)?);
        let end = self.0.seek_end(at, &probe)?;
        Ok(if first >= end {
            Route::Child(first)
        } else {
            Route::Ambiguous {
                first,
                end: end + 1,
            }
        })
    }

    fn is_ambiguous(&self, entry: usize) -> Result<bool> {
        Ok(self.0.entry(entry)?.tag & TAG_AMBIGUOUS != 0)
    }
}

impl fmt::Debug for IndexNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "IndexNode({}, {} children)",
            self.0.page_no(),
            self.len()
        )
    }
}
