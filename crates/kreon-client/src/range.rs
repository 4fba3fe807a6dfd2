//! Ranges of keys, and what of them lies in a group.

use std::ops::Bound;

pub(crate) use kreon_base::prefix_bounds;
pub use kreon_base::{KeyBounds, KeyRange};
use kreon_wire::{Bounds, KeyRange as Held};

/// The bounds, borrowed.
pub(crate) fn borrowed(bounds: &KeyBounds) -> Bounds<'_> {
    Bounds {
        start: bounds.0.as_ref().map(Vec::as_slice),
        end: bounds.1.as_ref().map(Vec::as_slice),
    }
}

/// Whether no key can lie within.
pub(crate) fn is_empty(bounds: &Bounds<'_>) -> bool {
    match (bounds.start, bounds.end) {
        (Bound::Unbounded, Bound::Excluded(end)) => end.is_empty(),
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start >= end,
    }
}

/// What of the bounds lies in a range of a group; `None` if no key can.
pub(crate) fn clip<'a>(bounds: &Bounds<'a>, range: &'a Held) -> Option<Bounds<'a>> {
    let start = match bounds.start {
        _ if range.start.is_empty() => bounds.start,
        Bound::Included(key) | Bound::Excluded(key) if key >= range.start.as_slice() => {
            bounds.start
        }
        _ => Bound::Included(range.start.as_slice()),
    };
    let end = match (bounds.end, &range.end) {
        (_, None) => bounds.end,
        (Bound::Included(key), Some(end)) if key < end.as_slice() => bounds.end,
        (Bound::Excluded(key), Some(end)) if key <= end.as_slice() => bounds.end,
        (_, Some(end)) => Bound::Excluded(end.as_slice()),
    };
    let clipped = Bounds { start, end };
    (!is_empty(&clipped)).then_some(clipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(start: &str, end: Option<&str>) -> Held {
        Held {
            table: "t".to_owned(),
            start: start.into(),
            end: end.map(Into::into),
        }
    }

    #[test]
    fn what_lies_in_a_range_is_clipped_to_it() {
        let range = held("c", Some("m"));
        let clip = |bounds: KeyBounds| {
            let clipped = clip(&borrowed(&bounds), &range)?;
            Some((
                clipped.start.map(<[u8]>::to_vec),
                clipped.end.map(<[u8]>::to_vec),
            ))
        };
        assert_eq!(clip((..).into_bounds()), Some(("c".."m").into_bounds()));
        assert_eq!(
            clip(("d"..="e").into_bounds()),
            Some(("d"..="e").into_bounds())
        );
        assert_eq!(
            clip(("a"..="m").into_bounds()),
            Some(("c".."m").into_bounds())
        );
        assert_eq!(clip(("a".."c").into_bounds()), None);
        assert_eq!(clip(("m"..).into_bounds()), None);
        let behind = (Bound::Excluded("c"), Bound::Unbounded);
        let expected = (
            Bound::Excluded(b"c".to_vec()),
            Bound::Excluded(b"m".to_vec()),
        );
        assert_eq!(clip(behind.into_bounds()), Some(expected));
    }

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(prefix_bounds(b"ab"), ("ab".."ac").into_bounds());
        assert_eq!(prefix_bounds(b"a\xff").1, Bound::Excluded(b"b".to_vec()));
        assert_eq!(prefix_bounds(b"\xff").1, Bound::Unbounded);
    }
}
