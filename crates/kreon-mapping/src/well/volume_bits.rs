//! A bit for each page of a volume.

use kreon_base::sync::Ordering::Relaxed;
use kreon_base::{PageNo, Result};

use super::page_array::PageArray;

/// Pages of a word.
const WORD_PAGES: u64 = u32::BITS as u64;

/// A bit for each page, all clear at first. Takes memory only where bits were set.
pub(crate) struct VolumeBits {
    words: PageArray,
    pages: u64,
}

impl VolumeBits {
    /// Bits of `pages` pages.
    pub(crate) fn new(pages: u64) -> Result<Self> {
        let words = PageArray::new(pages.div_ceil(WORD_PAGES))?;
        Ok(Self { words, pages })
    }

    #[inline]
    pub(crate) fn has(&self, page: PageNo) -> bool {
        let word = self.words.entry(PageNo(page.0 / WORD_PAGES));
        word.is_some_and(|word| word.load(Relaxed) & bit(page.0) != 0)
    }

    pub(crate) fn set(&self, page: PageNo) {
        if let Some(word) = self.words.entry(PageNo(page.0 / WORD_PAGES)) {
            word.fetch_or(bit(page.0), Relaxed);
        }
    }

    /// Clears the bits of `pages` pages from `first` on.
    pub(crate) fn clear(&self, first: PageNo, pages: u64) {
        let end = first.0.saturating_add(pages).min(self.pages);
        let mut page = first.0;
        while page < end {
            let word_end = ((page / WORD_PAGES + 1) * WORD_PAGES).min(end);
            let gone = (page..word_end).fold(0, |bits, page| bits | bit(page));
            // A store to a word that is clear would take memory for nothing.
            if let Some(word) = self.words.entry(PageNo(page / WORD_PAGES))
                && word.load(Relaxed) & gone != 0
            {
                word.fetch_and(!gone, Relaxed);
            }
            page = word_end;
        }
    }
}

const fn bit(page: u64) -> u32 {
    1 << (page % WORD_PAGES)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_bits_that_were_set_and_not_cleared_are_there() {
        let bits = VolumeBits::new(200).unwrap();
        (0..200).for_each(|page| bits.set(PageNo(page)));
        bits.clear(PageNo(31), 2);
        bits.clear(PageNo(64), 64);
        bits.clear(PageNo(190), u64::MAX);
        for page in 0..200 {
            let gone = [31..33, 64..128, 190..200]
                .iter()
                .any(|r| r.contains(&page));
            assert_eq!(bits.has(PageNo(page)), !gone, "{page}");
        }
        assert!(!bits.has(PageNo(1 << 40)));
    }
}
