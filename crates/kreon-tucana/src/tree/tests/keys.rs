//! Keys of several shapes.

use std::collections::HashMap;

use crate::format::key_hash;
use crate::tree::TREE_KEY_BYTES_MAX;

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A number, 4 bytes.
    Short,
    /// The digits of a binary number, none for 0: many keys are prefixes of others.
    Ragged,
    /// A prefix that all share, then a number.
    SharedPrefix,
    /// Groups of 64 keys whose heads are equal in any leaf.
    Ties,
    /// 900 bytes in common: few children in an index node.
    LongPrefix,
    /// As many bytes in common as the longest keys can have: three pivots fill an index node.
    Longest,
}

pub(super) const SHAPES: [Shape; 6] = [
    Shape::Short,
    Shape::Ragged,
    Shape::SharedPrefix,
    Shape::Ties,
    Shape::LongPrefix,
    Shape::Longest,
];

impl Shape {
    /// Key number `number`.
    pub(super) fn key(self, number: u32) -> Vec<u8> {
        let digits = number.to_be_bytes();
        match self {
            Self::Short => digits.to_vec(),
            Self::Ragged if number == 0 => Vec::new(),
            Self::Ragged => format!("{number:b}").into_bytes(),
            Self::SharedPrefix => [b"user/of/the/shop/".as_slice(), &digits].concat(),
            Self::Ties => {
                let group = (number / 64).to_be_bytes();
                [&group[..], b"0123456789abcdef", &digits].concat()
            }
            Self::LongPrefix => [&[b'p'; 900][..], &digits].concat(),
            Self::Longest => [&[b'p'; TREE_KEY_BYTES_MAX - 4][..], &digits].concat(),
        }
    }
}

/// Pairs of keys with equal heads (without a prefix) and equal hashes.
pub(super) fn hash_twins() -> Vec<[Vec<u8>; 2]> {
    let mut known: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut twins = Vec::new();
    for number in 0_u32..200_000 {
        let key = [b"samehead".as_slice(), &number.to_be_bytes()].concat();
        if let Some(other) = known.insert(key_hash(&key), key.clone()) {
            twins.push([other, key]);
        }
    }
    twins
}
