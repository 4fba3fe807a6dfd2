//! Keys of the tree: the number of a region, 4 bytes, the highest first, and a key of it. So the keys of a region stand together, in
//! their order, and regions in that of their numbers.

use std::ops::Bound;

use kreon_base::{Error, KeyRange, Result};

use crate::tree::{ScanRange, TREE_KEY_BYTES_MAX};

/// Bytes of the number of a region before each key.
pub(super) const REGION_BYTES: usize = 4;

/// Longest key of a region, in bytes.
pub const KEY_BYTES_MAX: usize = TREE_KEY_BYTES_MAX - REGION_BYTES;

/// Most keys are not longer.
const SHORT_BYTES: usize = 60;

/// Lends the key of the tree to `use_key`. It is put together on the stack, where as much is cleared as it may need.
///
/// # Errors
/// `InvalidArgument` for a key that is too long; those of `use_key`.
#[inline]
pub(super) fn with_tree_key<R>(
    region: u32,
    key: &[u8],
    use_key: impl FnOnce(&[u8]) -> Result<R>,
) -> Result<R> {
    let (mut short, mut long);
    let room: &mut [u8] = match key.len() {
        ..=SHORT_BYTES => {
            short = [0; REGION_BYTES + SHORT_BYTES];
            &mut short
        }
        bytes if bytes <= KEY_BYTES_MAX => {
            long = [0; TREE_KEY_BYTES_MAX];
            &mut long
        }
        bytes => {
            return Err(Error::invalid(format!(
                "a key has {bytes} bytes, the most is {KEY_BYTES_MAX}"
            )));
        }
    };
    let (tree_key, _) = room.split_at_mut(REGION_BYTES + key.len());
    let (number, rest) = tree_key.split_at_mut(REGION_BYTES);
    number.copy_from_slice(&region.to_be_bytes());
    rest.copy_from_slice(key);
    use_key(tree_key)
}

/// The key of a region in a key of the tree.
pub(super) fn key_within(tree_key: &[u8]) -> &[u8] {
    tree_key.get(REGION_BYTES..).unwrap_or_default()
}

/// The region of a key of the tree.
///
/// # Errors
/// `Corruption` if it is too short to tell.
pub(super) fn region_of(tree_key: &[u8]) -> Result<u32> {
    let number = tree_key.first_chunk();
    let short = || Error::corruption("a key of the tree without the number of a region");
    number
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or_else(short)
}

/// The keys of the tree that are those of a range of a region.
pub(super) fn tree_range(region: u32, range: impl KeyRange) -> ScanRange {
    let first = region.to_be_bytes();
    let whole = |key: Vec<u8>| [&first[..], &key].concat();
    // Behind the key, before all others.
    let behind = |key: Vec<u8>| [&first[..], &key, &[0]].concat();
    let (low, high) = range.into_bounds();
    ScanRange {
        low: match low {
            Bound::Included(key) => whole(key),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => first.to_vec(),
        },
        high: match high {
            Bound::Included(key) => Some(behind(key)),
            Bound::Excluded(key) => Some(whole(key)),
            // Behind the last region there is nothing.
            Bound::Unbounded => region
                .checked_add(1)
                .map(|next| next.to_be_bytes().to_vec()),
        },
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::ErrorKind;

    use super::*;

    #[test]
    fn keys_of_every_length_have_the_number_before_them_and_longer_ones_are_refused() {
        for bytes in 0..=KEY_BYTES_MAX {
            let key = vec![bytes as u8; bytes];
            let of_tree = with_tree_key(0x0102_0304, &key, |key| Ok(key.to_vec())).unwrap();
            assert_eq!(of_tree, [&[1, 2, 3, 4], &key[..]].concat());
            assert_eq!(region_of(&of_tree).unwrap(), 0x0102_0304);
            assert_eq!(key_within(&of_tree), key);
        }
        let long = vec![0; KEY_BYTES_MAX + 1];
        let refused = with_tree_key(1, &long, |_| Ok(())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(region_of(&[0; 3]).is_err());
    }

    #[test]
    fn ranges_hold_the_keys_of_their_region_only() {
        const REGIONS: [u32; 6] = [0, 1, 2, 0x100, u32::MAX - 1, u32::MAX];
        let keys: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0", b"b", &[0xff; 9]];
        let all = REGIONS.iter().flat_map(|region| {
            let whole = |key: &&[u8]| (*region, key.to_vec());
            keys.iter().map(whole).collect::<Vec<_>>()
        });
        let all: Vec<_> = all.collect();
        let bounds = |key: &'static [u8]| {
            let key = key.to_vec();
            [
                Bound::Unbounded,
                Bound::Included(key.clone()),
                Bound::Excluded(key),
            ]
        };
        for region in REGIONS {
            for low in [bounds(b""), bounds(b"a"), bounds(&[0xff; 9])].concat() {
                for high in [bounds(b""), bounds(b"a"), bounds(&[0xff; 9])].concat() {
                    let range = tree_range(region, (low.clone(), high.clone()));
                    for (other, key) in &all {
                        let of_tree = with_tree_key(*other, key, |key| Ok(key.to_vec())).unwrap();
                        let is_shown = of_tree >= range.low
                            && range.high.as_ref().is_none_or(|high| of_tree < *high);
                        let is_above = match &low {
                            Bound::Included(low) => key >= low,
                            Bound::Excluded(low) => key > low,
                            Bound::Unbounded => true,
                        };
                        let is_below = match &high {
                            Bound::Included(high) => key <= high,
                            Bound::Excluded(high) => key < high,
                            Bound::Unbounded => true,
                        };
                        let is_wanted = *other == region && is_above && is_below;
                        assert_eq!(is_shown, is_wanted, "{region} {range:?}: {other} {key:?}");
                    }
                }
            }
        }
    }
}
