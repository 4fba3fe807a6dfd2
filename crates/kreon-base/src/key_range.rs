//! Ranges of keys.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// The lower and the upper bound of a range of keys.
pub type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range of keys, for the `range` of a region: any of Rust's range types over byte strings, or a pair of bounds. A range
/// whose start lies behind its end is empty.
///
/// ```
/// use kreon_base::KeyRange;
/// use std::ops::Bound;
/// assert_eq!(("a".."b").into_bounds().0, Bound::Included(b"a".to_vec()));
/// assert_eq!((..).into_bounds(), (Bound::Unbounded, Bound::Unbounded));
/// ```
pub trait KeyRange {
    /// The lower and the upper bound.
    fn into_bounds(self) -> KeyBounds;
}

fn included(key: &impl AsRef<[u8]>) -> Bound<Vec<u8>> {
    Bound::Included(key.as_ref().to_vec())
}

fn excluded(key: &impl AsRef<[u8]>) -> Bound<Vec<u8>> {
    Bound::Excluded(key.as_ref().to_vec())
}

impl KeyRange for RangeFull {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn into_bounds(self) -> KeyBounds {
        (included(&self.start), excluded(&self.end))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn into_bounds(self) -> KeyBounds {
        (included(self.start()), included(self.end()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn into_bounds(self) -> KeyBounds {
        (included(&self.start), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Unbounded, excluded(&self.end))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Unbounded, included(&self.end))
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn into_bounds(self) -> KeyBounds {
        let own = |bound: Bound<K>| bound.map(|key| key.as_ref().to_vec());
        (own(self.0), own(self.1))
    }
}

/// All keys that start with `prefix`.
pub fn prefix_bounds(prefix: &[u8]) -> KeyBounds {
    let mut end = prefix.to_vec();
    while end.last() == Some(&0xff) {
        end.pop();
    }
    if let Some(last) = end.last_mut() {
        *last += 1;
        return (Bound::Included(prefix.to_vec()), Bound::Excluded(end));
    }
    (Bound::Included(prefix.to_vec()), Bound::Unbounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_0xff_have_no_upper_bound() {
        assert_eq!(prefix_bounds(b"a").1, Bound::Excluded(b"b".to_vec()));
        assert_eq!(
            prefix_bounds(b"a\xff\xff").1,
            Bound::Excluded(b"b".to_vec())
        );
        assert_eq!(prefix_bounds(b"\xff\xff").1, Bound::Unbounded);
        assert_eq!(prefix_bounds(b"").1, Bound::Unbounded);
    }
}
