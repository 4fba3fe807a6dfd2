//! The choice of the next merge in a region: a pure function of the sizes of its trees.
//!
//! The *class* of a tree is the least n >= 1 such that it is no larger than growth^n full L0s. The first tree takes
//! spills and should stay in class 1; every tree below should be of a higher class than the one above. Neighbours of
//! the same class are merged; the result may be of the next class and be merged with the tree below in turn. So a
//! region has about one tree per class, and its size alone decides the number of levels; no metadata fixes it.
//!
//! Two more rules keep regions from having more levels than they need: trees that together are of class 1 are merged,
//! and so are neighbours of which the upper has at least half as many entries as the lower. Such a merge costs little
//! per entry, and tombstones reach the versions that they delete before they pile up.

use std::ops::Range;

/// Leaf bytes of a full L0 per byte of its memory: 0.5 with values in the log, 0.6 with inline values of 33 bytes.
const LEAVES_PER_L0: f64 = 0.5;

/// Most full L0s in a merge that may delay spills.
const SHORT_UNITS: u64 = 10;

/// The size of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tree {
    /// Its pages.
    pub bytes: u64,
    /// Its versions of keys.
    pub entries: u64,
    /// It is being merged.
    pub is_busy: bool,
}

/// Target sizes of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Leaf bytes of a full L0.
    unit_bytes: u64,
    /// Size ratio of neighbouring classes; none: a single level.
    growth: Option<u64>,
}

impl Scale {
    /// The scale for an L0 of `l0_bytes` of memory.
    pub fn new(l0_bytes: usize, growth: Option<u32>) -> Self {
        Self {
            unit_bytes: ((l0_bytes as f64 * LEAVES_PER_L0) as u64).max(1),
            growth: growth.map(u64::from),
        }
    }

    /// The largest size of a tree of `class`, in bytes; classes start at 1.
    pub fn target_bytes(&self, class: u32) -> u64 {
        let Some(growth) = self.growth else {
            return u64::MAX;
        };
        self.unit_bytes.saturating_mul(growth.saturating_pow(class))
    }

    /// The class of a tree of this size: 1 or more.
    pub fn class(&self, bytes: u64) -> u32 {
        let mut class = 1;
        while bytes > self.target_bytes(class) {
            class += 1;
        }
        class
    }

    /// Whether a first tree of this size is too large to take spills.
    pub fn is_too_large_for_spills(&self, bytes: u64) -> bool {
        self.class(bytes) > 1
    }

    /// Whether a merge of `bytes` is short enough to delay spills.
    pub fn is_short(&self, bytes: u64) -> bool {
        bytes <= self.unit_bytes.saturating_mul(SHORT_UNITS)
    }

    /// The target size of each tree of a region, in bytes; `trees` are the present sizes from the top.
    pub fn targets(&self, trees: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut above = 0;
        let target = |bytes| {
            above = if above == 0 {
                1
            } else {
                self.class(bytes).max(above + 1)
            };
            self.target_bytes(above)
        };
        trees.into_iter().map(target).collect()
    }

    /// The range of `trees`, from the top, to merge next. The uppermost merge is first, because it makes spills cheap.
    pub fn next_merge(&self, trees: &[Tree]) -> Option<Range<usize>> {
        (0..trees.len()).find_map(|at| self.merge_from(trees, at))
    }

    fn merge_from(&self, trees: &[Tree], first: usize) -> Option<Range<usize>> {
        let rest = trees.get(first..)?;
        let (upper, rest) = rest.split_first()?;
        if upper.is_busy || upper.bytes == 0 {
            return None;
        }
        let mut sum = *upper;
        let mut end = first + 1;
        for lower in rest {
            if lower.is_busy || !self.belong_together(&sum, lower, first == 0) {
                break;
            }
            sum.bytes = sum.bytes.saturating_add(lower.bytes);
            sum.entries = sum.entries.saturating_add(lower.entries);
            end += 1;
        }
        (end > first + 1).then_some(first..end)
    }

    fn belong_together(&self, upper: &Tree, lower: &Tree, takes_spills: bool) -> bool {
        let class = self.class(upper.bytes);
        let is_class_full = class >= self.class(lower.bytes) && (class > 1 || !takes_spills);
        let is_small = self.class(upper.bytes.saturating_add(lower.bytes)) == 1;
        let is_large_share = upper.entries.saturating_mul(2) >= lower.entries;
        is_class_full || is_small || is_large_share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Full L0s of 10 bytes, growth 4: classes up to 40, 160, 640, 2560.
    const SCALE: Scale = Scale {
        unit_bytes: 10,
        growth: Some(4),
    };

    /// Trees of so many bytes, with entries of one byte.
    fn trees<const N: usize>(bytes: [u64; N]) -> [Tree; N] {
        bytes.map(|bytes| Tree {
            bytes,
            entries: bytes,
            is_busy: false,
        })
    }

    fn next<const N: usize>(bytes: [u64; N]) -> Option<Range<usize>> {
        SCALE.next_merge(&trees(bytes))
    }

    #[test]
    fn a_tree_alone_is_never_merged() {
        assert_eq!(next([]), None);
        assert_eq!(next([30]), None);
        assert_eq!(next([10_000]), None);
        assert_eq!(next([0, 10_000]), None);
    }

    #[test]
    fn neighbours_of_one_class_become_one() {
        assert_eq!(next([0, 45, 150]), Some(1..3));
        assert_eq!(next([0, 45, 500]), None);
        assert_eq!(next([10, 170, 600, 20_000]), Some(1..3));
    }

    #[test]
    fn a_merge_takes_the_tree_below_along_if_it_would_meet_it_anyway() {
        assert_eq!(next([0, 60, 120, 600]), Some(1..4));
        assert_eq!(next([0, 60, 90, 600]), Some(1..3));
    }

    #[test]
    fn the_uppermost_merge_comes_first() {
        assert_eq!(next([0, 50, 150, 1000, 2000]), Some(1..3));
    }

    #[test]
    fn a_first_tree_that_still_fills_is_left_alone() {
        assert_eq!(next([30, 100]), None);
        assert_eq!(next([39, 640]), None);
    }

    #[test]
    fn small_trees_and_large_shares_become_one() {
        assert_eq!(next([10, 25]), Some(0..2));
        assert_eq!(next([30, 50]), Some(0..2));
        // Tombstones have short entries, so their number counts, not their bytes.
        let mut few_bytes = trees([20, 500]);
        few_bytes[0].entries = 250;
        assert_eq!(SCALE.next_merge(&few_bytes), Some(0..2));
    }

    #[test]
    fn trees_that_are_being_merged_are_left_alone() {
        let mut four = trees([0, 60, 150, 600]);
        four[2].is_busy = true;
        assert_eq!(SCALE.next_merge(&four), None);
        let mut five = trees([0, 60, 150, 2000, 2100]);
        (five[3].is_busy, five[4].is_busy) = (true, true);
        assert_eq!(SCALE.next_merge(&five), Some(1..3));
    }

    #[test]
    fn without_growth_all_trees_become_one() {
        let one = Scale::new(1000, None);
        assert_eq!(one.next_merge(&trees([1, 1 << 40, 7])), Some(0..3));
        assert!(!one.is_too_large_for_spills(1 << 50));
    }

    #[test]
    fn targets_grow_from_tree_to_tree_and_fit_the_sizes() {
        assert_eq!(SCALE.targets([0]), [40]);
        assert_eq!(SCALE.targets([500]), [40]);
        assert_eq!(SCALE.targets([7, 20, 600]), [40, 160, 640]);
        assert_eq!(SCALE.targets([7, 600]), [40, 640]);
        assert_eq!(SCALE.target_bytes(u32::MAX), u64::MAX);
    }

    /// Spills of 10 bytes each into `trees` until `total` bytes were spilled; returns the most trees there
    /// were, and bytes written for each one spilled.
    fn grown(scale: Scale, total: u64) -> (usize, f64) {
        let (mut sizes, mut most, mut written) = (vec![0], 0, 0);
        for _ in 0..total / 10 {
            sizes[0] += 10;
            written += sizes[0];
            loop {
                if scale.is_too_large_for_spills(sizes[0]) {
                    sizes.insert(0, 0);
                }
                let seen: Vec<_> = sizes
                    .iter()
                    .map(|bytes| Tree {
                        bytes: *bytes,
                        entries: *bytes,
                        is_busy: false,
                    })
                    .collect();
                let Some(range) = scale.next_merge(&seen) else {
                    break;
                };
                let sum: u64 = sizes[range.clone()].iter().sum();
                written += sum;
                let with_first = range.start == 0;
                sizes.splice(range, [sum]);
                if with_first && scale.is_too_large_for_spills(sum) {
                    sizes.insert(0, 0);
                }
            }
            most = most.max(sizes.len());
        }
        assert_eq!(sizes.iter().sum::<u64>(), total);
        (most, written as f64 / total as f64)
    }

    #[test]
    fn trees_stay_few_and_writes_bounded_however_large_a_region_grows() {
        for (growth, total) in [(2, 40_000), (4, 200_000), (10, 1_000_000)] {
            let scale = Scale {
                unit_bytes: 10,
                growth: Some(growth),
            };
            let (most, written) = grown(scale, total);
            let levels = (total as f64 / 10.0).log(growth as f64).ceil();
            assert!(most as f64 <= levels + 1.0, "{growth}: {most} trees");
            assert!(written <= levels * growth as f64, "{growth}: {written}");
        }
    }
}
