//! The places of records, in an open hash table, and the ghosts.

/// The tables of one shard. A word is 0 if empty, else it has the place of a record and its *tag*: 32 bits of its hash,
/// never 0. The search for a record begins at the position that its tag says.
pub(super) struct Slots {
    words: Box<[u64]>,
    used: usize,
    /// Tags of records that were evicted, one for each position.
    ghosts: Box<[u32]>,
}

/// A hash of an offset.
pub(super) const fn hash(offset: u64) -> u64 {
    let mut x = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

pub(super) const fn tag(offset: u64) -> u32 {
    (hash(offset) >> 32) as u32 | 1
}

impl Slots {
    /// Two thirds of the bytes for records, one third for ghosts.
    pub(super) fn new(bytes: usize) -> Self {
        let words = (bytes / 12).max(8);
        Self {
            words: vec![0; words].into_boxed_slice(),
            used: 0,
            ghosts: vec![0; words].into_boxed_slice(),
        }
    }

    /// Whether four fifths are in use; with more, searches get long.
    pub(super) fn is_full(&self) -> bool {
        self.used * 5 >= self.words.len() * 4
    }

    /// The places of this tag.
    pub(super) fn places(&self, tag: u32) -> impl Iterator<Item = u32> {
        let mut i = self.home(tag);
        // Ends, because the table is never full.
        let words = std::iter::from_fn(move || {
            let word = self.words[i];
            i = self.after(i);
            (word != 0).then_some(word)
        });
        let of_tag = words.filter(move |word| tag_of(*word) == tag);
        of_tag.map(|word| word as u32)
    }

    /// Adds a place. The table must not be full.
    pub(super) fn insert(&mut self, tag: u32, place: u32) {
        debug_assert!(
            self.used + 1 < self.words.len(),
            "an insert fills the table"
        );
        let mut i = self.home(tag);
        while self.words[i] != 0 {
            i = self.after(i);
        }
        self.words[i] = u64::from(tag) << 32 | u64::from(place);
        self.used += 1;
    }

    /// Removes a place. False if it is not there.
    pub(super) fn remove(&mut self, tag: u32, place: u32) -> bool {
        let word = u64::from(tag) << 32 | u64::from(place);
        let mut hole = self.home(tag);
        while self.words[hole] != word {
            if self.words[hole] == 0 {
                return false;
            }
            hole = self.after(hole);
        }
        self.used -= 1;
        // Close the gap: a word behind it moves there unless its search begins behind the gap.
        let mut i = hole;
        loop {
            self.words[hole] = 0;
            loop {
                i = self.after(i);
                if self.words[i] == 0 {
                    return true;
                }
                if self.distance(self.home(tag_of(self.words[i])), i) >= self.distance(hole, i) {
                    break;
                }
            }
            self.words[hole] = self.words[i];
            hole = i;
        }
    }

    pub(super) fn remember(&mut self, tag: u32) {
        let home = self.home(tag);
        self.ghosts[home] = tag;
    }

    /// Whether the record was evicted not long ago. Its ghost is gone afterwards.
    pub(super) fn recall(&mut self, tag: u32) -> bool {
        let home = self.home(tag);
        let known = self.ghosts[home] == tag;
        if known {
            self.ghosts[home] = 0;
        }
        known
    }

    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.words.len() as u64) >> 32) as usize
    }

    fn after(&self, i: usize) -> usize {
        if i + 1 == self.words.len() { 0 } else { i + 1 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        (to + self.words.len() - from) % self.words.len()
    }
}

const fn tag_of(word: u64) -> u32 {
    (word >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_table_holds_what_a_set_holds() {
        let mut slots = Slots::new(12 * 64);
        let mut model = HashSet::new();
        for step in 0..20_000_u64 {
            let number = hash(step);
            // Few tags, so that many share one, and some at the very end of the table.
            let tag = match number % 5 {
                0 => u32::MAX,
                other => (other as u32) << 29 | 1,
            };
            let place = (number >> 8) as u32 % 16;
            let there = model.contains(&(tag, place));
            assert_eq!(slots.places(tag).any(|found| found == place), there);
            if number >> 60 < 8 {
                assert_eq!(slots.remove(tag, place), model.remove(&(tag, place)));
            } else if !there && !slots.is_full() {
                slots.insert(tag, place);
                model.insert((tag, place));
            }
            assert_eq!(slots.used, model.len());
        }
    }

    #[test]
    fn a_ghost_is_recalled_once() {
        let mut slots = Slots::new(1200);
        slots.remember(7);
        assert!(slots.recall(7));
        assert!(!slots.recall(7));
        assert!(!slots.recall(9));
    }
}
