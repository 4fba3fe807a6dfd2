//! The clock of a process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::machine::Moment;

/// Moments since a process began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

/// How fast all clocks of the process go, in percent of the real one.
static PERCENT: AtomicU32 = AtomicU32::new(100);

/// Lets all clocks of the process go wrong, for tests: so many percent as fast as the real one, 1 to 1000. Comes before a
/// server starts.
pub fn set_clock_percent(percent: u32) {
    PERCENT.store(percent.clamp(1, 1000), Ordering::Relaxed);
}

impl Clock {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    pub fn now(self) -> Moment {
        let percent = u64::from(PERCENT.load(Ordering::Relaxed));
        Moment(self.0.elapsed().as_micros() as u64 * percent / 100)
    }
}
