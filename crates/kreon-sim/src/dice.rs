//! Numbers from a seed.

/// A small deterministic generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.roll().checked_rem(limit).unwrap_or(0)
    }

    /// The number that belongs to `what` under `seed`, whatever was asked before.
    pub(crate) fn of(seed: u64, what: u64) -> u64 {
        // Rolled twice, so that neighbours in either argument have nothing in common.
        let mut first = Self::new(seed);
        Self::new(first.roll() ^ what).roll()
    }
}
