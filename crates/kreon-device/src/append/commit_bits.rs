//! Bitmaps of the committed reservations of an append buffer.

use std::ops::Range;

use kreon_base::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    SetAlone,
};

/// Unit of reservations in bytes, one bit in each bitmap.
pub(super) const UNIT_BYTES: u32 = 8;

/// Two bits for each unit: a committed reservation starts here, and one ends here.
///
/// Invariant: the end bit of a reservation is set before its start bit, and the start bit is set with Release after the
/// last write to the reserved bytes. So a thread that sees a start bit with Acquire sees the bytes, and the first end
/// bit from there on belongs to that reservation: reservations are disjoint, so no other one ends inside it.
pub(super) struct CommitBits {
    starts: Box<[AtomicU64]>,
    ends: Box<[AtomicU64]>,
}

impl CommitBits {
    /// Empty bitmaps for `capacity_bytes`.
    pub(super) fn new(capacity_bytes: u32) -> Self {
        let words = capacity_bytes.div_ceil(UNIT_BYTES * u64::BITS) as usize;
        let zeroes = || (0..words).map(|_| AtomicU64::new(0)).collect();
        Self {
            starts: zeroes(),
            ends: zeroes(),
        }
    }

    /// Publishes a reservation, a non-empty range of whole units, with everything that the calling thread wrote before.
    pub(super) fn commit(&self, range: Range<u32>) {
        let first = range.start / UNIT_BYTES;
        let last = range.end / UNIT_BYTES - 1;
        if let Some(word) = self.ends.get(word_of(last)) {
            word.fetch_or(bit_of(last), Relaxed);
        }
        if let Some(word) = self.starts.get(word_of(first)) {
            word.fetch_or(bit_of(first), Release);
        }
    }

    /// End of the committed reservation that starts at `at`; `None` if none starts there or it is not committed yet.
    /// Its bytes are visible to the calling thread.
    pub(super) fn end_of(&self, at: u32) -> Option<u32> {
        let unit = at / UNIT_BYTES;
        let started = self.starts.get(word_of(unit))?.load(Acquire) & bit_of(unit) != 0;
        if !started || !at.is_multiple_of(UNIT_BYTES) {
            return None;
        }
        let first_word = word_of(unit);
        // End bits before `at` belong to earlier reservations.
        let mut mask = u64::MAX << (unit % u64::BITS);
        for (word, ends) in self.ends.iter().enumerate().skip(first_word) {
            let ends = ends.load(Relaxed) & mask;
            if ends != 0 {
                let last = word as u32 * u64::BITS + ends.trailing_zeros();
                return Some((last + 1) * UNIT_BYTES);
            }
            mask = u64::MAX;
        }
        None
    }

    /// End of the gapless run of committed reservations that starts at `from`; `from` if none starts there.
    pub(super) fn run_end(&self, from: u32) -> u32 {
        let mut end = from;
        while let Some(next) = self.end_of(end) {
            end = next;
        }
        end
    }

    /// Clears the bits of the first `used_bytes`.
    pub(super) fn clear(&mut self, used_bytes: u32) {
        let words = used_bytes.div_ceil(UNIT_BYTES * u64::BITS) as usize;
        let starts = self.starts.iter_mut().take(words);
        let ends = self.ends.iter_mut().take(words);
        starts.chain(ends).for_each(|word| word.set_alone(0));
    }
}

fn word_of(unit: u32) -> usize {
    (unit / u64::BITS) as usize
}

fn bit_of(unit: u32) -> u64 {
    1 << (unit % u64::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_across_words() {
        let bits = CommitBits::new(8192);
        bits.commit(8..16);
        bits.commit(504..4104);
        assert_eq!(bits.end_of(8), Some(16));
        assert_eq!(bits.end_of(504), Some(4104));
        assert_eq!(bits.end_of(16), None);
        assert_eq!(bits.end_of(9), None, "inside a unit");
    }

    #[test]
    fn a_run_stops_at_the_first_gap() {
        let bits = CommitBits::new(4096);
        bits.commit(0..8);
        bits.commit(8..520);
        bits.commit(528..4096);
        assert_eq!(bits.run_end(0), 520);
        assert_eq!(bits.run_end(528), 4096);
        assert_eq!(bits.run_end(520), 520);
    }

    #[test]
    fn questions_beyond_the_end_have_an_answer() {
        let bits = CommitBits::new(4096);
        assert_eq!(bits.end_of(4096), None);
        assert_eq!(bits.end_of(u32::MAX), None);
        assert_eq!(bits.run_end(1 << 30), 1 << 30);
    }
}
