//! The clock of a process.

use std::time::Instant;

use crate::machine::Moment;

/// Moments since a process began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    pub fn now(self) -> Moment {
        Moment(self.0.elapsed().as_micros() as u64)
    }
}
