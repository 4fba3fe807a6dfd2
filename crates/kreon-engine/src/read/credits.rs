//! Credits of leaves for reorganisation, in a table of fixed size.

use kreon_base::{PageNo, RegionId};

use kreon_sync::{AtomicU64, Ordering};

/// The part of a slot that holds the credit; what is above it says whose it is.
const CREDIT_BITS: u32 = 24;
const CREDIT_MAX: u64 = (1 << CREDIT_BITS) - 1;

/// A slot for each leaf, as long as no two want the same: then the one with more credit stays, and loses as much as
/// the other one would get. Races lose a credit now and then.
pub struct Credits {
    /// A power of two of them, or none.
    slots: Box<[AtomicU64]>,
}

impl Credits {
    /// A table of about so many bytes.
    pub fn new(bytes: usize) -> Self {
        let count = bytes / size_of::<AtomicU64>();
        let count = match count.is_power_of_two() {
            true => count,
            false => count.next_power_of_two() / 2,
        };
        Self {
            slots: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The slot of a leaf, and what says that it is that leaf's.
    fn slot(&self, region: RegionId, leaf: PageNo) -> Option<(&AtomicU64, u64)> {
        let hash = hash(region, leaf);
        let at = hash as usize & self.slots.len().wrapping_sub(1);
        Some((self.slots.get(at)?, hash & !CREDIT_MAX))
    }

    /// Whether a leaf has so much credit; then it begins anew.
    pub fn take(&self, region: RegionId, leaf: PageNo, credit: u64) -> bool {
        let Some((slot, owner)) = self.slot(region, leaf) else {
            return false;
        };
        let held = slot.load(Ordering::Relaxed);
        let has = held & !CREDIT_MAX == owner && held & CREDIT_MAX >= credit;
        if has {
            slot.store(owner, Ordering::Relaxed);
        }
        has
    }

    /// Credits a leaf; whether it has `enough` now. Then it begins anew.
    pub fn add(&self, region: RegionId, leaf: PageNo, credit: u64, enough: u64) -> bool {
        let Some((slot, owner)) = self.slot(region, leaf) else {
            return false;
        };
        let old = slot.load(Ordering::Relaxed);
        let held = old & CREDIT_MAX;
        let is_own = old & !CREDIT_MAX == owner;
        let new = match is_own {
            true => (held + credit).min(CREDIT_MAX),
            false if held > credit => {
                slot.store(old - credit, Ordering::Relaxed);
                return false;
            }
            false => credit.min(CREDIT_MAX),
        };
        let is_enough = new >= enough;
        slot.store(owner | if is_enough { 0 } else { new }, Ordering::Relaxed);
        is_enough
    }
}

fn hash(region: RegionId, leaf: PageNo) -> u64 {
    // The finisher of splitmix64: page numbers of neighbours are close.
    let mut hash = leaf.0 ^ u64::from(region.0).rotate_left(40);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: RegionId = RegionId(1);

    #[test]
    fn a_leaf_has_enough_when_its_credits_sum_to_that_and_begins_anew() {
        let credits = Credits::new(1 << 10);
        let add = |leaf| credits.add(REGION, PageNo(leaf), 40, 100);
        assert_eq!([add(1), add(2), add(1)], [false; 3]);
        assert!(add(1));
        assert!(!add(1));
    }

    #[test]
    fn credit_is_taken_once_and_from_its_leaf_alone() {
        let credits = Credits::new(1 << 10);
        credits.add(REGION, PageNo(1), 40, 100);
        let take = |leaf, credit| credits.take(REGION, PageNo(leaf), credit);
        assert_eq!([take(1, 41), take(2, 1), take(1, 40)], [false, false, true]);
        assert!(!take(1, 1));
    }

    #[test]
    fn of_two_leaves_with_one_slot_the_one_that_is_scanned_more_wins() {
        let credits = Credits::new(8);
        let add = |leaf| credits.add(REGION, PageNo(leaf), 10, 60);
        let mut won = [0, 0];
        for round in 0..100 {
            won[0] += u32::from(add(1));
            if round % 4 == 0 {
                won[1] += u32::from(add(2));
            }
        }
        assert!(won[0] > 5 && won[1] == 0, "{won:?}");
    }

    #[test]
    fn without_a_table_nobody_has_enough() {
        assert!(!Credits::new(0).add(REGION, PageNo(1), 100, 1));
    }
}
