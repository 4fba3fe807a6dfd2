//! Decisions of the space plan, as pure functions of one [`Situation`]: how far writers are slowed down, whether collection
//! must move records or a spill must free some, and which victims are worth their copies.

use super::plan::Plan;
use crate::tuning::{DEAD_SHARE_PER_COST, EARLY_SPILL_HIDDEN, TRANSIENT_BEFORE_SLEEP};

/// What collection must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Move records: more space is taken than should be.
    Space,
    /// Enough was moved; a spill would free it.
    Spill,
}

/// The figures of one moment, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Situation {
    pub plan: Plan,
    /// What may be taken until the plan's target is reached; negative: the store takes more than that.
    pub room: i64,
    /// Dead bytes as far as known, hidden ones included.
    pub dead: u64,
    /// Dead bytes that L0' hides: no spill has counted them.
    pub hidden: u64,
    /// The finished share of the spill under way, 0 to 1.
    pub spilled: Option<f64>,
    /// No write came since the last look.
    pub is_quiet: bool,
}

impl Situation {
    /// How far writers are slowed down, 0 to 1: by the lack of room for what is still to come before a spill frees some,
    /// beyond what collection makes up for by itself.
    /// Only dead bytes are paid for, so a load of new keys never sleeps.
    pub fn throttle_share(&self) -> f64 {
        // L0' fills while L0 is spilled, and then alone.
        let to_come = match self.spilled {
            Some(share) => self.plan.beside_to_come(share),
            None => self.plan.still_to_come(self.hidden),
        };
        let grace = self.plan.transient as f64 * TRANSIENT_BEFORE_SLEEP;
        let lack = (to_come - grace - self.room as f64).clamp(0.0, self.dead as f64);
        (lack / self.plan.still_to_come(0).max(1.0)).min(1.0)
    }

    /// Whether collection should look for work: there may be too little room after the next spill.
    pub fn wakes_collection(&self) -> bool {
        self.dead > 0 && self.room < 2 * self.plan.transient as i64
    }

    /// Room that is missing: enough records are to be moved that the garbage of the time between two spills has room.
    /// `pending` bytes wait in emptied segments for a spill to free them. Without writes there is time, and half as much
    /// is enough to begin with.
    fn lack(&self, pending: u64) -> u64 {
        let wanted = match self.is_quiet {
            true => self.plan.transient / 2,
            false => self.plan.transient,
        };
        (wanted as i64 - self.room - pending as i64).max(0) as u64
    }

    /// What is to be done so that the space never exceeds the plan's target.
    pub fn need(&self, pending: u64) -> Need {
        let pays = self.hidden as f64 >= self.plan.hidden_max as f64 * EARLY_SPILL_HIDDEN;
        let is_worth_a_spill = pending > 0 && (pays || self.is_quiet);
        // Copies take space until a spill frees their originals: never too many of them at once. Writers would sleep for
        // space that a spill frees; one that frees less than this writes its nodes for little.
        if self.throttle_share() > 0.0 && pending >= self.plan.transient {
            return Need::Spill;
        }
        let is_short = self.room < (self.plan.transient / 2) as i64;
        match self.lack(pending) > 0 {
            true => Need::Space,
            false if is_short && is_worth_a_spill => Need::Spill,
            false => Need::Nothing,
        }
    }
}

impl Plan {
    /// The share of a victim that is to be dead, 0 to 1. With `w` bytes written for each byte given, the plan leaves about
    /// `1 / 2w` dead in an average segment; victims have less where all segments die evenly, or cold ones stay
    /// partly dead.
    pub fn dead_share_min(&self) -> f64 {
        DEAD_SHARE_PER_COST / self.log_cost.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A plan for 40 MiB of garbage between spills at two bytes of the log for each.
    fn moment() -> Situation {
        let plan = Plan {
            target: 1.5,
            hidden_max: 40 * MIB,
            transient: 120 * MIB,
            log_cost: 2.0,
            cost: 3.0,
        };
        Situation {
            plan,
            dead: 400 * MIB,
            ..Situation::default()
        }
    }

    fn with_room(room_mib: i64) -> Situation {
        Situation {
            room: room_mib << 20,
            ..moment()
        }
    }

    #[test]
    fn writers_sleep_from_the_lack_of_room_for_what_is_to_come_on() {
        // 40 MiB until the spill, 24 MiB beside it; collection makes up for 30 MiB.
        assert_eq!(with_room(35).throttle_share(), 0.0);
        let shares = [33, 20, 10, 1].map(|room| with_room(room).throttle_share());
        assert!(
            shares.windows(2).all(|pair| pair[0] < pair[1]),
            "{shares:?}"
        );
        assert_eq!(with_room(-4000).throttle_share(), 1.0);
        let hidden = Situation {
            hidden: 40 * MIB,
            ..with_room(1)
        };
        assert_eq!(hidden.throttle_share(), 0.0);
    }

    #[test]
    fn who_makes_nothing_dead_never_sleeps() {
        let load = Situation {
            dead: 0,
            ..with_room(-4000)
        };
        assert_eq!(load.throttle_share(), 0.0);
        assert!(!load.wakes_collection());
    }

    #[test]
    fn writers_go_on_as_the_spill_comes_to_its_end() {
        let at = |share| Situation {
            spilled: Some(share),
            ..with_room(-20)
        };
        let shares = [0.0, 0.5, 0.75].map(|share| at(share).throttle_share());
        assert!(
            shares.windows(2).all(|pair| pair[0] > pair[1]),
            "{shares:?}"
        );
        assert!(shares[2] < 1e-9, "{shares:?}");
    }

    #[test]
    fn collection_moves_records_until_emptied_segments_make_up_for_the_lack() {
        assert_eq!(with_room(50).need(0), Need::Space);
        assert_eq!(with_room(90).need(30 * MIB), Need::Nothing);
        assert_eq!(with_room(120).need(0), Need::Nothing);
        assert_eq!(with_room(100).lack(10 * MIB), 10 * MIB);
    }

    #[test]
    fn a_spill_frees_what_was_emptied_once_it_pays_or_nobody_writes() {
        let emptied = 200 * MIB;
        let late = Situation {
            hidden: 30 * MIB,
            ..with_room(50)
        };
        assert_eq!(late.need(emptied), Need::Spill);
        let quiet = Situation {
            is_quiet: true,
            ..with_room(50)
        };
        assert_eq!(quiet.need(emptied), Need::Spill);
        assert_eq!(quiet.need(0), Need::Space);
        let roomy = Situation {
            is_quiet: true,
            ..with_room(100)
        };
        assert_eq!(roomy.need(0), Need::Nothing, "half as much is enough");
    }

    #[test]
    fn a_spill_frees_what_was_emptied_before_writers_sleep() {
        // Room is short of what is to come by 14 MiB more than collection makes up for.
        assert_eq!(with_room(20).need(120 * MIB), Need::Spill);
        assert_eq!(with_room(50).need(120 * MIB), Need::Nothing);
    }

    #[test]
    fn a_spill_that_frees_little_is_not_asked_for() {
        assert_eq!(with_room(50).need(60 * MIB), Need::Space);
        let early = Situation {
            hidden: 29 * MIB,
            ..with_room(50)
        };
        assert_eq!(early.need(119 * MIB), Need::Nothing);
    }

    #[test]
    fn copies_that_wait_are_spilled_before_more_are_made_when_space_runs_out() {
        assert_eq!(with_room(-1).need(120 * MIB), Need::Spill);
        assert_eq!(with_room(-1).need(119 * MIB), Need::Space);
    }

    #[test]
    fn segments_that_die_evenly_are_victims_before_writers_sleep() {
        for log_cost in [1.02, 1.2, 2.0, 3.0, 6.0, 20.0] {
            let plan = Plan {
                log_cost,
                ..moment().plan
            };
            // Dead bytes that the plan keeps for a log of 1, over both.
            let dead = -log_cost * (1.0 - 1.0 / log_cost).ln() - 1.0;
            assert!(plan.dead_share_min() < dead / (1.0 + dead), "{plan:?}");
        }
    }

    #[test]
    fn dear_plans_take_victims_with_fewer_dead_bytes() {
        let dear = Plan {
            log_cost: 6.0,
            ..moment().plan
        };
        assert!(dear.dead_share_min() < moment().plan.dead_share_min() / 2.0);
    }
}
