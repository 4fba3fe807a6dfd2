//! A set of blocks of a volume.

use std::collections::BTreeMap;
use std::ops::Range;

use kreon_wire::limits::BLOCK_BYTES;

/// Blocks, as a bit for each of 64 neighbours. Ranges are bytes of the volume; a block belongs to each that it shares a byte
/// with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks(BTreeMap<u64, u64>);

impl Blocks {
    /// Adds all blocks of a range.
    pub fn add(&mut self, range: &Range<u64>) {
        for (group, bits) in groups(range) {
            *self.0.entry(group).or_default() |= bits;
        }
    }

    /// Takes out all blocks of a range.
    pub fn remove(&mut self, range: &Range<u64>) {
        if self.0.is_empty() {
            return;
        }
        for (group, bits) in groups(range) {
            if let Some(held) = self.0.get_mut(&group) {
                *held &= !bits;
                if *held == 0 {
                    self.0.remove(&group);
                }
            }
        }
    }

    /// Whether the block at an offset belongs to it.
    pub fn has(&self, offset: u64) -> bool {
        let block = offset / BLOCK_BYTES;
        let bits = self.0.get(&(block / 64)).copied().unwrap_or(0);
        bits >> (block % 64) & 1 == 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes they have.
    pub fn len_bytes(&self) -> u64 {
        let blocks: u64 = self
            .0
            .values()
            .map(|bits| u64::from(bits.count_ones()))
            .sum();
        blocks * BLOCK_BYTES
    }

    /// The first of them with those right behind it, up to `bytes_max`, which is some blocks.
    pub fn first_run(&self, bytes_max: u64) -> Option<Range<u64>> {
        let (group, bits) = self.0.first_key_value()?;
        let start = (group * 64 + u64::from(bits.trailing_zeros())) * BLOCK_BYTES;
        let mut end = start + BLOCK_BYTES;
        while end - start < bytes_max && self.has(end) {
            end += BLOCK_BYTES;
        }
        Some(start..end)
    }

    /// The parts of a range of whole blocks that are in the set, or those that are not.
    pub fn parts(&self, range: &Range<u64>, are_in: bool) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for start in range.clone().step_by(BLOCK_BYTES as usize) {
            if self.has(start) != are_in {
                continue;
            }
            let end = start + BLOCK_BYTES;
            match parts.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => parts.push(start..end),
            }
        }
        parts
    }
}

/// The groups of 64 blocks that a range has a part of, with the bits of its blocks.
fn groups(range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let (first, behind) = (range.start / BLOCK_BYTES, range.end.div_ceil(BLOCK_BYTES));
    (first / 64..behind.div_ceil(64)).filter_map(move |group| {
        let start = first.max(group * 64) - group * 64;
        let end = behind.min(group * 64 + 64).saturating_sub(group * 64);
        let count = end.saturating_sub(start);
        match count {
            0 => None,
            64 => Some((group, u64::MAX)),
            _ => Some((group, ((1 << count) - 1) << start)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(block: u64) -> u64 {
        block * BLOCK_BYTES
    }

    #[test]
    fn a_range_has_every_block_that_it_shares_a_byte_with() {
        let mut blocks = Blocks::default();
        blocks.add(&(at(2) + 8..at(3)));
        blocks.add(&(at(64) - 1..at(64) + 1));
        assert_eq!(blocks.len_bytes(), at(3));
        assert_eq!(
            blocks.parts(&(0..at(4)), true),
            std::slice::from_ref(&(at(2)..at(3)))
        );
        assert_eq!(
            blocks.parts(&(at(62)..at(66)), false),
            [at(62)..at(63), at(65)..at(66)]
        );
        blocks.add(&(at(5)..at(5)));
        assert!(!blocks.has(at(5)), "an empty range has no block");
    }

    #[test]
    fn what_was_taken_out_is_gone_and_the_rest_comes_in_runs() {
        let mut blocks = Blocks::default();
        blocks.add(&(at(10)..at(200)));
        blocks.remove(&(at(60)..at(130)));
        assert_eq!(blocks.first_run(at(8)), Some(at(10)..at(18)));
        assert_eq!(blocks.first_run(at(1000)), Some(at(10)..at(60)));
        blocks.remove(&(0..at(60)));
        assert_eq!(blocks.first_run(at(1000)), Some(at(130)..at(200)));
        blocks.remove(&(at(130)..at(200)));
        assert!(blocks.is_empty() && blocks.first_run(at(1)).is_none());
    }
}
