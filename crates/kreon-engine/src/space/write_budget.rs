//! How many bytes may be copied in idle time: copies are paid by what users give, and everything else that is written
//! comes first.
//!
//! Each byte given earns `written_max`, each byte written takes one away, copies of idle time included. So over a load and
//! all that follows it no more than `written_max` is written for each byte given, as far as idle time can help it: if
//! overwrites cost more than that by themselves, nothing is copied.
//!
//! No more is saved than the live bytes earn: in the middle of a load less was written than it will cost. Debts are
//! forgotten beyond a share of the live bytes: years of overwrites are no reason to leave a new load scattered.

use crate::tuning::IDLE_DEBT_SHARE;

/// Bytes since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// By users, with the headers of records.
    pub given: u64,
    /// To the device.
    pub written: u64,
}

/// What may be copied.
#[derive(Clone, Debug)]
pub struct WriteBudget {
    written_max: f64,
    seen: Flow,
    bytes: i64,
}

impl WriteBudget {
    /// At the opening. Of values that were never copied there are so many bytes: they were given and written once.
    pub fn new(written_max: f64, never_copied: u64, now: Flow) -> Self {
        let bytes = (never_copied as f64 * (written_max - 1.0).max(0.0)) as i64;
        Self {
            written_max,
            seen: now,
            bytes,
        }
    }

    /// Bytes that may be copied now, in a store with so many live bytes; none if it is in debt. Of what was given this
    /// share is keys and values.
    pub fn left(&mut self, now: Flow, live: u64, payload_share: f64) -> u64 {
        let given = now.given.saturating_sub(self.seen.given);
        let written = now.written.saturating_sub(self.seen.written);
        self.seen = now;
        let earned = (given as f64 * payload_share * self.written_max) as i64;
        let most = (live as f64 * self.written_max) as i64;
        let least = -((live / IDLE_DEBT_SHARE) as i64);
        let bytes = self.bytes.saturating_add(earned) - written as i64;
        self.bytes = bytes.clamp(least, most);
        self.bytes.max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn flow(given_mib: u64, written_mib: u64) -> Flow {
        Flow {
            given: given_mib * MIB,
            written: written_mib * MIB,
        }
    }

    fn budget() -> WriteBudget {
        WriteBudget::new(2.2, 0, flow(7, 9))
    }

    #[test]
    fn a_load_earns_one_copy_of_what_it_gave() {
        let mut budget = budget();
        let left = budget.left(flow(1007, 1159), 1000 * MIB, 1.0);
        assert_eq!(left / MIB, 1050);
        assert_eq!(budget.left(flow(1007, 2159), 1000 * MIB, 1.0) / MIB, 50);
        assert_eq!(budget.left(flow(1007, 3159), 1000 * MIB, 1.0), 0);
    }

    #[test]
    fn overwrites_in_many_turns_never_cost_more_than_the_budget() {
        let (mut budget, live) = (budget(), 1000 * MIB);
        let mut now = flow(7, 9);
        for turn in 0..200u64 {
            // Users write; collection costs much now and then.
            now.given += 50 * MIB;
            now.written += (60 + turn % 5 * 20) * MIB;
            // All that is left is copied.
            now.written += budget.left(now, live, 1.0);
        }
        let (given, written) = (now.given - 7 * MIB, now.written - 9 * MIB);
        let cost = written as f64 / given as f64;
        assert!((2.0..=2.21).contains(&cost), "{cost}");
    }

    #[test]
    fn where_overwrites_cost_more_by_themselves_nothing_is_copied() {
        let mut budget = budget();
        for turn in 1..100 {
            assert_eq!(
                budget.left(flow(7 + turn * 100, 9 + turn * 300), 1000 * MIB, 1.0),
                0
            );
        }
        // The debt is bounded: what is given from here on counts again.
        let left = budget.left(flow(9907 + 1000, 29709 + 1100), 1000 * MIB, 1.0);
        assert_eq!(left / MIB, 600);
    }

    #[test]
    fn headers_of_records_earn_nothing() {
        let left = budget().left(flow(1007, 1159), 1000 * MIB, 0.9);
        assert_eq!(left / MIB, 830);
    }

    #[test]
    fn nobody_saves_more_than_the_live_bytes_earn() {
        let mut budget = budget();
        assert_eq!(
            budget.left(flow(100_000, 100_000), 1000 * MIB, 1.0) / MIB,
            2200
        );
    }

    #[test]
    fn a_look_in_the_middle_of_a_load_forgets_nothing() {
        let mut budget = budget();
        budget.left(flow(507, 400), 500 * MIB, 1.0);
        assert_eq!(budget.left(flow(1007, 1159), 1000 * MIB, 1.0) / MIB, 1050);
    }

    #[test]
    fn what_an_earlier_run_loaded_may_be_copied_once() {
        let mut budget = WriteBudget::new(2.2, 800 * MIB, flow(0, 3));
        assert_eq!(budget.left(flow(0, 3), 1000 * MIB, 1.0) / MIB, 960);
        assert_eq!(budget.left(flow(0, 963), 1000 * MIB, 1.0), 0);
        let mut never = WriteBudget::new(1.0, 800 * MIB, flow(0, 3));
        assert_eq!(never.left(flow(0, 3), 1000 * MIB, 1.0), 0);
    }
}
