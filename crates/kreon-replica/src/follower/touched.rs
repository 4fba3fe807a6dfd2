//! What of a joiner's volume is newer than any copy that arrives.

use std::ops::Range;

use kreon_base::planted;

use crate::blocks::Blocks;

/// Blocks that packets have changed since the joiner was attached.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched(Blocks);

impl Touched {
    /// Adds all blocks of a range.
    pub fn add(&mut self, range: &Range<u64>) {
        planted!(CopiedOverMirroredPage => return);
        self.0.add(range);
    }

    /// The parts of a range without such blocks; the range is whole blocks.
    pub fn free_parts(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        self.0.parts(range, false)
    }
}

#[cfg(test)]
mod tests {
    use kreon_wire::limits::BLOCK_BYTES;

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
