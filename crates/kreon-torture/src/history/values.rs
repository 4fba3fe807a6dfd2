//! How long values are.

use kreon_judge::value::HEAD_BYTES;
pub use kreon_judge::value::{decode, encode};
use kreon_sim::Dice;

/// How long values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taste {
    /// Most fit into leaves.
    Small,
    /// Of all kinds, rarely longer than the log's pages.
    Mixed,
    /// Some KiB: more than the memory holds.
    Large,
}

impl Taste {
    /// Any.
    pub fn of(dice: &mut Dice) -> Self {
        [Self::Small, Self::Mixed, Self::Large][dice.below(3) as usize]
    }

    /// The length of a value, in bytes.
    pub fn len_bytes(self, dice: &mut Dice) -> usize {
        let (kind, any) = (dice.below(100), dice.roll() as usize);
        HEAD_BYTES
            + match (self, kind) {
                (Self::Small, 0..90) => any % 60,
                (Self::Small, _) => any % 700,
                (Self::Mixed, 0..40) => any % 120,
                (Self::Mixed, 40..99) => any % 1800,
                (Self::Mixed, _) => any % 80_000,
                (Self::Large, 0..20) => any % 200,
                (Self::Large, _) => any % 16_000,
            }
    }
}
