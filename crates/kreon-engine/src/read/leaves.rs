//! The leaves of the pairs of a step of a scan.

use std::ops::Range;

use kreon_base::PageNo;

/// Leaves in the order of the pairs.
#[derive(Default)]
pub struct Leaves {
    /// A leaf, and the first pair in it.
    starts: Vec<(PageNo, usize)>,
}

impl Leaves {
    /// The pair `at` is in `leaf`, if that is known.
    pub fn note(&mut self, leaf: Option<PageNo>, at: usize) {
        if let Some(leaf) = leaf
            && self.starts.last().is_none_or(|(last, _)| *last != leaf)
        {
            self.starts.push((leaf, at));
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.starts.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// The leaves, and which of `pairs` pairs are in them.
    pub fn spans(&self, pairs: usize) -> impl Iterator<Item = (PageNo, Range<usize>)> {
        let ends = self.starts.iter().skip(1).map(|(_, start)| *start);
        let starts = self.starts.iter().copied();
        let spans = starts.zip(ends.chain([pairs]));
        spans.map(|((leaf, start), end)| (leaf, start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_told_apart_by_their_leaves() {
        let mut leaves = Leaves::default();
        let pages = [None, Some(7), Some(7), None, Some(9), Some(9)];
        for (at, page) in pages.into_iter().enumerate() {
            leaves.note(page.map(PageNo), at);
        }
        let spans: Vec<_> = leaves.spans(6).collect();
        assert_eq!(spans, [(PageNo(7), 1..4), (PageNo(9), 4..6)]);
        leaves.clear();
        assert_eq!(leaves.spans(6).count(), 0);
    }
}
