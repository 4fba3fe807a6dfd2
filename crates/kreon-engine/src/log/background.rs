//! Writing out in the background, so that appenders seldom have to and a killed process loses little.

use std::time::Instant;

use crate::sync::{AtomicUsize, Mutex, Ordering};
use kreon_base::{Lsn, Result};

use super::backlog::Backlog;
use super::bell::Bell;
use super::cut::SEGMENT;
use super::open::Log;
use super::pause::Pause;

/// Unwritten bytes that are worth a write of their own: the device is at its full rate with writes of
/// this size.
pub(super) const STREAM_BYTES: u32 = 128 << 10;

/// So much may wait to be written while writers wait for durability: they wait for all before their own records. About a
/// millisecond of a fast device, and more than the calls that are under way at once.
pub(super) const UNWRITTEN_MAX_WAITED: u64 = 1 << 20;

/// When to write, and how to wake who does it.
#[derive(Default)]
pub(super) struct Background {
    /// There may be something to write.
    bell: Bell,
    /// At what rate writers may append.
    backlog: Backlog,
    /// Threads that write out.
    writers: AtomicUsize,
    /// The tail at a moment when not all before it was written.
    waiting: Mutex<Option<(Lsn, Instant)>>,
}

impl Background {
    pub fn wake(&self) {
        self.bell.ring();
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
        self.supply_ahead();
        let (tail, written) = (self.tail(), self.written());
        let is_long = tail.0.saturating_sub(written.0) >= u64::from(STREAM_BYTES);
        if is_long && self.write_ready(STREAM_BYTES)? {
            // There may be more than one step writes.
            self.background.wake();
            return Ok(true);
        }
        let mut waiting = self.background.waiting.lock();
        if written >= tail {
            *waiting = None;
            return Ok(false);
        }
        match *waiting {
            Some((seen, since)) if written < seen => {
                if now.saturating_duration_since(since) < self.options.age_max {
                    return Ok(false);
                }
                *waiting = None;
                drop(waiting);
                self.write_out(seen)?;
                Ok(true)
            }
            _ => {
                *waiting = Some((tail, now));
                Ok(false)
            }
        }
    }

    /// Counts a thread that calls [`write_out_step`](Self::write_out_step) over and over, until
    /// [`end_writing`](Self::end_writing): appenders leave the writing to it.
    pub fn begin_writing(&self) {
        self.background.writers.fetch_add(1, Ordering::AcqRel);
        self.buffers.make_ahead();
    }

    /// See [`begin_writing`](Self::begin_writing).
    pub fn end_writing(&self) {
        self.background.writers.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether there are such threads.
    fn is_written_for(&self) -> bool {
        self.background.writers.load(Ordering::Acquire) > 0
    }

    /// A step towards a free buffer: writes what fills one, or waits while the background writers do.
    pub(super) fn make_way(&self, pause: &mut Pause) -> Result<()> {
        if self.is_written_for() {
            self.background.wake();
        } else if self.write_ready(STREAM_BYTES)? {
            return Ok(());
        }
        self.wait_to_land(pause)
    }

    /// Called by an appender that has completed something worth a write, at `tail`. Where the device falls
    /// behind it waits here, often and briefly, so that nobody has to wait long for a free buffer.
    pub(super) fn keep_pace(&self, tail: Lsn) {
        self.background.wake();
        if !self.is_written_for() {
            return;
        }
        let (now, written) = (Instant::now(), self.written().0);
        let is_waited = self.commit.steady.is_waited(now);
        let most = match is_waited {
            true => self.unwritten_max().min(UNWRITTEN_MAX_WAITED),
            false => self.unwritten_max(),
        };
        let backlog = &self.background.backlog;
        let delay = backlog.delay(now, tail.0, written, most);
        if !delay.is_zero() {
            crate::sync::sleep(delay);
        }
        let mut pause = Pause::default();
        let is_far = || tail.0.saturating_sub(self.written().0) > most;
        while self.is_written_for() && is_far() && self.wait_to_land(&mut pause).is_ok() {
            // Perhaps they found nothing to write before a thread had copied its bytes.
            self.background.wake();
        }
    }

    /// So much may wait to be written: then a buffer is free when the open one is full.
    fn unwritten_max(&self) -> u64 {
        let segments = (self.options.buffers_max as u64).saturating_sub(2);
        (segments * u64::from(SEGMENT)).max(u64::from(SEGMENT / 2))
    }

    /// Blocks until there may be work for [`write_out_step`](Self::write_out_step), at most half of
    /// the age after which records are written anyway.
    pub fn wait_for_work(&self) {
        self.background.bell.wait_for(self.options.age_max / 2);
    }

    /// Ends a [`wait_for_work`](Self::wait_for_work), so that the thread can look whether to go on.
    pub fn wake_writer(&self) {
        self.background.wake();
    }
}
