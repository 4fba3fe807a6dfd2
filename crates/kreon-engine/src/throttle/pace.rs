//! The pace: the rate at which L0' may fill while L0 spills.
//!
//! A spill has two parts. The progress of the merge is the share of L0's keys that it has taken; its pages are written
//! meanwhile. The time of the commit (the other pages, bitmap, catalogue, flushes) is taken from the last spill. Elapsed
//! time and progress give the time left, and L0' may fill at
//!
//! rate = (room left - a spare share) / time left.
//!
//! Writers below this rate never sleep. Writers ahead of it sleep until it has caught up with them, up to a millisecond at
//! a time: they are slowed down early and in proportion, the spill gets their share of the processors, and L0' is about
//! full when the spill ends. The rate is computed again all the time: a slower spill, or a commit longer than the last,
//! lowers it, but never to 0.
//!
//! Tried before, and lost: a delay of each write that grows with the square of the fill, from half full
//! on. A sleep takes 60 us at the least, so all writes were slow, and L0' was full before the spill's end
//! all the same.

use std::time::Duration;

use crate::tuning::{
    PACE_AHEAD_MIN, PACE_FREE_PROGRESS, PACE_LINE_MAX, PACE_PROGRESS_MIN, PACE_SLEEP_MAX,
    PACE_SPARE_SHARE,
};

/// What is known at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since the spill started.
    pub elapsed: Duration,
    /// Share of the merge that is done, 0 to 1.
    pub progress: f64,
    /// Since the commit started.
    pub committing: Option<Duration>,
    /// Bytes in L0'.
    pub used_bytes: usize,
    /// Bytes at which it is full.
    pub full_bytes: usize,
}

/// What the last spill took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last {
    /// Its merge.
    pub merge: Duration,
    /// Its commit.
    pub commit: Duration,
}

/// Where L0' may stand: `bytes` at `at`, and from there at `rate` bytes a second.
#[derive(Clone, Copy, Debug)]
struct Line {
    at: Duration,
    bytes: f64,
    rate: f64,
}

/// The pace of one spill.
#[derive(Debug, Default)]
pub struct Pace {
    last: Last,
    line: Option<Line>,
}

impl Pace {
    /// Of a spill that starts now.
    pub fn new(last: Last) -> Self {
        Self { last, line: None }
    }

    /// Whether writers cannot be ahead of the spill: cheap, and mostly so.
    pub fn is_behind(used_bytes: usize, full_bytes: usize, progress: f64) -> bool {
        let fill = used_bytes as f64 / full_bytes as f64;
        fill < progress * PACE_FREE_PROGRESS
    }

    /// How long a writer must sleep now.
    pub fn delay(&mut self, now: &Moment) -> Duration {
        let used = now.used_bytes as f64;
        let rate = self.rate(now);
        let line = match self.line {
            Some(line) if now.elapsed < line.at + PACE_LINE_MAX => line,
            drawn => {
                // A writer that was slower than allowed gets no credit for it.
                let allowed = drawn.map_or(used, |line| line.at(now.elapsed).min(used));
                let line = Line {
                    at: now.elapsed,
                    bytes: allowed,
                    rate,
                };
                self.line = Some(line);
                line
            }
        };
        let ahead = (used - line.at(now.elapsed)) / line.rate.min(rate);
        if ahead < PACE_AHEAD_MIN.as_secs_f64() {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(ahead.min(PACE_SLEEP_MAX.as_secs_f64()))
    }

    /// Bytes a second.
    fn rate(&self, now: &Moment) -> f64 {
        let full = now.full_bytes as f64;
        let target = full * (1.0 - PACE_SPARE_SHARE);
        // Never zero: a writer beyond the target still advances slowly.
        let room = (target - now.used_bytes as f64).max(full * PACE_SPARE_SHARE / 8.0);
        room / self.left(now).as_secs_f64().max(1e-4)
    }

    /// How long the spill still takes.
    fn left(&self, now: &Moment) -> Duration {
        let commit = match self.last.commit {
            Duration::ZERO => now.elapsed / 10,
            commit => commit,
        };
        if let Some(committing) = now.committing {
            // Longer than the last one: then likely by more than a little.
            let left = commit.saturating_sub(committing);
            return left.max(commit / 4).max(committing / 4);
        }
        let merge = now.elapsed.div_f64(now.progress.max(PACE_PROGRESS_MIN));
        let merge = match now.progress < PACE_PROGRESS_MIN {
            true => merge.max(self.last.merge),
            false => merge,
        };
        merge.saturating_sub(now.elapsed) + commit
    }
}

impl Line {
    fn at(&self, elapsed: Duration) -> f64 {
        self.bytes + self.rate * elapsed.saturating_sub(self.at).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: usize = 1 << 20;
    const MS: Duration = Duration::from_millis(1);

    /// Writers that fill `write_rate` bytes a second beside a spill whose merge takes `merge` and whose
    /// commit takes `commit`. Returns how full L0' was at the end, and the least that was written in a
    /// tenth of the time, as a share of the mean.
    fn run(last: Last, write_rate: f64, merge: Duration, commit: Duration) -> (f64, f64) {
        let (mut pace, mut used, mut asleep) = (Pace::new(last), 0.0, Duration::ZERO);
        let step = Duration::from_micros(20);
        let steps = (merge + commit).as_micros() as u32 / 20;
        let mut tenths = [0.0; 10];
        for i in 0..steps {
            let elapsed = step * i;
            if asleep > elapsed {
                continue;
            }
            let written = (write_rate * step.as_secs_f64()).min(FULL as f64 - used);
            used += written;
            tenths[(i * 10 / steps) as usize] += written;
            let now = Moment {
                elapsed,
                progress: (elapsed.as_secs_f64() / merge.as_secs_f64()).min(1.0),
                committing: elapsed.checked_sub(merge),
                used_bytes: used as usize,
                full_bytes: FULL,
            };
            if !Pace::is_behind(now.used_bytes, FULL, now.progress) {
                asleep = elapsed + pace.delay(&now);
            }
        }
        let least = tenths.iter().copied().fold(f64::MAX, f64::min);
        (used / FULL as f64, least * 10.0 / used)
    }

    #[test]
    fn slow_writers_never_wait() {
        let mut pace = Pace::new(Last::default());
        for i in 1..100_u32 {
            let now = Moment {
                elapsed: MS * i,
                progress: f64::from(i) / 100.0,
                committing: None,
                used_bytes: FULL / 200 * i as usize,
                full_bytes: FULL,
            };
            assert_eq!(pace.delay(&now), Duration::ZERO, "{now:?}");
        }
    }

    #[test]
    fn fast_writers_fill_l0_by_the_end_of_the_spill_and_are_never_stopped() {
        let last = Last {
            merge: 200 * MS,
            commit: 20 * MS,
        };
        for speed in [1.2, 2.0, 5.0] {
            let write_rate = speed * FULL as f64 / 0.22;
            let (fill, least) = run(last, write_rate, 200 * MS, 20 * MS);
            assert!((0.8..1.0).contains(&fill), "{speed}: {fill}");
            assert!(least > 0.5, "{speed}: {least}");
        }
    }

    #[test]
    fn a_spill_that_takes_longer_than_the_last_one_slows_writers_down_in_time() {
        let last = Last {
            merge: 50 * MS,
            commit: 5 * MS,
        };
        let write_rate = 5.0 * FULL as f64 / 0.2;
        let (fill, least) = run(last, write_rate, 200 * MS, 10 * MS);
        assert!(fill < 1.0 && least > 0.1, "{fill} {least}");
        let (fill, _) = run(Last::default(), write_rate, 200 * MS, 10 * MS);
        assert!(fill < 1.0, "{fill}");
    }

    /// The monotonic clock should not do this; a store is not to stand still where it does.
    #[test]
    fn whatever_the_clock_does_no_sleep_is_longer_than_a_millisecond() {
        let last = Last {
            merge: 200 * MS,
            commit: 20 * MS,
        };
        let mut pace = Pace::new(last);
        let hour = 3_600_000 * MS;
        let jumps = [
            MS,
            hour,
            2 * MS,
            Duration::ZERO,
            hour * 1000,
            50 * MS,
            51 * MS,
        ];
        for (i, elapsed) in jumps.iter().cycle().take(700).enumerate() {
            let now = Moment {
                elapsed: *elapsed,
                progress: (i as f64 / 700.0).min(1.0),
                committing: (i > 500).then_some(*elapsed),
                used_bytes: FULL / 2 + i * 500,
                full_bytes: FULL,
            };
            assert!(pace.delay(&now) <= PACE_SLEEP_MAX, "{now:?}");
        }
    }
}
