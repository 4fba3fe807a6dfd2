//! What of a joiner's volume is newer than any copy that arrives.

use std::collections::BTreeMap;
use std::ops::Range;

use kreon_base::planted;
use kreon_wire::limits::BLOCK_BYTES;

/// Blocks that packets have changed since the joiner was attached, as a bit for each of 64 neighbours.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched(BTreeMap<u64, u64>);

impl Touched {
    /// Adds all blocks of a range.
    pub fn add(&mut self, range: &Range<u64>) {
        for block in blocks(range) {
            *self.0.entry(block / 64).or_default() |= 1 << (block % 64);
        }
    }

    fn has(&self, block: u64) -> bool {
        planted!(CopiedOverMirroredPage => return false);
        let bits = self.0.get(&(block / 64)).copied().unwrap_or(0);
        bits >> (block % 64) & 1 == 1
    }

    /// The parts of a range without such blocks; the range is whole blocks.
    pub fn free_parts(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for block in blocks(range).filter(|block| !self.has(*block)) {
            let (start, end) = (block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
            match parts.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => parts.push(start..end),
            }
        }
        parts
    }
}

fn blocks(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_nothing_has_touched() {
        let mut touched = Touched::default();
        touched.add(&(2 * BLOCK_BYTES + 8..3 * BLOCK_BYTES));
        touched.add(&(64 * BLOCK_BYTES - 1..64 * BLOCK_BYTES + 1));
        let at = |block: u64| block * BLOCK_BYTES;
        assert_eq!(touched.free_parts(&(0..at(4))), [0..at(2), at(3)..at(4)]);
        assert_eq!(
            touched.free_parts(&(at(62)..at(66))),
            [at(62)..at(63), at(65)..at(66)]
        );
        assert_eq!(touched.free_parts(&(at(2)..at(3))), []);
    }
}
