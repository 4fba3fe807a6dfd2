//! Random inputs for ordinary tests: what a fuzzer does without its eyes.

use kreon_sim::Dice;

/// A row of random inputs.
pub struct Randomness {
    dice: Dice,
}

impl Randomness {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
        }
    }
}

/// The next input: random bytes, or one of `corpus` with a few changes. At most `bytes_max` long.
pub fn random_input(random: &mut Randomness, corpus: &[Vec<u8>], bytes_max: usize) -> Vec<u8> {
    let dice = &mut random.dice;
    let known = dice.below(corpus.len() as u64 * 2) as usize;
    let mut input = match corpus.get(known) {
        Some(input) => input.clone(),
        None => bytes(dice, bytes_max),
    };
    for _ in 0..dice.below(6) {
        change(dice, &mut input);
    }
    input.truncate(bytes_max);
    input
}

fn bytes(dice: &mut Dice, bytes_max: usize) -> Vec<u8> {
    let len_bytes = dice.below(bytes_max as u64 + 1);
    // Small numbers and zeroes say more than evenly spread ones.
    let small = dice.below(3);
    (0..len_bytes)
        .map(|_| match small {
            0 => dice.below(4) as u8,
            1 => dice.below(64) as u8,
            _ => dice.roll() as u8,
        })
        .collect()
}

fn change(dice: &mut Dice, input: &mut Vec<u8>) {
    let at = dice.below(input.len() as u64 + 1) as usize;
    match (dice.below(4), input.get_mut(at)) {
        (0, Some(byte)) => *byte ^= 1 << dice.below(8),
        (1, Some(byte)) => *byte = dice.roll() as u8,
        (2, Some(_)) => drop(input.remove(at)),
        _ => input.insert(at, dice.roll() as u8),
    }
}
