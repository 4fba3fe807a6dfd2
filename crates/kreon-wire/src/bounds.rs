//! Where a range of keys begins and ends.

use std::ops::Bound;

use kreon_base::KEY_BYTES_MAX;

use crate::violation::Violation;

/// Where a range of keys begins and ends. An empty range is allowed, and so is one that ends before it begins: no key lies
/// in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds<'a> {
    /// Its start: a key of up to [`KEY_BYTES_MAX`] bytes.
    pub start: Bound<&'a [u8]>,
    /// Its end: a key of up to [`KEY_BYTES_MAX`] bytes.
    pub end: Bound<&'a [u8]>,
}

impl Bounds<'_> {
    /// All keys.
    pub const ALL: Self = Self {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    };

    /// Whether both keys are short enough; `Count` otherwise.
    pub fn check(&self) -> Result<(), Violation> {
        let is_long = |edge| key_of(edge).len() > KEY_BYTES_MAX;
        match is_long(self.start) || is_long(self.end) {
            true => Err(Violation::Count),
            false => Ok(()),
        }
    }
}

/// The byte that tells what a bound is.
pub(crate) const fn code_of(edge: Bound<&[u8]>) -> u8 {
    match edge {
        Bound::Unbounded => 0,
        Bound::Included(_) => 1,
        Bound::Excluded(_) => 2,
    }
}

/// The key of a bound, empty where there is none.
pub(crate) const fn key_of(edge: Bound<&[u8]>) -> &[u8] {
    match edge {
        Bound::Unbounded => &[],
        Bound::Included(key) | Bound::Excluded(key) => key,
    }
}

/// The bound of this code and key. One bound has one encoding: what is unbounded has no key.
pub(crate) const fn edge_of(code: u8, key: &[u8]) -> Result<Bound<&[u8]>, Violation> {
    match code {
        0 if key.is_empty() => Ok(Bound::Unbounded),
        1 => Ok(Bound::Included(key)),
        2 => Ok(Bound::Excluded(key)),
        _ => Err(Violation::FieldValue),
    }
}
