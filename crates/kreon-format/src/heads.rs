//! Heads: the eight bytes of each key that follow the node's common prefix, side by side in front of
//! a node, so that a search looks at few cache lines and compares numbers.

use std::cmp::Ordering;

/// Bytes of a head. A shorter key's head is filled up with zeroes.
pub(crate) const HEAD_BYTES: usize = 8;

/// Bytes of a cache line in units of heads.
const LINE_HEADS: usize = 8;

/// Heads in a node's first cache line, behind its header of 32 bytes.
const FIRST_LINE_HEADS: usize = 4;

/// The head of a key, of which `remainder` follows the common prefix.
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

/// The part of a key that follows the common prefix, ready to be compared with a node's keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe<'k> {
    head: u64,
    /// Bytes that follow the prefix.
    length: usize,
    /// What of them follows the head.
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

    /// Whether the key has the head.
    pub(crate) fn has_head(&self, head: &[u8; HEAD_BYTES]) -> bool {
        self.head == u64::from_be_bytes(*head)
    }

    /// The first of the sorted `heads` that is not below the key's.
    ///
    /// Counts one head of each cache line that is below it, then the heads within one line: no
    /// branch depends on the keys, and the loads of the first pass do not wait for each other, so a
    /// leaf that is not in cache costs about one memory latency where a binary search costs several.
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

    /// One past the run of the key's head that `heads` begin with.
    pub(crate) fn run_end(&self, heads: &[[u8; HEAD_BYTES]]) -> usize {
        heads.partition_point(|head| u64::from_be_bytes(*head) <= self.head)
    }

    /// How a key with the same head compares with this one: it has `length` bytes behind the prefix
    /// and `rest` behind the head.
    pub(crate) fn compare(&self, length: usize, rest: &[u8]) -> Ordering {
        compare_rests((length, rest), (self.length, self.rest))
    }
}

/// Compares two keys of equal head by their lengths behind the prefix and bytes behind the head.
///
/// Where one key ends within its head, the equal heads make it a prefix of the other (the other has
/// zeroes there, or ends too), so lengths decide.
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
            // Each number twice, with gaps between.
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
