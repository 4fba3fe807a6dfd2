//! Reading an index node.

use std::fmt;

use kreon_base::{PageBytes, RegionId, Result};

use crate::bytes::array_at;
use crate::filter::FilterView;
use crate::node::{NodeView, Place, stored_part};
use crate::{LeafFilter, PAGE_POINTER_BYTES, PagePointer, Pivot};

/// The tag of an entry whose pivot is ambiguous; that of others is 0.
pub(crate) const TAG_AMBIGUOUS: u8 = 1;

/// Set in the tag of an entry with a filter behind its pointer.
pub(crate) const TAG_FILTERED: u8 = 2;

/// An index node: children `0..len`, and before each but the first a pivot.
#[derive(Clone, Copy)]
pub struct IndexNode<'a>(NodeView<'a>);

/// Where a key leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// All versions of the key, if there are any, are under this child.
    Child(usize),
    /// Under one or several of the children `first..end` (at least two); the pivots between them tie
    /// with the key, and the caller compares with the first (key, LSN) under each.
    Ambiguous {
        /// The first such child.
        first: usize,
        /// One past the last.
        end: usize,
    },
}

impl<'a> IndexNode<'a> {
    /// Opens an index node; constant time. The page should have passed
    /// [`check_node`](crate::check_node); if it has not, accessors give errors or wrong children, but
    /// never panic.
    pub fn open(page: &'a PageBytes) -> Result<Self> {
        NodeView::open(page, false).map(Self)
    }

    /// Number of children, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.heads.len() + 1
    }

    /// Height above the leaves, at least 1: the children are of level `level() - 1`.
    pub fn level(&self) -> u8 {
        self.0.level()
    }

    /// The region whose tree the node is part of.
    pub fn region(&self) -> RegionId {
        self.0.region()
    }

    /// Bytes of the page in use, header included.
    pub fn used_bytes(&self) -> usize {
        self.0.used_bytes()
    }

    /// Child `index`, 0 to `len() - 1`.
    pub fn child(&self, index: usize) -> Result<PagePointer> {
        let bytes = match index.checked_sub(1) {
            None => self.0.top(),
            Some(entry) => array_at(self.0.entry(entry)?.body, 0),
        };
        let bytes = bytes.ok_or_else(|| self.0.damaged(index))?;
        Ok(PagePointer::decode(&bytes))
    }

    /// Whether child `index`, a leaf, may hold `key` (whole); none if it has no filter that could tell.
    pub fn may_hold(&self, index: usize, key: &[u8]) -> Result<Option<bool>> {
        let filter = self.filter_view(index)?;
        Ok(filter.map(|filter| filter.may_hold(key)))
    }

    /// A copy of the filter of child `index`; none if there is none.
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
        match bytes {
            None => Ok(None),
            Some(bytes) => match FilterView::open(bytes) {
                None => Err(self.0.damaged(index)),
                filter => Ok(filter),
            },
        }
    }

    /// The pivot before child `index`, 1 to `len() - 1`.
    pub fn pivot(&self, index: usize) -> Result<Pivot> {
        let mut pivot = Pivot::default();
        self.pivot_into(index, &mut pivot)?;
        Ok(pivot)
    }

    /// As [`pivot`](Self::pivot), reusing the memory of `pivot`.
    pub fn pivot_into(&self, index: usize, pivot: &mut Pivot) -> Result<()> {
        let entry = index
            .checked_sub(1)
            .ok_or_else(|| kreon_base::Error::invalid("the first child has no pivot"))?;
        pivot.ambiguous = self.is_ambiguous(entry)?;
        self.0.key_into(entry, &mut pivot.bytes)
    }

    /// Finds the child that `key` (whole) is under.
    pub fn route(&self, key: &[u8]) -> Result<Route> {
        let probe = match self.0.place(stored_part(key)) {
            Place::Before => return Ok(Route::Child(0)),
            Place::After => return Ok(Route::Child(self.0.heads.len())),
            Place::Among(probe) => probe,
        };
        let (at, equal) = self.0.seek(&probe)?;
        if !equal {
            return Ok(Route::Child(at));
        }
        // Of equal pivots only the first can be exact: it sends the key to its right. The ambiguous
        // ones tie: a key that goes on behind 1024 equal bytes too, and no other that goes on.
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
