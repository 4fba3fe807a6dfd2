//! The space plan: the division of the space of a store, and its price in bytes written per byte given.
//!
//! All figures are shares of the live bytes. The target covers the records with their headers, the nodes twice (a spill
//! writes new ones beside those that it replaces) and a few fixed segments; the slack remains for dead records.
//!
//! - The *log cost* `w` is what is written to the log for each byte given, copies of garbage collection included. If a share
//!   `a` of a victim is live, `w = 1 / (1 - a)`, and under uniform overwrites, victims with the most dead bytes first, a log
//!   with `l` live bytes takes `-l w ln(a)`. So `w` takes `d(w) = l (-w ln(1 - 1 / w) - 1)` dead bytes that wait.
//! - Users overwrite `u` bytes between two spills. The log grows by `u w` before the spill frees anything, and by a quarter
//!   as much again during the spill: [`BESIDE_SPILL`] `u w`, the *transient* space.
//! - A spill writes the nodes `n`, which is `n / u` for each byte given.
//!
//! So a pair of `w` and `u` takes the slack `d(w) + 1.25 u w` and costs `w + n / u`. Frequent spills write too many nodes, rare
//! ones cause too many copies. [`cheapest`](Shares::cheapest) is the pair of least cost in a given slack; if it costs more
//! than the store may write, [`smallest`](Shares::smallest) is the pair of least slack at the given cost. Each is the
//! best of a row of values of `w`, as `u` follows from `w`.

use crate::tuning::{BESIDE_SPILL, HIDDEN_SHARE_MAX, HIDDEN_SHARE_MIN};

/// The input of a plan, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    /// Keys and values.
    pub live: u64,
    /// Live records of the log with their headers.
    pub log_live: u64,
    /// Nodes of all trees.
    pub nodes: u64,
    /// Fixed segments.
    pub fixed: u64,
    /// The least bound on hidden bytes between two spills.
    pub hidden_min: u64,
    /// The same if the target costs too much.
    pub hidden_min_if_dear: u64,
}

/// A space plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    /// Space for each live byte.
    pub target: f64,
    /// Dead bytes that the log may hide between two spills.
    pub hidden_max: u64,
    /// Additional space from one spill to the next, in bytes.
    pub transient: u64,
    /// Log bytes written for each byte given.
    pub log_cost: f64,
    /// All bytes written for each byte given.
    pub cost: f64,
}

/// The input of a plan as shares of the live bytes.
struct Shares {
    live: f64,
    /// Live records.
    log: f64,
    nodes: f64,
    /// What the target covers beside the slack.
    base: f64,
}

/// A log cost, and the share that users may overwrite between two spills.
#[derive(Clone, Copy)]
struct Pair {
    log_cost: f64,
    hidden: f64,
}

impl Plan {
    /// Of a store that wants to take `target`, or the least more than that which costs no more than `cost_max`.
    pub(super) fn new(given: &Given, target: f64, cost_max: f64) -> Self {
        let shares = Shares::of(given);
        let share = |bytes: u64| (bytes as f64 / shares.live).max(HIDDEN_SHARE_MIN);
        let cheapest = shares.cheapest(target - shares.base, share(given.hidden_min));
        let pair = match cheapest {
            Some(pair) if shares.cost(pair) <= cost_max => return shares.plan(pair, target),
            _ => {
                let hidden_min = given.hidden_min.max(given.hidden_min_if_dear);
                shares.smallest(cost_max, share(hidden_min))
            }
        };
        let smallest = shares.base + shares.slack(pair);
        shares.plan(pair, smallest.max(target))
    }

    /// Bytes of new space still needed before the next spill frees some: the log hides `hidden` bytes by now.
    pub(super) fn still_to_come(&self, hidden: u64) -> f64 {
        self.hidden_max.saturating_sub(hidden) as f64 + self.beside_to_come(0.0)
    }

    /// The same during a spill; `done` is its finished share, 0 to 1.
    pub(super) fn beside_to_come(&self, done: f64) -> f64 {
        self.transient as f64 * (1.0 - 1.0 / BESIDE_SPILL) * (1.0 - done).clamp(0.0, 1.0)
    }
}

impl Shares {
    fn of(given: &Given) -> Self {
        let live = given.live.max(1) as f64;
        let [log, nodes, fixed] =
            [given.log_live, given.nodes, given.fixed].map(|bytes| bytes as f64 / live);
        Self {
            live,
            log,
            nodes,
            // What of the live bytes is not in the log is in the nodes.
            base: log + 2.0 * nodes + fixed,
        }
    }

    /// The pair of least cost in `slack` with at least `hidden_min`; none: there is not enough slack. More than
    /// [`HIDDEN_SHARE_MAX`] saves no nodes to speak of: the rest of a large slack is for dead records.
    fn cheapest(&self, slack: f64, hidden_min: f64) -> Option<Pair> {
        let pairs = log_costs().filter_map(|log_cost| {
            let hidden = (slack - self.dead(log_cost)) / (BESIDE_SPILL * log_cost);
            (hidden >= hidden_min).then_some(Pair {
                log_cost,
                hidden: hidden.min(hidden_min.max(HIDDEN_SHARE_MAX)),
            })
        });
        pairs.min_by(|a, b| self.cost(*a).total_cmp(&self.cost(*b)))
    }

    /// The pair of least slack that costs no more than `cost` and has at least `hidden_min`.
    fn smallest(&self, cost: f64, hidden_min: f64) -> Pair {
        let pairs = log_costs().take_while(|log_cost| *log_cost < cost);
        let pairs = pairs.map(|log_cost| Pair {
            log_cost,
            hidden: (self.nodes / (cost - log_cost)).max(hidden_min),
        });
        let smallest = pairs.min_by(|a, b| self.slack(*a).total_cmp(&self.slack(*b)));
        smallest.unwrap_or(Pair {
            log_cost: 1.0,
            hidden: hidden_min,
        })
    }

    /// Dead records that wait for collection at this cost. A log without live records is cleaned for nothing.
    fn dead(&self, log_cost: f64) -> f64 {
        let alive = 1.0 - 1.0 / log_cost;
        match (self.log > 0.0, alive > 0.0) {
            (false, _) => 0.0,
            // Nothing is ever copied: the log grows without end.
            (true, false) => f64::INFINITY,
            (true, true) => self.log * (-log_cost * alive.ln() - 1.0),
        }
    }

    fn slack(&self, pair: Pair) -> f64 {
        self.dead(pair.log_cost) + BESIDE_SPILL * pair.hidden * pair.log_cost
    }

    fn cost(&self, pair: Pair) -> f64 {
        pair.log_cost + self.nodes / pair.hidden
    }

    fn plan(&self, pair: Pair, target: f64) -> Plan {
        Plan {
            target,
            hidden_max: (pair.hidden * self.live) as u64,
            transient: (pair.hidden * pair.log_cost * BESIDE_SPILL * self.live) as u64,
            log_cost: pair.log_cost,
            cost: self.cost(pair),
        }
    }
}

/// The log costs that plans choose from: 1 to 108, each 2 % more than the one before.
fn log_costs() -> impl Iterator<Item = f64> {
    (0..237).map(|n| 1.02f64.powi(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Pairs of 1 KiB.
    fn given(live_mib: u64) -> Given {
        Given {
            live: live_mib * MIB,
            log_live: live_mib * MIB / 50 * 51,
            nodes: live_mib * MIB / 20,
            fixed: 20 * MIB,
            hidden_min: 4 * MIB,
            hidden_min_if_dear: 64 * MIB,
        }
    }

    #[test]
    fn more_space_costs_less_and_leaves_more_time_between_spills() {
        let plans = [1.3, 1.5, 2.0, 3.0].map(|target| Plan::new(&given(4096), target, 14.0));
        for pair in plans.windows(2) {
            assert!(pair[0].cost > pair[1].cost, "{pair:?}");
            assert!(pair[0].hidden_max < pair[1].hidden_max, "{pair:?}");
        }
        assert!(plans[1].cost < 7.0 && plans[2].cost < 3.0, "{plans:?}");
        assert_eq!(plans[1].target, 1.5);
    }

    #[test]
    fn no_pair_in_the_slack_is_cheaper_and_none_of_the_cost_is_smaller() {
        let shares = Shares::of(&given(4096));
        let cheapest = shares.cheapest(0.4, 0.001).unwrap();
        assert!((shares.slack(cheapest) - 0.4).abs() < 1e-9);
        let cost = shares.cost(cheapest);
        let smallest = shares.smallest(cost, 0.001);
        assert!((shares.slack(smallest) - 0.4).abs() < 0.01);
        for hundredths in 101..1000 {
            let log_cost = f64::from(hundredths) / 100.0;
            let hidden = (0.4 - shares.dead(log_cost)) / (BESIDE_SPILL * log_cost);
            let other = shares.cost(Pair { log_cost, hidden });
            assert!(hidden <= 0.0 || other > cost * 0.999, "{log_cost}: {other}");
        }
        assert!(shares.cheapest(0.02, 0.02).is_none());
        assert!(shares.cheapest(-0.1, 0.0).is_none());
    }

    #[test]
    fn in_a_large_space_collection_still_begins_before_most_of_it_is_taken() {
        let plan = Plan::new(&given(65536), 10.0, 3.0);
        assert!(plan.transient < 2 * 65536 * MIB, "{plan:?}");
    }

    #[test]
    fn a_log_without_live_records_is_cleaned_for_nothing() {
        let given = Given {
            log_live: 0,
            nodes: 4096 * MIB,
            ..given(4096)
        };
        let plan = Plan::new(&given, 3.0, 14.0);
        assert_eq!(plan.log_cost, 1.0, "{plan:?}");
    }

    #[test]
    fn what_is_to_come_shrinks_with_what_is_written() {
        let plan = Plan::new(&given(4096), 1.5, 14.0);
        let (all, beside) = (plan.still_to_come(0), plan.transient as f64 / 5.0);
        assert!((all - beside - plan.hidden_max as f64).abs() < 1.0);
        assert!((plan.still_to_come(plan.hidden_max) - beside).abs() < 1.0);
        assert_eq!(
            plan.still_to_come(2 * plan.hidden_max),
            plan.still_to_come(plan.hidden_max)
        );
        assert_eq!(plan.beside_to_come(1.0), 0.0);
    }

    #[test]
    fn a_target_that_cannot_be_becomes_one_that_can() {
        let plan = Plan::new(&given(4096), 1.1, 14.0);
        assert!(plan.target > 1.15 && plan.target < 1.4, "{plan:?}");
        assert!(plan.cost <= 14.0);
        // What is always there is more than so little data.
        for live_mib in [0, 1, 10] {
            let plan = Plan::new(&given(live_mib), 1.3, 14.0);
            assert!(plan.target > 2.0 && plan.hidden_max >= 4 * MIB, "{plan:?}");
        }
    }

    #[test]
    fn a_store_takes_as_much_space_as_it_takes_to_cost_no_more_than_it_may() {
        let plans = [14.0, 6.0, 3.0].map(|most| Plan::new(&given(4096), 1.3, most));
        for pair in plans.windows(2) {
            assert!(pair[0].target < pair[1].target, "{pair:?}");
        }
        assert!(plans[2].cost <= 3.0 && plans[2].target < 2.0, "{plans:?}");
        let enough = Plan::new(&given(4096), 2.5, 3.0);
        assert_eq!(enough.target, 2.5);
    }

    #[test]
    fn only_a_target_that_costs_too_much_lets_few_data_hide_as_much_as_many() {
        let few = given(256);
        let dear = Plan::new(&few, 1.6, 3.0);
        assert!(dear.hidden_max >= 64 * MIB, "{dear:?}");
        assert!(dear.transient < 400 * MIB && dear.target < 4.0, "{dear:?}");
        let seldom = Given {
            hidden_min_if_dear: 0,
            ..few
        };
        let lowest = Plan::new(&seldom, 1.1, 16.0);
        assert!(lowest.target < 1.5 && lowest.cost <= 16.0, "{lowest:?}");
        let cheap = Plan::new(&few, 1.6, 100.0);
        assert!(cheap.hidden_max < 20 * MIB, "{cheap:?}");
        assert_eq!(cheap.target, 1.6);
    }
}
