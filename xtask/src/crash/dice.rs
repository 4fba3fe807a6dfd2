//! Chance that repeats: the same parts give the same throws (`SplitMix64`).

/// A run of numbers that looks random and follows from what it was made of.
pub struct Dice(u64);

impl Dice {
    pub fn of(parts: &[u64]) -> Self {
        let mut dice = Self(0);
        for part in parts {
            dice.0 = dice.throw() ^ part;
        }
        dice
    }

    /// Any number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high - 1`; `low` if there is none.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.throw() % high.saturating_sub(low).max(1)
    }

    /// True once in `n` throws.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.between(0, n) == 0
    }

    /// As many bytes as asked for.
    pub fn fill(&mut self, bytes: &mut Vec<u8>, len_bytes: usize) {
        while bytes.len() < len_bytes {
            bytes.extend_from_slice(&self.throw().to_le_bytes());
        }
        bytes.truncate(len_bytes);
    }
}
