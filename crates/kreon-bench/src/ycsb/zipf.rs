//! Zipfian numbers, as YCSB draws them (J. Gray et al., "Quickly generating billion-record synthetic databases",
//! SIGMOD 1994).

use crate::keys::hash;

/// The skew of YCSB.
pub const THETA: f64 = 0.99;

/// Items of which YCSB's scrambled generator draws before it hashes the number down to the records.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// The sum of `1 / i^THETA` for [`SCRAMBLED_ITEMS`], as YCSB has it.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Draws ranks from 0, of which small ones come often.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    items: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks below `items`. Costs a sum over all of them: 10 ns an item.
    pub fn new(items: u64) -> Self {
        let items = items.max(1);
        Self::with_zeta(items, (1..=items).map(|i| (i as f64).powf(-THETA)).sum())
    }

    fn with_zeta(items: u64, zeta: f64) -> Self {
        let zeta_of_two = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta_of_two / zeta);
        Self {
            items,
            zeta,
            alpha: 1.0 / (1.0 - THETA),
            eta,
        }
    }

    /// The rank that belongs to `uniform`, from 0 to below 1.
    pub fn rank(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1.min(self.items - 1);
        }
        let rank = self.items as f64 * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }

    /// YCSB's scrambled generator: ranks of ten billion items, each hashed to one of `records`. So the hottest
    /// record gets 3.8 % of the requests, and the rest is much flatter than the skew says.
    pub fn scrambled() -> Self {
        Self::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA)
    }
}

/// Gives each rank below `records` a record of its own, so that hot ones were not loaded one after the other.
pub fn permute(rank: u64, records: u64) -> u64 {
    // A prime: coprime to every number of records.
    const STEP: u128 = (1 << 61) - 1;
    ((u128::from(rank) + 1) * STEP % u128::from(records.max(1))) as u64
}

/// Spreads ranks of more items than there are records over the records, as YCSB does.
pub fn spread(rank: u64, records: u64) -> u64 {
    hash(rank ^ 0x5ca7_7e2e_d000) % records.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(zipf: Zipf, draws: u64) -> (f64, f64) {
        let ranks = (0..draws).map(|n| zipf.rank((hash(n) >> 11) as f64 / (1u64 << 53) as f64));
        let (mut first, mut hundred) = (0, 0);
        for rank in ranks {
            first += u64::from(rank == 0);
            hundred += u64::from(rank < 100);
        }
        (first as f64 / draws as f64, hundred as f64 / draws as f64)
    }

    #[test]
    fn the_first_ranks_get_their_share() {
        let items = 10_000;
        let zeta: f64 = (1..=items).map(|i| f64::from(i).powf(-THETA)).sum();
        let of_hundred: f64 = (1..=100).map(|i| f64::from(i).powf(-THETA)).sum::<f64>() / zeta;
        let (first, hundred) = shares(Zipf::new(items as u64), 200_000);
        assert!((first - 1.0 / zeta).abs() < 0.005, "{first}");
        assert!(
            (hundred - of_hundred).abs() < 0.02,
            "{hundred} {of_hundred}"
        );
    }

    #[test]
    fn the_scrambled_one_is_flatter() {
        let (first, _) = shares(Zipf::scrambled(), 200_000);
        assert!((first - 1.0 / SCRAMBLED_ZETA).abs() < 0.003, "{first}");
    }

    #[test]
    fn no_two_ranks_share_a_record() {
        for records in [1, 2, 10, 997, 4096] {
            let distinct: std::collections::BTreeSet<_> =
                (0..records).map(|rank| permute(rank, records)).collect();
            assert_eq!(distinct.len() as u64, records);
        }
    }

    #[test]
    fn ranks_stay_below_the_number_of_items() {
        for items in [1, 2, 3, 1000] {
            let zipf = Zipf::new(items);
            for uniform in [0.0, 0.3, 0.5, 0.9, 0.999_999_999] {
                assert!(zipf.rank(uniform) < items);
            }
        }
    }
}
