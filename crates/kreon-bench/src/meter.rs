//! Wall time and CPU time of a phase.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the whole process, background threads included, in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A running measurement.
pub struct Meter {
    start: Instant,
    cpu_start: f64,
}

/// What a phase took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Wall time, in seconds.
    pub seconds: f64,
    /// CPU time of all threads, in seconds.
    pub cpu_seconds: f64,
}

impl Meter {
    /// Starts.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            cpu_start: cpu_seconds(),
        }
    }

    /// Ends.
    pub fn stop(self) -> Taken {
        Taken {
            seconds: self.start.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - self.cpu_start,
        }
    }
}
