//! The throttle of the log: how fast writers may append while the device is behind.
//!
//! A writer that finds all buffers full waits for the slowest call: a stall of the device of some milliseconds would stall
//! every writer. The throttle keeps the buffers half full. From a quarter on it measures the rate at which bytes land,
//! and a writer that is ahead of a line drawn at about that rate sleeps a fraction of a millisecond. A stall fills the other
//! half; writers wait for it only if it lasts longer than that takes.
//!
//! Invariant: one sleep is at most `SLEEP_MAX`, whatever the clock does.

use std::time::{Duration, Instant};

use kreon_sync::Mutex;

/// Up to this share of the unwritten bytes that are allowed, no writer is slowed down.
const FREE_SHARE: f64 = 0.25;

/// Where the free share ends, the allowed rate is this many times that of the device; it falls in proportion to 0 where
/// the buffers are full. At the device's own rate they are half full.
const RATE_FREE: f64 = 1.5;

/// The rate of the device is a mean over about this time: much longer than a stall that is to be bridged.
const MEAN: Duration = Duration::from_millis(200);

/// The least time over which the rate is measured.
const SPAN: Duration = Duration::from_millis(5);

/// Writers that are less than this ahead need not sleep: the shortest sleep takes about as long.
const AHEAD_MIN: Duration = Duration::from_micros(60);

/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_micros(150);

/// The line is drawn anew after this time, from where the log's end stands then.
const LINE_MAX: Duration = Duration::from_millis(5);

/// How fast the device takes the log, and how far the log may be. `None`: there is no throttle.
#[derive(Default)]
pub(super) struct Throttle(Mutex<Option<Rates>>);

/// Measured since there has been a throttle.
struct Rates {
    /// Bytes a second that the device takes; `None`: not known yet.
    rate: Option<f64>,
    measured: Mark,
    line: Mark,
    /// Bytes a second from `line` on.
    allowed: f64,
}

/// A position of the log at a moment.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    position: u64,
}

impl Throttle {
    /// How long a writer sleeps whose record ends at `tail`, in a log that is written up to `written` and may have `most`
    /// unwritten bytes.
    pub fn delay(&self, now: Instant, tail: u64, written: u64, most: u64) -> Duration {
        let share = tail.saturating_sub(written) as f64 / most.max(1) as f64;
        // Another writer is measuring: this one goes on until its next look.
        let Some(mut rates) = self.0.try_lock() else {
            return Duration::ZERO;
        };
        if share < FREE_SHARE {
            *rates = None;
            return Duration::ZERO;
        }
        let mark = |position| Mark { at: now, position };
        let rates = rates.get_or_insert_with(|| Rates {
            rate: None,
            measured: mark(written),
            line: mark(tail),
            allowed: f64::INFINITY,
        });
        rates.measure(mark(written));
        rates.delay(mark(tail), share)
    }
}

impl Rates {
    fn measure(&mut self, written: Mark) {
        let span = written.at.saturating_duration_since(self.measured.at);
        if span < SPAN {
            return;
        }
        let landed = written.position.saturating_sub(self.measured.position) as f64;
        let measured = landed / span.as_secs_f64();
        let weight = (span.as_secs_f64() / MEAN.as_secs_f64()).min(1.0);
        self.rate = match self.rate {
            None if landed == 0.0 => None,
            None => Some(measured),
            Some(rate) => Some(rate + (measured - rate) * weight),
        };
        self.measured = written;
    }

    fn delay(&mut self, tail: Mark, share: f64) -> Duration {
        let Some(rate) = self.rate else {
            return Duration::ZERO;
        };
        let since = tail.at.saturating_duration_since(self.line.at);
        let allowed = self.line.position as f64 + self.allowed * since.as_secs_f64();
        if since >= LINE_MAX || self.allowed.is_infinite() {
            // A writer that was slower than allowed has no credit from that.
            self.line = Mark {
                at: tail.at,
                position: (allowed.min(tail.position as f64)) as u64,
            };
            self.allowed = rate * RATE_FREE * (1.0 - share).max(0.05) / (1.0 - FREE_SHARE);
        }
        let ahead = (tail.position as f64 - allowed) / self.allowed;
        debug_assert!(!ahead.is_nan(), "no rate, no line");
        match ahead < AHEAD_MIN.as_secs_f64() {
            true => Duration::ZERO,
            false => Duration::from_secs_f64(ahead.min(SLEEP_MAX.as_secs_f64())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 28 << 20;
    const STEP: Duration = Duration::from_micros(10);
    /// Bytes a second that the device takes.
    const DEVICE: f64 = 1e9;

    /// What one writer achieved.
    struct Outcome {
        /// Share of the device's rate that it used.
        used: f64,
        longest: Duration,
        /// Moments at which it waited for a free buffer.
        waits: usize,
    }

    /// A writer that could do `writer` bytes a second for a second, and a device that stalls for `stall` every 100 ms.
    fn run(writer: f64, stall: Duration) -> Outcome {
        let (throttle, start) = (Throttle::default(), Instant::now());
        let (mut tail, mut written, mut awake_at) = (0.0, 0.0_f64, Duration::ZERO);
        let (mut looked_at, mut longest, mut waits, mut could) = (0.0, Duration::ZERO, 0, 0.0);
        for step in 0..100_000 {
            let now = STEP * step;
            if now.as_micros() % 100_000 >= stall.as_micros() {
                let landed = DEVICE * STEP.as_secs_f64();
                written = (written + landed).min(tail);
                could += landed;
            }
            if now < awake_at {
                continue;
            }
            if tail - written > MOST as f64 {
                waits += 1;
                continue;
            }
            tail += writer * STEP.as_secs_f64();
            if tail - looked_at > f64::from(128 << 10) {
                looked_at = tail;
                let delay = throttle.delay(start + now, tail as u64, written as u64, MOST);
                longest = longest.max(delay);
                awake_at = now + delay;
            }
        }
        Outcome {
            used: written / could,
            longest,
            waits,
        }
    }

    #[test]
    fn a_writer_faster_than_the_device_never_waits_for_a_buffer() {
        let outcome = run(1.3e9, Duration::ZERO);
        assert_eq!(outcome.waits, 0);
        assert!(outcome.used > 0.98, "{}", outcome.used);
        assert!(outcome.longest <= SLEEP_MAX);
    }

    #[test]
    fn a_stall_of_the_device_is_bridged() {
        let outcome = run(1.3e9, Duration::from_millis(8));
        assert_eq!(outcome.waits, 0);
        assert!(outcome.used > 0.95, "{}", outcome.used);
    }

    #[test]
    fn a_writer_slower_than_the_device_never_sleeps() {
        let outcome = run(0.9e9, Duration::from_millis(5));
        assert_eq!((outcome.longest, outcome.waits), (Duration::ZERO, 0));
    }

    #[test]
    fn no_clock_makes_a_sleep_long() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        let jumps_ms = [0, 1, 3_600_000, 2, 3_600_000_000, 5, 5, 50];
        for (i, ms) in jumps_ms.iter().cycle().take(200).enumerate() {
            let now = start + Duration::from_millis(*ms);
            let (tail, written) = (MOST + (i as u64) * 300_000, i as u64 * 200_000);
            assert!(throttle.delay(now, tail, written, MOST) <= SLEEP_MAX);
        }
    }
}
