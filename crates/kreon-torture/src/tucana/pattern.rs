//! Which keys are changed, and how: waves of puts and of deletions, over all keys or few, so that nodes are split and merged.

use kreon_sim::Dice;

/// Changes of one opening.
pub(super) struct Pattern {
    /// In hundredths.
    deletes: u64,
    places: Places,
}

/// Which keys.
enum Places {
    All,
    /// So many from one on.
    Window(u64, u64),
    /// One after the other, from this on.
    Ascending(u64),
}

impl Pattern {
    /// For `count` keys.
    pub fn new(dice: &mut Dice, count: usize) -> Self {
        let count = count as u64;
        Self {
            deletes: [2, 30, 60, 95][dice.below(4) as usize],
            places: match dice.below(4) {
                0 => Places::Window(dice.below(count), 1 + count / 8),
                1 => Places::Ascending(dice.below(count)),
                _ => Places::All,
            },
        }
    }

    /// The number of the next key, of `count`.
    pub fn key(&mut self, dice: &mut Dice, count: usize) -> usize {
        let count = count as u64;
        let key = match &mut self.places {
            Places::All => dice.below(count),
            Places::Window(first, keys) => (*first + dice.below(*keys)) % count,
            Places::Ascending(next) => {
                *next += 1;
                *next % count
            }
        };
        key as usize
    }

    pub fn deletes(&self, dice: &mut Dice) -> bool {
        dice.below(100) < self.deletes
    }
}
