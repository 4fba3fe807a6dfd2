//! Flushes of the log that writers share (group commit).
//!
//! One of the writers that wait, the leader, writes the log out and flushes the device; the others wait for it. A leader waits
//! a moment for the writers that the last flush released: they come back soon, and would need a flush of their own. A writer
//! that is alone never waits. A flush that failed is never tried again: the store is poisoned.

use std::time::{Duration, Instant};

use kreon_base::{Lsn, Result};
use kreon_sync::{AtomicU64, Condvar, Mutex, Ordering::Relaxed, yield_now};

use super::home::Home;
use super::volume_log::VolumeLog;

/// A leader waits for at most this part of the time that the last flush took...
const FLUSH_PART: u32 = 8;

/// ... and never longer than this.
const PATIENCE_MAX: Duration = Duration::from_micros(500);

/// Writers that wait for the log to become durable.
#[derive(Default)]
pub(super) struct GroupFlush {
    state: Mutex<State>,
    changed: Condvar,
    /// Calls that had something to wait for.
    calls: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Everything before it is durable.
    durable: Lsn,
    is_flushing: bool,
    last: LastGroup,
}

/// The last flush, and which calls the next one expects.
#[derive(Clone, Copy, Default)]
struct LastGroup {
    /// Calls up to here were covered.
    closed_at: u64,
    expected: u64,
    patience: Duration,
}

/// The writer that flushes. If it panics, the others are told.
struct Leader<'a> {
    group: &'a GroupFlush,
    home: &'a Home,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(self.home.poison.on_panic());
            self.group.state.lock().is_flushing = false;
            self.group.changed.notify_all();
        }
    }
}

impl GroupFlush {
    /// Waits until everything up to the record at `lsn`, which was appended before the call, is durable.
    ///
    /// # Errors
    /// Those of the device: what is durable is unknown then, and the store takes no more writes.
    pub(super) fn wait(&self, home: &Home, log: &VolumeLog, lsn: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        let mut is_counted = false;
        loop {
            if state.durable > lsn {
                return Ok(());
            }
            home.poison.check()?;
            if !is_counted {
                self.calls.fetch_add(1, Relaxed);
                is_counted = true;
            }
            if state.is_flushing {
                self.changed.wait(&mut state);
                continue;
            }
            state.is_flushing = true;
            let last = state.last;
            drop(state);
            let leader = Leader { group: self, home };
            let flushed = self.flush(home, log, last);
            drop(leader);
            state = self.state.lock();
            state.is_flushing = false;
            self.changed.notify_all();
            let (end, group) = flushed?;
            state.last = group;
            state.durable = state.durable.max(end);
        }
    }

    /// Everything before `end` was made durable by a commit.
    pub(super) fn advance(&self, end: Lsn) {
        let mut state = self.state.lock();
        state.durable = state.durable.max(end);
        self.changed.notify_all();
    }

    fn flush(&self, home: &Home, log: &VolumeLog, last: LastGroup) -> Result<(Lsn, LastGroup)> {
        self.gather(&last);
        let (closed_at, begun) = (self.calls.load(Relaxed), Instant::now());
        let end = log.write_out()?;
        home.flush()?;
        log.set_durable(end);
        let group = LastGroup {
            closed_at,
            expected: self.calls.load(Relaxed) + (closed_at - last.closed_at),
            patience: (begun.elapsed() / FLUSH_PART).min(PATIENCE_MAX),
        };
        Ok((end, group))
    }

    /// Waits for the writers that are expected.
    fn gather(&self, last: &LastGroup) {
        let start = Instant::now();
        while self.calls.load(Relaxed) < last.expected && start.elapsed() < last.patience {
            yield_now();
        }
    }
}
