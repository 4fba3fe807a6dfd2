//! What part of a region is meant, and from which end.

use std::ops::Bound;

/// The keys from one bound to another.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// From which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}
