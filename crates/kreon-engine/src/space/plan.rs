//! The space plan: the division of the space of a store, and its price in bytes written per byte given.
//!
//! All figures are shares of the live bytes. The target covers the records with their headers, the nodes twice (a spill
//! writes new ones beside those that it replaces) and a few fixed segments; the slack `s` remains for dead records.
//! Between two spills users overwrite `u` bytes, and garbage collection copies records to free as much. With `w` bytes
//! written to the log for each byte given, the log grows by `u w` before the spill frees anything, and by [`BESIDE`] times
//! that with the writes during the spill. The rest is for the dead bytes `d = s - 1.5 u w` of segments that wait for
//! collection. Cleaning a log with `l` live bytes, victims with the most dead bytes first, writes about
//! `w = l / (2 d) + 0.85` (within 5 % of simulated figures from `d / l` = 0.1 to 1). A spill writes the nodes `n`, which is
//! `n / u` for each byte given. So
//!
//! cost(u) = w(u) + n / u,
//!
//! of which the plan takes the minimum: frequent spills write too many nodes, rare ones cause too many copies. A target
//! whose minimum exceeds the limit of the store is raised until it does not.

/// Spills take time, and writers and collection go on beside them: so many times `u w` is added.
const BESIDE: f64 = 1.5;

/// The share of `transient` that is written during a spill.
const BESIDE_SHARE: f64 = 1.0 - 1.0 / BESIDE;

/// The least slack for dead records beside the fixed space.
const DEAD_WITH_FEW: f64 = 0.1;

/// No target is raised by more than this.
const RAISED_MAX: f64 = 20.0;

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

impl Plan {
    /// Of a store that wants to take `target`, or the least more than that which costs no more than `cost_max`.
    pub(super) fn new(given: &Given, target: f64, cost_max: f64) -> Self {
        // Where the data are few what is always there is no reason to clean the rest all the time.
        let always = (given.fixed + 4 * given.hidden_min) as f64 / given.live.max(1) as f64;
        let wanted = target.max(1.0 + DEAD_WITH_FEW + always);
        let costs_no_more = |plan: &Self| plan.cost <= cost_max;
        if let Some(plan) = Self::of(given, wanted).filter(costs_no_more) {
            return plan;
        }
        let dear = Given {
            hidden_min: given.hidden_min.max(given.hidden_min_if_dear),
            ..*given
        };
        // The more space, the less it costs: by halving.
        let most = wanted + RAISED_MAX + dear.hidden_min as f64 / given.live.max(1) as f64 * 8.0;
        let (mut low, mut high) = (wanted, most);
        let mut found = None;
        for _ in 0..24 {
            let middle = (low + high) / 2.0;
            match Self::of(&dear, middle).filter(costs_no_more) {
                Some(plan) => (high, found) = (middle, Some(plan)),
                None => low = middle,
            }
        }
        found.unwrap_or(Self {
            target: most,
            hidden_max: dear.hidden_min,
            transient: 2 * dear.hidden_min,
            log_cost: cost_max,
            cost: cost_max,
        })
    }

    /// What collection copies from one spill to the next.
    pub(super) fn copies_max(&self) -> u64 {
        self.copies_for(self.hidden_max)
    }

    /// What collection copies to make room for `bytes`, between two spills.
    pub(super) fn copies_for(&self, bytes: u64) -> u64 {
        (bytes.min(self.hidden_max) as f64 * (self.log_cost - 1.0).max(0.0)) as u64
    }

    /// Bytes of new space still needed before the next spill frees some: the log hides `hidden` bytes by now, and
    /// collection still has to copy `copies`.
    pub(super) fn still_to_come(&self, hidden: u64, copies: u64) -> f64 {
        (self.hidden_max.saturating_sub(hidden) + copies) as f64 + self.beside_to_come(0.0)
    }

    /// The same during a spill; `done` is its finished share, 0 to 1.
    pub(super) fn beside_to_come(&self, done: f64) -> f64 {
        self.transient as f64 * BESIDE_SHARE * (1.0 - done).clamp(0.0, 1.0)
    }

    /// The cheapest for this target; none: it cannot be.
    fn of(given: &Given, target: f64) -> Option<Self> {
        let live = given.live.max(1) as f64;
        let [log, nodes, fixed] =
            [given.log_live, given.nodes, given.fixed].map(|bytes| bytes as f64 / live);
        // What of the live bytes is not in the log is in the nodes.
        let slack = target - log - 2.0 * nodes - fixed;
        let least = (given.hidden_min as f64 / live).max(1e-3);
        let tries = (0..48).map(|n| least * 1.15f64.powi(n));
        let plans = tries.filter_map(|hidden| {
            let written = written(log, slack, hidden)?;
            Some(Self {
                target,
                hidden_max: (hidden * live) as u64,
                transient: (hidden * written * BESIDE * live) as u64,
                log_cost: written,
                cost: written + nodes / hidden,
            })
        });
        plans.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }
}

/// Log bytes written for each byte given: `w` of `w = log / (2 (slack - 1.5 hidden w)) + 0.85`; of its two roots the
/// smaller one.
fn written(log: f64, slack: f64, hidden: f64) -> Option<f64> {
    let beside = hidden * BESIDE;
    let sum = 2.0 * slack + 1.7 * beside;
    let square = sum * sum - 8.0 * beside * (1.7 * slack + log);
    if square < 0.0 {
        return None;
    }
    // A log whose records all die is cleaned for nothing.
    let written = ((sum - square.sqrt()) / (4.0 * beside)).max(1.0);
    (slack > beside * written).then_some(written)
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
    fn what_is_written_solves_its_equation() {
        for (log, slack, hidden) in [(1.02, 0.3, 0.02), (1.02, 0.8, 0.1), (0.8, 1.5, 0.2)] {
            let written = written(log, slack, hidden).unwrap();
            let dead = slack - BESIDE * hidden * written;
            assert!((written - 0.85 - log / (2.0 * dead)).abs() < 1e-9);
        }
        assert_eq!(written(1.02, 0.15, 0.1), None);
        assert_eq!(written(1.02, -0.1, 0.01), None);
        assert_eq!(written(0.0, 1.0, 0.1), Some(1.0), "values in leaves");
    }

    #[test]
    fn what_is_to_come_shrinks_with_what_is_written_and_with_what_is_copied_ahead() {
        let plan = Plan::new(&given(4096), 1.5, 14.0);
        let (all, hidden_max) = (plan.copies_max(), plan.hidden_max as f64);
        let of = |hidden: f64, copies| plan.still_to_come((hidden * hidden_max) as u64, copies);
        let transient = plan.transient as f64;
        assert!((of(0.0, all) / transient - 1.0).abs() < 0.01, "{plan:?}");
        // Copies made ahead of the writers are not counted once more while they catch up.
        assert!((of(0.0, all) - of(0.0, 0) - all as f64).abs() < 1.0);
        assert!((of(0.0, 0) - of(0.5, 0) - hidden_max / 2.0).abs() < 1.0);
        assert!((of(1.0, 0) - plan.beside_to_come(0.0)).abs() < 1.0);
        assert_eq!(of(2.0, 0), of(1.0, 0));
        assert_eq!(plan.beside_to_come(1.0), 0.0);
        assert_eq!(plan.copies_for(u64::MAX), all);
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
