//! Bloom filters of leaves, stored in their parents, so that a get need not read a leaf without its key.
//!
//! A filter (since format 3) follows the pointer to its leaf in an index node: length of the leaf's common prefix (11
//! bits) and number of probes less one (4 bits), together 2 bytes | length of the bits in words of 4 bytes (1 byte) |
//! bits. Tried and lost: bits set in pairs within words of 8 bytes (0.8 to 1.04 % false positives instead of 0.84, and
//! not quicker to build).
//!
//! The hash covers the stored part of a key behind the leaf's prefix, which a leaf already has as head, length and
//! rest. So building a filter takes one pass over the leaf's page, whether its entries were encoded or copied. Gets ask
//! a filter only for keys that lead to its leaf, nearly all of which have the prefix.

use kreon_base::{KeyHash, Result, planted};

use crate::heads::{HEAD_BYTES, head_of};
use crate::node::stored_part;
use crate::{LONG_KEY_STORED_BYTES, Leaf};

/// Most bits for each key that a filter can be built with.
pub const FILTER_BITS_PER_KEY_MAX: usize = 24;

/// Largest encoded filter in bytes.
pub(crate) const FILTER_BYTES_MAX: usize = FRONT_BYTES + WORDS_MAX * WORD_BYTES;

const FRONT_BYTES: usize = 3;
const WORD_BYTES: usize = 4;

/// Limit of the bits, 4064: three children with the longest pivots and filters fit in any node, and 400 keys get ten
/// bits each.
const WORDS_MAX: usize = 127;

/// The length of the prefix takes this many low bits of the first two bytes, the number of probes the bits above.
const PREFIX_BITS: u32 = 11;
const PROBES_BITS: u32 = 4;
const PROBES_MAX: u32 = 1 << PROBES_BITS;

const _: () = assert!(LONG_KEY_STORED_BYTES < 1 << PREFIX_BITS);

const SEED: u64 = u64::from_be_bytes(*b"filter 1");

/// The filter of one leaf, as encoded in its parent. Empty: no filter, every key may be in the leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafFilter(Vec<u8>);

/// Builds filters, one after the other.
#[derive(Debug, Default)]
pub struct FilterBuilder {
    /// Hashes of the leaf's distinct keys; kept between calls to reuse the memory.
    hashes: Vec<u64>,
}

impl LeafFilter {
    /// No filter.
    pub const NONE: Self = Self(Vec::new());

    /// Whether there is no filter.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the leaf may hold `key` (whole).
    pub fn may_hold(&self, key: &[u8]) -> bool {
        FilterView::open(&self.0).is_none_or(|filter| filter.may_hold(key))
    }

    /// The encoded filter.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FilterBuilder {
    /// A builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// The filter of `leaf`, with about `bits_per_key` bits for each key and 4064 at most; no filter for 0 bits.
    ///
    /// # Errors
    /// `Corruption` if an entry of the leaf is damaged.
    pub fn build(&mut self, leaf: &Leaf<'_>, bits_per_key: usize) -> Result<LeafFilter> {
        if bits_per_key == 0 {
            return Ok(LeafFilter::NONE);
        }
        self.hash_keys(leaf)?;
        let bits_per_key = bits_per_key.min(FILTER_BITS_PER_KEY_MAX);
        // One extra word, because small filters have more false positives than large ones.
        let words = (self.hashes.len() * bits_per_key).div_ceil(8 * WORD_BYTES) + 1;
        let words = words.min(WORDS_MAX);
        // The optimum is ln 2 times the bits for each key; slightly fewer probes are hardly worse and quicker to set.
        let probes = (bits_per_key as u32 * 6 / 10).clamp(1, PROBES_MAX);
        let front = leaf.prefix().len() as u16 | (probes as u16 - 1) << PREFIX_BITS;
        let mut bytes = vec![0; FRONT_BYTES + words * WORD_BYTES];
        bytes[..2].copy_from_slice(&front.to_le_bytes());
        bytes[2] = words as u8;
        let bits = &mut bytes[FRONT_BYTES..];
        let places = bits.len() * 8;
        for hash in &self.hashes {
            for place in bit_positions(*hash, places).take(probes as usize) {
                bits[place / 8] |= 1 << (place % 8);
            }
        }
        Ok(LeafFilter(bytes))
    }

    /// Hashes the leaf's keys. Versions of one key are adjacent and count once.
    fn hash_keys(&mut self, leaf: &Leaf<'_>) -> Result<()> {
        self.hashes.clear();
        let mut last = None;
        for (index, head) in leaf.0.heads.iter().enumerate() {
            let raw = leaf.0.entry(index)?;
            let hash = hash_of(raw.length, head, raw.rest);
            if last.replace(hash) != Some(hash) {
                self.hashes.push(hash);
            }
        }
        planted!(FilterMissesKey => self.hashes.pop());
        Ok(())
    }
}

/// A filter in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterView<'a> {
    prefix_bytes: usize,
    probes: usize,
    bits: &'a [u8],
    /// The whole encoded filter.
    bytes: &'a [u8],
}

impl<'a> FilterView<'a> {
    /// The filter at the start of `bytes`; `None` if it is damaged.
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        let ([low, high, words], rest) = bytes.split_first_chunk()?;
        let front = u16::from_le_bytes([*low, *high]);
        let prefix_bytes = usize::from(front & ((1 << PREFIX_BITS) - 1));
        let probes = u32::from(front >> PREFIX_BITS) + 1;
        let words = usize::from(*words);
        let is_sound = prefix_bytes <= LONG_KEY_STORED_BYTES
            && probes <= PROBES_MAX
            && (1..=WORDS_MAX).contains(&words);
        let bits = rest.get(..words * WORD_BYTES).filter(|_| is_sound)?;
        Some(Self {
            prefix_bytes,
            probes: probes as usize,
            bits,
            bytes: bytes.get(..FRONT_BYTES + bits.len())?,
        })
    }

    /// A copy of it.
    pub(crate) fn to_owned(self) -> LeafFilter {
        LeafFilter(self.bytes.to_vec())
    }

    /// Bytes of the encoded filter.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the leaf may hold `key` (whole).
    pub(crate) fn may_hold(&self, key: &[u8]) -> bool {
        let Some(remainder) = stored_part(key).get(self.prefix_bytes..) else {
            return false;
        };
        let rest = remainder.get(HEAD_BYTES..).unwrap_or_default();
        let hash = hash_of(remainder.len(), &head_of(remainder), rest);
        bit_positions(hash, self.bits.len() * 8)
            .take(self.probes)
            .all(|place| {
                let byte = self.bits.get(place / 8).copied().unwrap_or(0);
                byte & (1 << (place % 8)) != 0
            })
    }
}

/// The hash of a key that has `length` bytes behind the leaf's prefix.
#[inline]
fn hash_of(length: usize, head: &[u8; HEAD_BYTES], rest: &[u8]) -> u64 {
    KeyHash::new(SEED ^ length as u64)
        .word(u64::from_le_bytes(*head))
        .bytes(rest)
        .finish()
}

/// The bit positions of a key. The hash is a fraction; multiplied by the number of bits it gives a position and a new
/// fraction.
#[inline]
fn bit_positions(hash: u64, count: usize) -> impl Iterator<Item = usize> {
    let mut fraction = hash;
    std::iter::repeat_with(move || {
        let product = u128::from(fraction) * count as u128;
        fraction = product as u64;
        (product >> 64) as usize
    })
}
