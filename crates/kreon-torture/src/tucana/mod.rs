//! Stores of the engine Tucana on a simulated device: changes, reads, snapshots and commits that dice choose, power cuts, and a
//! judge of what is left.
//!
//! - `setting`: what a store is like, and which keys it has
//! - `pattern`: which keys are changed, and how
//! - `model`: what a store may hold after a power cut
//! - `compare`: what a store holds beside what it must hold
//! - `open_scan`: scans beside changes
//! - `session`: an open store, and what it must hold
//! - `course`: openings and cuts
//!
//! And:
//!
//! - [`mod@faults`]: every single failure of the device
//! - [`mod@damage`]: changes of every sector
//! - [`mod@history`]: whether what concurrent `clients` saw can be explained; `neighbours`: writers beside them;
//!   `log_order`: whether the log tells the same
//! - [`mod@crash`]: processes that are killed
//! - [`arguments`]: the command

pub mod arguments;
mod clients;
mod compare;
mod course;
pub mod crash;
pub mod damage;
pub mod faults;
pub mod history;
mod log_order;
mod model;
mod neighbours;
mod open_scan;
mod pattern;
mod session;
mod setting;

use crate::Counts;
use crate::seeds::{judged, many};

pub use arguments::Arguments;

/// Tries at least `states` crash states, some of each seed from `seed` on. A failure does not end it.
pub fn many_tucana(states: u64, seed: u64) -> Counts {
    many("tucana", states.div_ceil(course::STATES), seed, tucana)
}

/// A store by `seed`, and its power cuts.
pub fn tucana(seed: u64) -> Counts {
    let mut tried = Counts::default();
    let outcome = course::run(seed, &mut tried);
    let mut counts = judged(("tucana", "stores"), seed, Ok(outcome));
    counts.add(tried);
    counts
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_power_cut_leaves_a_commit_of_the_store_and_a_store_that_goes_on() {
        for seed in 1..=12 {
            let counts = super::tucana(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
            assert!(counts.tried.get("crash states") >= Some(&40), "{counts}");
        }
    }
}
