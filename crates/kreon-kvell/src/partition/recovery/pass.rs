//! Which keys a reading of a partition takes in.
//!
//! Mostly all of them. Where memory is short, all items are read several times, and each pass takes in the keys whose hash lies
//! in a range of its own: all items and tombstones of a key come in the same pass, so that none has to know of another.

/// A pass narrows down to this share of all hash values, and no further: beside the index, of which there is all, the notes of
/// so few keys do not count, and each pass reads everything.
const SHARE_MIN: u64 = 1 << 60;

/// A range of the lower lanes of hashes, which say nothing of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    first: u64,
    last: u64,
}

impl Pass {
    /// All keys.
    pub const ALL: Self = Self {
        first: 0,
        last: u64::MAX,
    };

    /// Whether the pass takes in keys with this hash.
    pub const fn has(&self, key_hash: u128) -> bool {
        let lane = key_hash as u64;
        self.first <= lane && lane <= self.last
    }

    /// Whether no other pass comes before.
    pub const fn is_first(&self) -> bool {
        self.first == 0
    }

    /// Leaves a quarter of the keys to later passes. `false`, and nothing is changed, if there are few enough of them.
    pub const fn narrow(&mut self) -> bool {
        let width = self.last - self.first;
        let narrower = width / 4 * 3;
        if narrower < SHARE_MIN {
            return false;
        }
        self.last = self.first + narrower;
        true
    }

    /// The pass after this one, of as many keys; `None` if all were taken in.
    pub const fn next(&self) -> Option<Self> {
        match self.last.checked_add(1) {
            Some(first) => Some(Self {
                first,
                last: first.saturating_add(self.last - self.first),
            }),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edges of ranges, and what lies around them.
    fn lanes() -> Vec<u64> {
        let around = |lane: u64| [lane.wrapping_sub(1), lane, lane.wrapping_add(1)];
        (0..64).flat_map(|it| around(it << 58)).collect()
    }

    #[test]
    fn each_hash_is_of_one_pass_however_often_passes_are_narrowed() {
        for narrowed in 0..40 {
            let mut passes = vec![Pass::ALL];
            for _ in 0..narrowed {
                passes[0].narrow();
            }
            while let Some(next) = passes.last().and_then(Pass::next) {
                passes.push(next);
                // Later ones may be narrowed, too.
                passes.last_mut().expect("one").narrow();
            }
            assert!(passes[1..].iter().all(|pass| !pass.is_first()));
            assert!(passes.len() <= 15, "{}", passes.len());
            for lane in lanes() {
                let hash = u128::from(lane) | 0xabcd << 100;
                let of = passes.iter().filter(|pass| pass.has(hash)).count();
                assert_eq!(of, 1, "{lane:#x} after {narrowed}");
            }
        }
    }

    #[test]
    fn a_pass_that_is_narrowed_keeps_three_quarters_down_to_a_sixteenth() {
        let mut pass = Pass::ALL;
        let mut before = u64::MAX;
        while pass.narrow() {
            assert!(pass.last >= before / 4 * 3 && pass.last < before);
            before = pass.last;
        }
        assert!((SHARE_MIN..SHARE_MIN * 2).contains(&before), "{before:#x}");
    }
}
