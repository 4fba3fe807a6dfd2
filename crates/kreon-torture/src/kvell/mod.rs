//! The engine KVell under torture: its partitions on a simulated device, with requests, transfers and flushes in an order that
//! dice choose, power cuts, failing calls, and a judge of what is left.
//!
//! - `model`: what each key may have
//! - `setting`: what a world is like
//! - `world`: partitions, their device, and what is under way
//! - `course`: requests, cuts and checks
//! - `verified`: a verification of what is there
//!
//! And whole stores, with their workers, under [the hunts of all engines](crate::engines):
//!
//! - `store`: a store as the hunts see it
//! - `script`: what calls fail under
//! - `damage`: volumes that are damaged
//! - `clients`: how clients use a store
//! - `crash`: what processes are killed

mod clients;
mod course;
mod crash;
mod damage;
mod model;
mod script;
mod setting;
mod store;
mod verified;
mod world;

pub(crate) use store::Kvell;

use crate::Counts;
use crate::engines::Arguments;

/// Tries the engine.
pub fn run(arguments: Arguments) -> Counts {
    arguments.run::<Kvell>()
}

#[cfg(test)]
mod tests {
    use super::Kvell;
    use crate::Extent;
    use crate::engines::{Cut, damage, faults, history};

    #[test]
    fn power_cuts_and_failures_lose_no_durable_change_and_bring_nothing_back() {
        for seed in 1..=20 {
            let counts = Kvell::states(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }

    #[test]
    fn a_failing_call_is_told_and_nothing_durable_is_lost() {
        let extent = Extent {
            stride: 83,
            ..Extent::default()
        };
        let counts = faults::faults::<Kvell>(1, extent);
        assert_eq!(counts.failures, Vec::<String>::new());
        assert!(counts.total() >= 10, "{counts}");
    }

    #[test]
    fn damage_to_any_sector_of_a_volume_of_kvell_is_told_or_does_no_harm() {
        let counts = damage::damage::<Kvell>(Extent {
            stride: 9001,
            ..Extent::default()
        });
        assert_eq!(counts.failed, 0, "{counts}");
        let kinds = ["Refused", "Told", "Harmless"];
        let has = |kind| counts.tried.keys().any(|class| class.ends_with(kind));
        assert!(kinds.into_iter().all(has), "{counts}");
    }

    #[test]
    fn what_clients_of_kvell_see_of_each_key_has_an_order() {
        for seed in 1..=6 {
            let counts = history::life::<Kvell>(seed);
            assert_eq!(counts.failures, Vec::<String>::new());
        }
    }
}
