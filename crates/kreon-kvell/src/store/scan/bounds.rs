//! What is left of the range of a scan.

use std::ops::{Bound, RangeBounds};

use kreon_base::{KeyBounds, prefix_bounds};

use crate::index::{Index, Spot};
use crate::store::handle::REGION_BYTES;

/// Keys of items, which have the number of their region in front, between two bounds.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
}

impl Bounds {
    /// The keys in `range` of a region, and none of any other.
    pub fn of_region(region: [u8; REGION_BYTES], range: KeyBounds) -> Self {
        let all = prefix_bounds(&region);
        let within = |bound: Bound<Vec<u8>>, end| match bound {
            Bound::Unbounded => end,
            bound => bound.map(|key| [&region, &key[..]].concat()),
        };
        Self {
            low: within(range.0, all.0),
            high: within(range.1, all.1),
        }
    }

    /// Whether `key` is between them.
    pub fn contains(&self, key: &[u8]) -> bool {
        let low = self.low.as_ref().map(Vec::as_slice);
        (low, self.high.as_ref().map(Vec::as_slice)).contains(key)
    }

    /// Has only the keys behind `key` left.
    pub fn leave_behind(&mut self, key: &[u8]) {
        exclude(&mut self.low, key);
    }

    /// Has only the keys before `key` left.
    pub fn leave_before(&mut self, key: &[u8]) {
        exclude(&mut self.high, key);
    }

    /// Bounds of what an index has of these keys. A tie group that begins or ends the range is within: only its items tell.
    pub fn in_index(&self, index: &Index) -> (Bound<Spot<'_>>, Bound<Spot<'_>>) {
        (spot(index, &self.low), spot(index, &self.high))
    }
}

/// Keeps the memory of the bound: it is set for each pair.
fn exclude(bound: &mut Bound<Vec<u8>>, key: &[u8]) {
    if let Bound::Excluded(bytes) = bound {
        bytes.clear();
        bytes.extend_from_slice(key);
    } else {
        *bound = Bound::Excluded(key.to_vec());
    }
}

fn spot<'a>(index: &Index, bound: &'a Bound<Vec<u8>>) -> Bound<Spot<'a>> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Excluded(key) if index.is_whole(key) => Bound::Excluded(index.spot(key)),
        Bound::Included(key) | Bound::Excluded(key) => Bound::Included(index.spot(key)),
    }
}
