//! Writing out in the background, so that appenders seldom have to and a killed process loses little.

use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex};
use kreon_base::{Lsn, Result};

use super::open::Log;

/// Unwritten bytes that are worth a write of their own: the device is at its full rate with writes of
/// this size.
pub(super) const STREAM_BYTES: u32 = 256 << 10;

/// When to write, and how to wake who does it.
#[derive(Default)]
pub(super) struct Background {
    /// There may be something to write.
    has_work: Mutex<bool>,
    woken: Condvar,
    /// The tail at a moment when not all before it was written.
    waiting: Mutex<Option<(Lsn, Instant)>>,
}

impl Background {
    pub fn wake(&self) {
        *self.has_work.lock() = true;
        self.woken.notify_one();
    }

    fn wait(&self, timeout: Duration) {
        let mut has_work = self.has_work.lock();
        if !*has_work {
            self.woken.wait_for(&mut has_work, timeout);
        }
        *has_work = false;
    }
}

impl Log {
    /// One step of the background writer: writes full buffers and long runs of records; pads and
    /// writes what has waited for [`age_max`](super::LogOptions::age_max). Returns whether it wrote
    /// anything; if not, [`wait_for_work`](Self::wait_for_work) is next.
    ///
    /// # Errors
    /// `Poisoned` if a write fails, or one did before.
    pub fn write_out_step(&self) -> Result<bool> {
        self.write_out_step_at(Instant::now())
    }

    pub(super) fn write_out_step_at(&self, now: Instant) -> Result<bool> {
        self.poison.check()?;
        let (tail, written) = (self.tail(), self.written());
        let mut waiting = self.background.waiting.lock();
        if written >= tail {
            *waiting = None;
            return Ok(false);
        }
        if tail.0 - written.0 >= u64::from(STREAM_BYTES) {
            let mut out = self.writer.lock();
            if self.write_ready(&mut out, STREAM_BYTES)? {
                // There may be more than one step writes.
                self.background.wake();
                return Ok(true);
            }
        }
        match *waiting {
            Some((seen, since)) if written < seen => {
                if now.saturating_duration_since(since) < self.options.age_max {
                    return Ok(false);
                }
                *waiting = None;
                self.write_out(seen)?;
                Ok(true)
            }
            _ => {
                *waiting = Some((tail, now));
                Ok(false)
            }
        }
    }

    /// Blocks until there may be work for [`write_out_step`](Self::write_out_step), at most half of
    /// the age after which records are written anyway.
    pub fn wait_for_work(&self) {
        self.background.wait(self.options.age_max / 2);
    }

    /// Ends a [`wait_for_work`](Self::wait_for_work), so that the thread can look whether to go on.
    pub fn wake_writer(&self) {
        self.background.wake();
    }
}
