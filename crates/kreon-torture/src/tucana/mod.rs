//! The engine Tucana under torture: its stores on a simulated device, with changes, reads, snapshots and commits that dice choose,
//! power cuts, and a judge of what is left.
//!
//! - `setting`: what a store is like, and which keys it has
//! - `pattern`: which keys are changed, and how
//! - `model`: what a store may hold after a power cut
//! - `compare`: what a store holds beside what it must hold
//! - `open_scan`: scans beside changes
//! - `session`: an open store, and what it must hold
//! - `course`: openings and cuts
//!
//! And under [the hunts of all engines](crate::engines):
//!
//! - `store`: a store as the hunts see it; `regions`: where its keys are
//! - `script`: what calls fail under
//! - `damage`: volumes that are damaged
//! - `clients`: how clients use a store; `log_order`: whether a replay of the log tells what they saw
//! - `crash`: what processes are killed

mod clients;
mod compare;
mod course;
mod crash;
mod damage;
mod log_order;
mod model;
mod open_scan;
mod pattern;
mod regions;
mod script;
mod session;
mod setting;
mod store;

pub(crate) use store::Tucana;

use crate::Counts;
use crate::engines::Arguments;

/// Tries the engine.
pub fn run(arguments: Arguments) -> Counts {
    arguments.run::<Tucana>()
}

#[cfg(test)]
mod tests {
    use super::{Tucana, log_order};
    use crate::Extent;
    use crate::engines::{Cut, damage, faults, history};

    #[test]
    fn a_power_cut_leaves_what_was_durable_and_a_store_that_goes_on() {
        for seed in 1..=12 {
            let counts = Tucana::states(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
            assert!(counts.tried.get("crash states") >= Some(&40), "{counts}");
        }
    }

    #[test]
    fn a_failing_call_is_told_and_nothing_durable_in_tucana_is_lost() {
        // One without replay, one with it.
        for seed in [1, 2] {
            let extent = Extent {
                stride: 61,
                ..Extent::default()
            };
            let counts = faults::faults::<Tucana>(seed, extent);
            assert_eq!(counts.failures, Vec::<String>::new());
            assert!(counts.total() >= 10, "{counts}");
        }
    }

    #[test]
    fn damage_to_any_sector_of_a_volume_of_tucana_is_told_or_does_no_harm() {
        let counts = damage::damage::<Tucana>(Extent {
            stride: 4001,
            ..Extent::default()
        });
        assert_eq!(counts.failed, 0, "{counts}");
        let kinds = ["Told", "Harmless"];
        let has = |kind| counts.tried.keys().any(|class| class.ends_with(kind));
        assert!(kinds.into_iter().all(has), "{counts}");
    }

    #[test]
    fn what_clients_of_tucana_see_has_an_order() {
        for seed in 1..=4 {
            let counts = history::life::<Tucana>(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }

    #[test]
    fn a_replay_finds_the_value_that_was_seen_last_however_writers_raced() {
        assert_eq!(log_order::race(), Ok(()));
    }
}
