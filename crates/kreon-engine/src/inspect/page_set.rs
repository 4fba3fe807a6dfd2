//! A set of pages: 64 bytes for each segment that has one in it.

use std::collections::BTreeMap;

use kreon_base::{PAGE_BYTES, PageNo, SEGMENT_BYTES};

const SEGMENT_PAGES: u64 = SEGMENT_BYTES / PAGE_BYTES as u64;

/// A set of page numbers, one bitmap for each segment.
#[derive(Default)]
pub struct PageSet(BTreeMap<u64, [u64; (SEGMENT_PAGES / 64) as usize]>);

impl PageSet {
    /// Adds a page; false if it is there already.
    pub fn insert(&mut self, page: PageNo) -> bool {
        let (word, bit) = place_of(page);
        let words = self.0.entry(page.0 / SEGMENT_PAGES).or_default();
        let Some(word) = words.get_mut(word) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether a page is in the set.
    pub fn contains(&self, page: PageNo) -> bool {
        let (word, bit) = place_of(page);
        let words = self.0.get(&(page.0 / SEGMENT_PAGES));
        words
            .and_then(|words| words.get(word))
            .is_some_and(|word| word & bit != 0)
    }

    /// All pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.0.keys().flat_map(|segment| {
            let first = segment * SEGMENT_PAGES;
            let pages = (first..first + SEGMENT_PAGES).map(PageNo);
            pages.filter(|page| self.contains(*page))
        })
    }
}

impl Extend<PageNo> for PageSet {
    fn extend<T: IntoIterator<Item = PageNo>>(&mut self, pages: T) {
        for page in pages {
            self.insert(page);
        }
    }
}

/// The word of its segment's that has the page's bit, and the bit.
fn place_of(page: PageNo) -> (usize, u64) {
    let within = page.0 % SEGMENT_PAGES;
    ((within / 64) as usize, 1 << (within % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_holds_what_a_set_holds() {
        let (mut set, mut model) = (PageSet::default(), BTreeSet::new());
        for step in 0..3000_u64 {
            let page = PageNo(step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50);
            assert_eq!(set.contains(page), model.contains(&page));
            assert_eq!(set.insert(page), model.insert(page));
        }
        assert!(set.iter().eq(model));
    }
}
