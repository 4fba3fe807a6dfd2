//! The record of a deleted range.

use std::ops::Bound;

use kreon_base::{Error, KEY_BYTES_MAX, Result};
use kreon_format::{range_end, range_value};

use crate::operation::{Operation, Terms};
use crate::read::KeyBounds;
use crate::regions::RegionState;

/// The keys of a range that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedRange {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl DeletedRange {
    /// The keys within `bounds`; none if there can be no such key.
    ///
    /// # Errors
    /// `InvalidArgument` for a bound that is longer than any key.
    pub fn of((start, end): KeyBounds) -> Result<Option<Self>> {
        let start = match start {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => checked(key)?,
            Bound::Excluded(key) => match least_above(checked(key)?) {
                Some(start) => start,
                None => return Ok(None),
            },
        };
        let end = match end {
            Bound::Unbounded => None,
            Bound::Excluded(key) => Some(checked(key)?),
            Bound::Included(key) => {
                let mut end = checked(key)?;
                end.push(0);
                Some(end)
            }
        };
        let is_empty = end.as_ref().is_some_and(|end| *end <= start);
        let end = range_value(end.as_deref());
        Ok((!is_empty).then_some(Self { start, end }))
    }

    /// The first key.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// Where it ends, as the value of the record.
    pub fn end(&self) -> &[u8] {
        &self.end
    }

    /// Whether `key` is in it.
    pub fn has(&self, key: &[u8]) -> bool {
        let end = range_end(&self.end).unwrap_or_default();
        *self.start <= *key && end.is_none_or(|end| key < end)
    }

    /// Its bounds.
    pub fn bounds(&self) -> KeyBounds {
        let end = range_end(&self.end).unwrap_or_default();
        let end = end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.to_vec()));
        (Bound::Included(self.start.clone()), end)
    }

    /// What deletes it.
    pub fn operation<'a>(&'a self, region: &'a RegionState) -> Operation<'a> {
        Operation {
            region,
            key: &self.start,
            value: Some(&self.end),
            is_range: true,
            terms: Terms::default(),
        }
    }
}

fn checked(key: Vec<u8>) -> Result<Vec<u8>> {
    match key.len() <= KEY_BYTES_MAX {
        true => Ok(key),
        false => Err(Error::invalid(format!(
            "the end of a range has at most {KEY_BYTES_MAX} bytes, this one {}",
            key.len()
        ))),
    }
}

/// The least key above `key`; none if that is the last there can be.
fn least_above(mut key: Vec<u8>) -> Option<Vec<u8>> {
    if key.len() < KEY_BYTES_MAX {
        key.push(0);
        return Some(key);
    }
    while key.pop_if(|last| *last == u8::MAX).is_some() {}
    let last = key.last_mut()?;
    *last += 1;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: Bound<&[u8]>, end: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        let bounds = (start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
        let range = DeletedRange::of(bounds).unwrap()?;
        Some((range.start, range.end))
    }

    #[test]
    fn bounds_become_a_first_key_and_an_end() {
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(of(Unbounded, Unbounded), Some((vec![], vec![0])));
        let both = of(Included(b"a"), Excluded(b"b"));
        assert_eq!(both, Some((b"a".to_vec(), b"\x01b".to_vec())));
        let one = of(Included(b"a"), Included(b"a"));
        assert_eq!(one, Some((b"a".to_vec(), b"\x01a\0".to_vec())));
        assert_eq!(of(Excluded(b"a"), Included(b"a")), None);
        assert_eq!(of(Included(b"b"), Excluded(b"a")), None);
        assert_eq!(of(Included(b""), Excluded(b"")), None);
    }

    #[test]
    fn the_longest_keys_have_neighbours_too() {
        let longest = [vec![7; KEY_BYTES_MAX - 1], vec![255]].concat();
        let above = of(Bound::Excluded(&longest), Bound::Unbounded);
        let expected = [vec![7; KEY_BYTES_MAX - 2], vec![8]].concat();
        assert_eq!(above, Some((expected, vec![0])));
        let last = vec![255; KEY_BYTES_MAX];
        assert_eq!(of(Bound::Excluded(&last), Bound::Unbounded), None);
        assert!(of(Bound::Unbounded, Bound::Included(&last)).is_some());
        let long = vec![1; KEY_BYTES_MAX + 1];
        assert!(DeletedRange::of((Bound::Included(long), Bound::Unbounded)).is_err());
    }
}
