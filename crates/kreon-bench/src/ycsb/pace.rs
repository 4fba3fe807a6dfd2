//! A fixed rate of requests, so that stores can be compared at the same load.
//!
//! A client that is held up by one request makes the next ones late. Their latency counts from when they were due:
//! otherwise a stall of 10 ms at 100,000 requests a second would count as one slow request instead of a thousand.

use std::time::{Duration, Instant};

/// A client sleeps when it is so far ahead; nearer requests are made at once. Sleeping takes about 60 us longer than asked.
const AHEAD: Duration = Duration::from_micros(100);

/// The schedule of one client.
pub struct Pace {
    /// From one request to the next.
    gap: Duration,
    due: Instant,
    /// When the client last ended a sleep. It may have overslept, which is no store's fault.
    woken: Instant,
}

impl Pace {
    /// Of a client that makes a request each `gap`, the first one now.
    pub fn new(gap: Duration) -> Self {
        let now = Instant::now();
        Self {
            gap,
            due: now,
            woken: now,
        }
    }

    /// Waits until the next request may be made; from when its latency counts if it is late.
    pub fn wait(&mut self) -> Instant {
        let due = self.due;
        self.due += self.gap;
        let ahead = due.saturating_duration_since(Instant::now());
        if ahead >= AHEAD {
            std::thread::sleep(ahead);
            self.woken = Instant::now();
        }
        due.max(self.woken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn requests_are_not_made_faster_than_the_rate() {
        let started = Instant::now();
        let mut pace = Pace::new(MS);
        for _ in 0..21 {
            pace.wait();
        }
        assert!(started.elapsed() >= 20 * MS - AHEAD);
    }

    #[test]
    fn a_request_behind_a_stall_counts_from_when_it_was_due() {
        let mut pace = Pace::new(MS);
        let first = pace.wait();
        std::thread::sleep(20 * MS);
        assert_eq!(pace.wait(), first + MS);
        assert_eq!(pace.wait(), first + 2 * MS);
    }
}
