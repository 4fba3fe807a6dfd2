//! Ranges of keys as a caller gives them.

use std::ops::Bound;

/// A range of keys.
pub type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

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
