//! Which moments of a run are cut.

use kreon_sim::Dice;

/// Some of `count` indices, by chance, one of each run of the same length: `least` or more if there are so many, fewer than
/// twice as many. How many there are depends on the threads of a store; that enough are tried must not.
pub fn spread(count: usize, least: u64, dice: &mut Dice) -> Vec<usize> {
    let run = (count as u64 / least).max(1) as usize;
    let runs = (0..count).step_by(run);
    let chosen = runs.map(|first| first + dice.below(run as u64) as usize);
    chosen.filter(|index| *index < count).collect()
}
