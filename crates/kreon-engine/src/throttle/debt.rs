//! What a writing thread owes: time that it is to sleep because space is scarce, added up until a sleep is worth it.
//!
//! A sleep takes some 60 us at the least, and longer than was asked for; what it took too long counts for the next one. So
//! a thread is slowed down by what it owes on average, in short sleeps.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::tuning::{SPACE_SLEEP_MAX, SPACE_SLEEP_MIN};

/// Most that a thread owes, in sleeps of [`SPACE_SLEEP_MAX`]: the rest of the debt of a long record is forgiven.
const OWED_SLEEPS_MAX: u32 = 64;

thread_local! {
    /// Of this thread, for all stores that it writes to, in nanoseconds; negative: it slept too long.
    static OWED_NS: Cell<i64> = const { Cell::new(0) };
}

/// Adds `owed` to what this thread owes; it sleeps until it owes too little for a sleep.
pub fn pay(owed: Duration) {
    let left = settle(OWED_NS.get(), owed, |asleep| {
        let begun = Instant::now();
        kreon_sync::sleep(asleep);
        begun.elapsed()
    });
    OWED_NS.set(left);
}

/// What a thread owes that owed `debt_ns` and now owes `owed` more, after the sleeps that `sleep` makes and whose times it
/// returns. A number of sleeps, so that a clock that stands still keeps nobody asleep.
fn settle(debt_ns: i64, owed: Duration, mut sleep: impl FnMut(Duration) -> Duration) -> i64 {
    let mut debt = after(debt_ns.saturating_add(nanoseconds(owed)), Duration::ZERO);
    for _ in 0..OWED_SLEEPS_MAX {
        let asleep = sleep_for(debt);
        if asleep.is_zero() {
            break;
        }
        debt = after(debt, sleep(asleep));
    }
    debt
}

/// How long a thread that owes so much sleeps now.
fn sleep_for(debt_ns: i64) -> Duration {
    let debt = Duration::from_nanos(debt_ns.max(0) as u64);
    match debt < SPACE_SLEEP_MIN {
        true => Duration::ZERO,
        false => debt.min(SPACE_SLEEP_MAX),
    }
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
    fn slept(owed: Duration, writes: u32) -> (Duration, Duration) {
        let (mut debt, mut all, mut longest) = (0, Duration::ZERO, Duration::ZERO);
        for _ in 0..writes {
            debt = settle(debt, owed, |asleep| {
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
            let (all, longest) = slept(owed, 2000);
            let (least, most) = (owed.mul_f64(1990.0), owed.mul_f64(2010.0));
            assert!(all > least && all < most, "{owed:?}: {all:?}");
            assert!(longest <= SPACE_SLEEP_MAX, "{longest:?}");
        }
    }

    #[test]
    fn of_a_very_long_record_the_rest_is_forgiven() {
        let (all, longest) = slept(Duration::from_secs(60), 1);
        assert!(all <= SPACE_SLEEP_MAX * (OWED_SLEEPS_MAX + 8), "{all:?}");
        assert_eq!(longest, SPACE_SLEEP_MAX);
    }

    #[test]
    fn a_clock_that_jumps_gives_no_credit_to_speak_of_and_one_that_stands_no_endless_sleep() {
        let debt = settle(0, SPACE_SLEEP_MIN, |_| Duration::from_secs(3600));
        assert_eq!(debt, -nanoseconds(SPACE_SLEEP_MAX));
        let mut sleeps = 0;
        settle(0, Duration::from_secs(1), |_| {
            sleeps += 1;
            Duration::ZERO
        });
        assert_eq!(sleeps, OWED_SLEEPS_MAX);
    }
}
