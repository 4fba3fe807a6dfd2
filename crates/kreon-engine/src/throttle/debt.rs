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

/// Adds `owed` to what this thread owes; it sleeps if that is enough.
pub fn pay(owed: Duration) {
    let debt = OWED_NS.get().saturating_add(nanoseconds(owed));
    let asleep = sleep_for(debt);
    if asleep.is_zero() {
        OWED_NS.set(debt);
        return;
    }
    let begun = Instant::now();
    kreon_sync::sleep(asleep);
    OWED_NS.set(after(debt, begun.elapsed()));
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

    #[test]
    fn little_debts_add_up_to_short_sleeps_whose_excess_counts_for_the_next() {
        let owed = nanoseconds(SPACE_SLEEP_MIN) / 4;
        let (mut debt, mut slept, mut longest) = (0, Duration::ZERO, Duration::ZERO);
        for _ in 0..4000 {
            debt += owed;
            let sleep = sleep_for(debt);
            longest = longest.max(sleep);
            if !sleep.is_zero() {
                // Longer than was asked for, as sleeps are.
                let took = sleep + Duration::from_micros(60);
                slept += took;
                debt = after(debt, took);
            }
        }
        let all = SPACE_SLEEP_MIN * 1000;
        assert!(slept > all.mul_f64(0.99) && slept < all.mul_f64(1.01));
        assert!(longest <= SPACE_SLEEP_MIN.mul_f64(1.25), "{longest:?}");
    }

    #[test]
    fn a_long_record_is_paid_for_in_sleeps_of_bounded_length_and_number() {
        let mut debt = after(nanoseconds(Duration::from_secs(60)), Duration::ZERO);
        let mut sleeps = 0;
        while !sleep_for(debt).is_zero() {
            assert!(sleep_for(debt) <= SPACE_SLEEP_MAX);
            debt = after(debt, sleep_for(debt));
            sleeps += 1;
        }
        assert_eq!(sleeps, OWED_SLEEPS_MAX);
    }

    #[test]
    fn a_clock_that_jumps_gives_no_credit_to_speak_of() {
        let debt = after(0, Duration::from_secs(3600));
        assert_eq!(debt, -nanoseconds(SPACE_SLEEP_MAX));
    }
}
