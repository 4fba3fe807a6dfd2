//! What a writing thread owes: time that it is to sleep because space is scarce, added up until a sleep is worth it.
//!
//! A sleep takes some 60 us at the least, and longer than was asked for; what it took too long counts for the next one. So
//! a thread is slowed down by what it owes on average.
//!
//! Where writes owe little on average, sleeps are long, so that few writes have one; it takes no longer than what the
//! scheduler makes a thread wait for its turn. Where they owe much, too many would have a long one: then sleeps are short
//! and many.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::tuning::{SPACE_SLEEP_LONG, SPACE_SLEEP_MAX, SPACE_SLEEP_MIN};

/// Most that a thread owes, in sleeps of [`SPACE_SLEEP_MAX`]: the rest of the debt of a long record is forgiven.
const OWED_SLEEPS_MAX: u32 = 64;

thread_local! {
    /// Of this thread, for all stores that it writes to, in nanoseconds; negative: it slept too long.
    static OWED_NS: Cell<i64> = const { Cell::new(0) };
}

/// Which sleeps a debt is paid with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleeps {
    /// Short ones, as soon as the debt is worth one.
    Short,
    /// Long ones.
    Long,
}

impl Sleeps {
    /// The least and the most of one.
    const fn bounds(self) -> (Duration, Duration) {
        match self {
            Self::Short => (SPACE_SLEEP_MIN, SPACE_SLEEP_MAX),
            Self::Long => (SPACE_SLEEP_LONG, SPACE_SLEEP_LONG),
        }
    }
}

/// Adds `owed` to what this thread owes; it sleeps until it owes too little for a sleep.
pub fn pay(owed: Duration, sleeps: Sleeps) {
    let left = settle(OWED_NS.get(), (owed, sleeps), |asleep| {
        let begun = Instant::now();
        kreon_sync::sleep(asleep);
        begun.elapsed()
    });
    OWED_NS.set(left);
}

/// What a thread owes that owed `debt_ns` and now owes `owed` more, after the sleeps that `sleep` makes and whose times it
/// returns. A number of sleeps, so that a clock that stands still keeps nobody asleep.
fn settle(
    debt_ns: i64,
    (owed, sleeps): (Duration, Sleeps),
    mut sleep: impl FnMut(Duration) -> Duration,
) -> i64 {
    let (least, most) = sleeps.bounds();
    let mut debt = after(debt_ns.saturating_add(nanoseconds(owed)), Duration::ZERO);
    for _ in 0..OWED_SLEEPS_MAX {
        let owed = Duration::from_nanos(debt.max(0) as u64);
        if owed < least {
            break;
        }
        debt = after(debt, sleep(owed.min(most)));
    }
    debt
}

/// What it owes after a sleep that took `slept`.
fn after(debt_ns: i64, slept: Duration) -> i64 {
    let credit_max = -nanoseconds(SPACE_SLEEP_MAX);
    let left = debt_ns.saturating_sub(nanoseconds(slept));
    left.clamp(credit_max, nanoseconds(SPACE_SLEEP_MAX * OWED_SLEEPS_MAX))
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps in all and the longest one of a thread that owes `owed` for each of `writes` writes, where a sleep takes 60
    /// us more than was asked for.
    fn slept(owed: Duration, sleeps: Sleeps, writes: u32) -> (Duration, Duration) {
        let (mut debt, mut all, mut longest) = (0, Duration::ZERO, Duration::ZERO);
        for _ in 0..writes {
            debt = settle(debt, (owed, sleeps), |asleep| {
                longest = longest.max(asleep);
                let took = asleep + Duration::from_micros(60);
                all += took;
                took
            });
        }
        (all, longest)
    }

    #[test]
    fn little_debts_add_up_to_short_sleeps_and_large_ones_to_several() {
        for owed_us in [3, 25, 250, 4000, 16_000, 60_000] {
            let owed = Duration::from_micros(owed_us);
            let (all, longest) = slept(owed, Sleeps::Short, 2000);
            let (least, most) = (owed.mul_f64(1990.0), owed.mul_f64(2010.0));
            assert!(all > least && all < most, "{owed:?}: {all:?}");
            assert!(longest <= SPACE_SLEEP_MAX, "{longest:?}");
        }
    }

    #[test]
    fn who_owes_little_sleeps_as_long_in_a_few_long_sleeps() {
        for owed_ns in [100, 1000, 6000] {
            let owed = Duration::from_nanos(owed_ns);
            let (all, longest) = slept(owed, Sleeps::Long, 100_000);
            let owed_in_all = owed * 100_000;
            assert_eq!(longest, SPACE_SLEEP_LONG);
            assert!(
                all >= owed_in_all.saturating_sub(SPACE_SLEEP_LONG),
                "{all:?}"
            );
            assert!(all <= owed_in_all + SPACE_SLEEP_LONG, "{all:?}");
        }
    }

    #[test]
    fn of_a_very_long_record_the_rest_is_forgiven() {
        let (all, longest) = slept(Duration::from_secs(60), Sleeps::Short, 1);
        assert!(all <= SPACE_SLEEP_MAX * (OWED_SLEEPS_MAX + 8), "{all:?}");
        assert_eq!(longest, SPACE_SLEEP_MAX);
    }

    #[test]
    fn a_clock_that_jumps_gives_no_credit_to_speak_of_and_one_that_stands_no_endless_sleep() {
        let debt = settle(0, (SPACE_SLEEP_MIN, Sleeps::Short), |_| {
            Duration::from_secs(3600)
        });
        assert_eq!(debt, -nanoseconds(SPACE_SLEEP_MAX));
        let mut sleeps = 0;
        settle(0, (Duration::from_secs(1), Sleeps::Short), |_| {
            sleeps += 1;
            Duration::ZERO
        });
        assert_eq!(sleeps, OWED_SLEEPS_MAX);
    }
}
