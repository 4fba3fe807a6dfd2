//! A bit per page of one segment.

use kreon_base::SEGMENT_PAGES;

const WORDS: usize = (SEGMENT_PAGES / 64) as usize;

/// A set of pages of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageBits(
    /// The first page is the lowest bit of the first word.
    pub [u64; WORDS],
);

impl PageBits {
    /// All pages of the segment.
    pub const ALL: Self = Self([u64::MAX; WORDS]);

    /// Whether the page is in the set.
    pub fn contains(&self, page: u64) -> bool {
        self.0[word(page)] & bit(page) != 0
    }

    /// Adds the page.
    pub fn insert(&mut self, page: u64) {
        self.0[word(page)] |= bit(page);
    }

    /// Takes the page out.
    pub fn remove(&mut self, page: u64) {
        self.0[word(page)] &= !bit(page);
    }

    /// Whether no page is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many pages are not in the set.
    pub fn gaps(&self) -> u64 {
        self.0
            .iter()
            .map(|word| u64::from(word.count_zeros()))
            .sum()
    }

    /// The first page that is not in the set; [`SEGMENT_PAGES`] if all are.
    pub fn first_gap(&self) -> u64 {
        self.next(0, false)
    }

    /// The longest run of pages that are not in the set, as (first, length), the first of equals.
    pub fn longest_gap(&self) -> (u64, u64) {
        let mut best = (0, 0);
        let mut page = 0;
        while page < SEGMENT_PAGES {
            let first = self.next(page, false);
            let end = self.next(first, true);
            if end - first > best.1 {
                best = (first, end - first);
            }
            page = end.max(first + 1);
        }
        best
    }

    /// The first page at or after `from` that is (`member`) or is not in the set; [`SEGMENT_PAGES`]
    /// if there is none.
    fn next(&self, from: u64, member: bool) -> u64 {
        let mut page = from;
        while page < SEGMENT_PAGES {
            let word = if member {
                self.0[word(page)]
            } else {
                !self.0[word(page)]
            };
            let rest = word >> (page % 64);
            if rest != 0 {
                return page + u64::from(rest.trailing_zeros());
            }
            page = (page / 64 + 1) * 64;
        }
        SEGMENT_PAGES
    }
}

fn word(page: u64) -> usize {
    (page / 64) as usize
}

fn bit(page: u64) -> u64 {
    1 << (page % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_gap_spans_words_and_ends() {
        let mut bits = PageBits::default();
        assert_eq!(bits.longest_gap(), (0, 512));
        bits.insert(10);
        bits.insert(200);
        assert_eq!(bits.longest_gap(), (201, 311));
        bits.insert(511);
        assert_eq!(bits.longest_gap(), (201, 310));
        assert_eq!(PageBits::ALL.longest_gap().1, 0);
        let mut one = PageBits::ALL;
        one.remove(64);
        assert_eq!(one.longest_gap(), (64, 1));
    }

    #[test]
    fn insert_and_remove_agree_with_contains() {
        let mut bits = PageBits::default();
        for page in [0, 63, 64, 511] {
            bits.insert(page);
            assert!(bits.contains(page));
        }
        bits.remove(64);
        assert!(!bits.contains(64) && !bits.is_empty());
    }
}
