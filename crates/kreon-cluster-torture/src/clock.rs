//! The clock of a run, which all of its processes share.

use std::fmt;

use rustix::time::{ClockId, clock_gettime};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Time since a run began, by the monotonic clock of the machine: two processes that have the same one agree on it, so what
/// servers log can be put beside faults and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    begun_us: u64,
}

impl Clock {
    /// Of a run that begins now.
    pub fn begin() -> Self {
        Self {
            begun_us: machine_us(),
        }
    }

    /// Of the run for which another process says [`begun_us`](Self::begun_us).
    pub const fn of_run(begun_us: u64) -> Self {
        Self { begun_us }
    }

    /// What another process is to be told.
    pub const fn begun_us(self) -> u64 {
        self.begun_us
    }

    /// Microseconds since the run began.
    pub fn now_us(self) -> u64 {
        machine_us().saturating_sub(self.begun_us)
    }
}

/// Lines of a log begin with the seconds of the run.
impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let us = self.now_us();
        write!(writer, "{:>5}.{:06}", us / 1_000_000, us % 1_000_000)
    }
}

fn machine_us() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // It counts from a start of the machine.
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}
