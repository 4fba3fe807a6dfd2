//! Partitions of the engine KVell on a simulated device: requests, transfers and flushes in an order that dice choose,
//! power cuts, failing calls, and a judge of what is left.
//!
//! - `model`: what each key may have
//! - `setting`: what a world is like
//! - `world`: partitions, their device, and what is under way
//! - `course`: requests, cuts and checks
//!
//! And whole stores, with their workers:
//!
//! - [`mod@faults`]: every single failure of the device
//! - [`mod@damage`]: changes of every sector
//! - [`mod@history`]: concurrent clients, and whether what they saw can be explained
//! - [`mod@crash`]: processes that are killed
//! - [`arguments`]: the command

pub mod arguments;
mod course;
pub mod crash;
pub mod damage;
pub mod faults;
pub mod history;
mod model;
mod setting;
mod world;

use crate::Counts;
use crate::seeds::{judged, many};

pub use arguments::Arguments;

/// Power cuts of a course, and crash states that are opened and compared.
pub const CUTS: u64 = 12;

/// Tries at least `states` crash states, [`CUTS`] of each seed from `seed` on. A failure does not end it.
pub fn many_kvell(states: u64, seed: u64) -> Counts {
    many("kvell", states.div_ceil(CUTS), seed, kvell)
}

/// A store by `seed`, and its power cuts.
pub fn kvell(seed: u64) -> Counts {
    let mut counts = judged(("kvell", "stores"), seed, Ok(course::run(seed, CUTS)));
    for _ in 0..CUTS {
        counts.count("crash states");
    }
    counts
}

#[cfg(test)]
mod tests {
    #[test]
    fn power_cuts_and_failures_lose_no_durable_change_and_bring_nothing_back() {
        for seed in 1..=20 {
            let counts = super::kvell(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
