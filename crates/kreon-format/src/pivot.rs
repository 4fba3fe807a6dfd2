//! Separators of children in index nodes.

use crate::LONG_KEY_STORED_BYTES;
use crate::node::stored_part;
use crate::node_draft::common_prefix_bytes;

/// The separator of two neighbouring children of an index node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pivot {
    /// At most [`LONG_KEY_STORED_BYTES`] bytes.
    pub bytes: Vec<u8>,
    /// `false`: each key left of the pivot < `bytes` <= each key right of it. `true`: `bytes` are the stored part of
    /// the right child's first key and do not decide; on a tie the caller compares with that child's first key and LSN.
    pub ambiguous: bool,
}

/// The shortest pivot between two neighbouring leaves, given the last key of the left and the first key of the right
/// leaf, whole or as the stored parts of long keys. `same_key`: they are two versions of one key.
pub fn separator(left_last_key: &[u8], right_first_key: &[u8], same_key: bool) -> Pivot {
    let common_bytes = common_prefix_bytes(left_last_key, right_first_key);
    let shortest = right_first_key.get(..=common_bytes);
    match shortest.filter(|bytes| !same_key && bytes.len() <= LONG_KEY_STORED_BYTES) {
        Some(bytes) => Pivot {
            bytes: bytes.to_vec(),
            ambiguous: false,
        },
        None => Pivot {
            bytes: stored_part(right_first_key).to_vec(),
            ambiguous: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(bytes: &[u8]) -> Pivot {
        Pivot {
            bytes: bytes.to_vec(),
            ambiguous: false,
        }
    }

    #[test]
    fn separator_is_the_shortest_that_separates() {
        assert_eq!(separator(b"apple", b"banana", false), exact(b"b"));
        assert_eq!(separator(b"abc", b"abd", false), exact(b"abd"));
        assert_eq!(separator(b"abc", b"abcdef", false), exact(b"abcd"));
        assert_eq!(separator(b"", b"\0\0", false), exact(b"\0"));
    }

    #[test]
    fn versions_of_one_key_have_an_ambiguous_separator() {
        let pivot = separator(b"key", b"key", true);
        assert!(pivot.ambiguous);
        assert_eq!(pivot.bytes, b"key");
    }

    #[test]
    fn long_keys_that_differ_late_have_an_ambiguous_separator() {
        let mut left = vec![b'x'; 2000];
        let right = [left.as_slice(), b"y"].concat();
        let pivot = separator(&left, &right, false);
        assert!(pivot.ambiguous);
        assert_eq!(pivot.bytes, right[..LONG_KEY_STORED_BYTES]);
        assert_eq!(separator(&left[..1024], &right[..1024], false), pivot);
        left[1023] = b'a';
        assert_eq!(separator(&left, &right, false), exact(&right[..1024]));
    }
}
