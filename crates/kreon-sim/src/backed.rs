//! Which pages have real space behind them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::image::{CHUNK_PAGES, Image};

/// A set of pages.
pub(crate) struct Backed {
    /// A bit for each of 64 neighbouring pages.
    bits: BTreeMap<u64, u64>,
    /// How many there are.
    pub pages: u64,
}

impl Backed {
    /// Those that `image` holds.
    pub fn of(image: &Image) -> Self {
        let bits: BTreeMap<_, _> = image.written_pages().collect();
        let pages = bits.values().map(|bits| u64::from(bits.count_ones())).sum();
        Self { bits, pages }
    }

    /// How many of `pages` are not in the set.
    pub fn missing(&self, pages: Range<u64>) -> u64 {
        let missing = |(number, mask): (u64, u64)| {
            let there = self.bits.get(&number).copied().unwrap_or(0);
            u64::from((mask & !there).count_ones())
        };
        masks(pages).map(missing).sum()
    }

    /// Adds pages.
    pub fn insert(&mut self, pages: Range<u64>) {
        for (number, mask) in masks(pages) {
            let bits = self.bits.entry(number).or_default();
            self.pages += u64::from((mask & !*bits).count_ones());
            *bits |= mask;
        }
    }

    /// Takes pages out.
    pub fn remove(&mut self, pages: Range<u64>) {
        for (number, mask) in masks(pages) {
            if let Some(bits) = self.bits.get_mut(&number) {
                self.pages -= u64::from((mask & *bits).count_ones());
                *bits &= !mask;
            }
        }
    }
}

/// A range of pages as words of bits.
fn masks(pages: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let numbers = match pages.is_empty() {
        true => 0..0,
        false => pages.start / CHUNK_PAGES..pages.end.div_ceil(CHUNK_PAGES),
    };
    numbers.map(move |number| {
        let first = number * CHUNK_PAGES;
        let from = pages.start.saturating_sub(first);
        let behind = (pages.end - first).min(CHUNK_PAGES);
        let mask = (u64::MAX << from) & (u64::MAX >> (CHUNK_PAGES - behind));
        (number, mask)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Dice;

    #[test]
    fn the_set_counts_as_a_plain_one() {
        let mut dice = Dice::new(3);
        let mut plain = BTreeSet::new();
        let mut backed = Backed::of(&Image::new(0));
        for _ in 0..500 {
            let start = dice.below(400);
            let pages = start..start + dice.below(150);
            let missing = pages.clone().filter(|page| !plain.contains(page)).count();
            assert_eq!(backed.missing(pages.clone()), missing as u64);
            if dice.below(2) == 0 {
                plain.extend(pages.clone());
                backed.insert(pages);
            } else {
                plain.retain(|page| !pages.contains(page));
                backed.remove(pages);
            }
            assert_eq!(backed.pages, plain.len() as u64);
        }
    }
}
