//! Children of index nodes under construction, and the bounds between nodes of the old tree.

use std::cell::OnceCell;

use kreon_base::Result;
use kreon_format::{IndexNode, LONG_KEY_STORED_BYTES, LeafFilter, PagePointer, Pivot, separator};

use super::NodeSource;
use super::leaf_keys::first_under;

/// A child of an index node that is not written yet.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// Separates it from the child before, even if that child has another parent.
    pub(super) pivot: Pivot,
    pub(super) pointer: PagePointer,
    /// Filter of a leaf, or empty. For a child of an old node it is read only when the child joins the output.
    pub(super) filter: LeafFilter,
    /// Written by this merge; others are part of the old tree.
    pub(super) is_fresh: bool,
}

impl Child {
    /// The root of a tree.
    pub(super) fn root(pointer: PagePointer) -> Self {
        Self {
            pivot: Pivot::default(),
            pointer,
            filter: LeafFilter::NONE,
            is_fresh: false,
        }
    }

    /// The child with its filter from the old parent `index`.
    pub(super) fn with_filter(self, index: &IndexNode<'_>, child: usize) -> Result<Self> {
        let filter = index.filter(child)?;
        Ok(Self { filter, ..self })
    }
}

/// The pivot between two leaves, from the stored parts of the keys on its sides.
pub(super) fn pivot_between(left_last: &[u8], right_first: &[u8]) -> Pivot {
    // Equal stored parts: versions of one key, or long keys that an exact pivot cannot tell apart.
    separator(left_last, right_first, left_last == right_first)
}

/// The pivot to use when `first_key` (stored part, not below the previous first key) is now the first key
/// behind `pivot`. An exact pivot stays, and so does an ambiguous one equal to `first_key`. Otherwise all
/// keys left of it are at most its bytes, so an exact pivot can be made.
pub(super) fn pivot_kept(pivot: Pivot, first_key: &[u8]) -> Pivot {
    if !pivot.ambiguous || pivot.bytes == first_key {
        pivot
    } else {
        pivot_between(&pivot.bytes, first_key)
    }
}

/// The end of the keys under a node of the old tree: its right neighbour.
pub(super) struct Bound {
    pub(super) neighbour: Child,
    level: u8,
    /// The neighbour's first key, read only if a long key ties with the pivot.
    first_key: OnceCell<Vec<u8>>,
}

impl Bound {
    pub(super) fn new(neighbour: Child, level: u8) -> Self {
        Self {
            neighbour,
            level,
            first_key: OnceCell::new(),
        }
    }

    /// Whether a new version of `key` belongs left of the bound: also if the neighbour begins with an older
    /// version of `key`.
    pub(super) fn is_right_of<S: NodeSource>(&self, source: &S, key: &[u8]) -> Result<bool> {
        let pivot = &self.neighbour.pivot;
        if !pivot.ambiguous {
            return Ok(key < pivot.bytes.as_slice());
        }
        let may_tie = key.len() > LONG_KEY_STORED_BYTES
            && pivot.bytes.len() == LONG_KEY_STORED_BYTES
            && key.starts_with(&pivot.bytes);
        if !may_tie {
            return Ok(key <= pivot.bytes.as_slice());
        }
        Ok(key <= self.first_key(source)?)
    }

    #[cold]
    fn first_key<S: NodeSource>(&self, source: &S) -> Result<&[u8]> {
        if let Some(key) = self.first_key.get() {
            return Ok(key);
        }
        let mut key = Vec::new();
        first_under(source, &self.neighbour.pointer, self.level, &mut key)?;
        Ok(self.first_key.get_or_init(|| key))
    }
}
