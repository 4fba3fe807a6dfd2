//! A set of pages: 64 bytes for each segment that has one in it.

use std::collections::BTreeMap;

use kreon_base::{PageNo, SEGMENT_PAGES};
use kreon_volume::PageBits;

/// A set of page numbers. The keys are numbers of segments, also of those that no volume can have.
#[derive(Default)]
pub struct PageSet(BTreeMap<u64, PageBits>);

impl PageSet {
    /// Adds a page; false if it is there already.
    pub fn insert(&mut self, page: PageNo) -> bool {
        let bits = self.0.entry(page.0 / SEGMENT_PAGES).or_default();
        let is_new = !bits.contains(page.0 % SEGMENT_PAGES);
        bits.insert(page.0 % SEGMENT_PAGES);
        is_new
    }

    /// Whether a page is in the set.
    pub fn contains(&self, page: PageNo) -> bool {
        let bits = self.0.get(&(page.0 / SEGMENT_PAGES));
        bits.is_some_and(|bits| bits.contains(page.0 % SEGMENT_PAGES))
    }

    /// All pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.0.iter().flat_map(|(segment, bits)| {
            let within = (0..SEGMENT_PAGES).filter(|page| bits.contains(*page));
            within.map(move |page| PageNo(segment * SEGMENT_PAGES + page))
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
