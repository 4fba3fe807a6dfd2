//! Heads: the eight bytes of each key behind the node's common prefix, contiguous at the front of a node, so that a
//! search reads few cache lines and compares integers.

use std::cmp::Ordering;

/// Bytes of a head. The head of a shorter key is padded with zeroes.
pub(crate) const HEAD_BYTES: usize = 8;

/// Heads in a cache line.
const LINE_HEADS: usize = 8;

/// Heads in a node's first cache line, behind the header of 32 bytes.
const FIRST_LINE_HEADS: usize = 4;

/// The head of a key whose bytes behind the common prefix are `remainder`.
pub(crate) fn head_of(remainder: &[u8]) -> [u8; HEAD_BYTES] {
    if let Some(head) = remainder.first_chunk() {
        return *head;
    }
    let mut head = [0; HEAD_BYTES];
    for (to, from) in head.iter_mut().zip(remainder) {
        *to = *from;
    }
    head
}

/// The bytes of a key behind the common prefix, prepared for comparison with a node's keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe<'k> {
    head: u64,
    /// Bytes behind the prefix.
    length: usize,
    /// Bytes behind prefix and head.
    rest: &'k [u8],
}

impl<'k> Probe<'k> {
    pub(crate) fn new(remainder: &'k [u8]) -> Self {
        Self {
            head: u64::from_be_bytes(head_of(remainder)),
            length: remainder.len(),
            rest: remainder.get(HEAD_BYTES..).unwrap_or_default(),
        }
    }

    /// Whether the key has this head.
    pub(crate) fn has_head(&self, head: &[u8; HEAD_BYTES]) -> bool {
        self.head == u64::from_be_bytes(*head)
    }

    /// Index of the first of the sorted `heads` that is not below the key's.
    ///
    /// It counts the first heads of cache lines that are below, then the heads within one line. No branch depends on
    /// the keys, and the loads of the first pass are independent, so a search of a leaf outside the cache costs about
    /// one memory latency, where a binary search costs several.
    pub(crate) fn lower_bound(&self, heads: &[[u8; HEAD_BYTES]]) -> usize {
        let below = |head: &&[u8; HEAD_BYTES]| u64::from_be_bytes(**head) < self.head;
        let lines = heads
            .iter()
            .skip(FIRST_LINE_HEADS)
            .step_by(LINE_HEADS)
            .filter(below)
            .count();
        let end = heads.len().min(lines * LINE_HEADS + FIRST_LINE_HEADS);
        let start = (lines * LINE_HEADS).saturating_sub(LINE_HEADS - FIRST_LINE_HEADS - 1);
        let line = heads.get(start..end).unwrap_or_default();
        start + line.iter().filter(below).count()
    }

    /// End of the run of heads equal to the key's at the start of `heads`.
    pub(crate) fn run_end(&self, heads: &[[u8; HEAD_BYTES]]) -> usize {
        heads.partition_point(|head| u64::from_be_bytes(*head) <= self.head)
    }

    /// Order of a key with the same head relative to this one; it has `length` bytes behind the prefix and `rest`
    /// behind the head.
    pub(crate) fn compare(&self, length: usize, rest: &[u8]) -> Ordering {
        compare_rests((length, rest), (self.length, self.rest))
    }
}

/// Order of two keys of equal head, given their lengths behind the prefix and bytes behind the head.
///
/// If one key ends within its head, it is a prefix of the other, as the other has zeroes there or ends as well; so the
/// lengths decide.
pub(crate) fn compare_rests(left: (usize, &[u8]), right: (usize, &[u8])) -> Ordering {
    if left.0 < HEAD_BYTES || right.0 < HEAD_BYTES {
        left.0.cmp(&right.0)
    } else {
        left.1.cmp(right.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_bound_agrees_with_a_scan_at_every_length() {
        for count in 0..60_u64 {
            // Each number twice, with gaps between them.
            let heads: Vec<_> = (0..count).map(|i| (i / 2 * 3 + 1).to_be_bytes()).collect();
            for target in 0..count * 3 / 2 + 4 {
                let bytes = target.to_be_bytes();
                let expected = heads.iter().filter(|head| **head < bytes).count();
                let probe = Probe::new(&bytes);
                assert_eq!(probe.lower_bound(&heads), expected, "{target} in {count}");
            }
        }
    }

    #[test]
    fn lower_bound_of_unsorted_heads_stays_in_range() {
        for seed in 0..2000_u64 {
            let count = (seed % 200) as usize;
            let heads: Vec<_> = (0..count as u64)
                .map(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes())
                .collect();
            let target = seed.wrapping_mul(0xd134_2543_de82_ef95).to_be_bytes();
            assert!(Probe::new(&target).lower_bound(&heads) <= count);
        }
    }

    #[test]
    fn keys_that_end_within_the_head_sort_before_their_extensions() {
        let keys: [&[u8]; 6] = [
            b"",
            b"\0",
            b"\0\0\0\0\0\0\0\0",
            b"\0\0\0\0\0\0\0\0\0",
            b"\0\x01",
            b"a",
        ];
        for pair in keys.windows(2) {
            let (left, right) = (Probe::new(pair[0]), Probe::new(pair[1]));
            let order = left.head.cmp(&right.head).then(compare_rests(
                (left.length, left.rest),
                (right.length, right.rest),
            ));
            assert_eq!(order, Ordering::Less, "{pair:?}");
        }
    }
}
