//! Ranges of keys as a caller gives them.

use std::ops::Bound;

pub use kreon_base::{KeyBounds, prefix_bounds};

/// Whether no key can lie between, so that ranges given the wrong way round are empty.
pub fn is_empty<K: Ord>(low: &Bound<K>, high: &Bound<K>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high))
        | (Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_the_wrong_way_round_are_empty() {
        let bound = |key: &str| Bound::Excluded(key.as_bytes().to_vec());
        assert!(is_empty(&bound("b"), &bound("a")));
        assert!(is_empty(&bound("a"), &bound("a")));
        assert!(!is_empty(
            &Bound::Included(b"a".to_vec()),
            &Bound::Included(b"a".to_vec())
        ));
    }
}
