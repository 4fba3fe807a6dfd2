//! Writing buffered segments to the device, in order, each block once.
//!
//! Invariants:
//! - only whole blocks of the gapless committed prefix are written: nothing in them changes any more,
//!   so no block is ever written twice, and none that holds acknowledged bytes can be torn by a
//!   later write;
//! - a segment's header goes with its first records;
//! - blocks are written in the order of the log, one call of [`Device::write`](kreon_device::Device::write) after the other, so
//!   `written` is a prefix.

use crate::sync::Ordering;
use std::sync::Arc;

use kreon_base::{Error, Lsn, Result};
use kreon_device::Write;

use super::buffers::Buffered;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::open::Log;
use super::pause::Pause;

/// Most bytes of one write; longer runs are cut, so that the device works on several at once.
const WRITE_BYTES_MAX: u32 = 512 << 10;

/// Most bytes of one call: how much of the log may wait for the next flush behind it.
const CALL_BYTES_MAX: u32 = 4 << 20;

/// What the holder of the write-out lock knows: how far the log is written.
pub(super) struct WriteOut {
    /// Sequence of the segment to go on in.
    sequence: u64,
    /// Bytes of it that are on the device.
    written: u32,
}

/// A range of a segment that can be written.
struct Run {
    buffered: Arc<Buffered>,
    start: u32,
    end: u32,
}

impl WriteOut {
    /// All before `written` bytes of the segment `sequence` is on the device.
    pub fn new(sequence: u64, written: u32) -> Self {
        Self { sequence, written }
    }

    /// The runs that can be written now, in order. A run of less than `least_bytes` waits, unless it
    /// ends its segment.
    fn ready(&self, log: &Log, least_bytes: u32) -> Vec<Run> {
        let (mut sequence, mut start, mut bytes) = (self.sequence, self.written, 0);
        let mut runs = Vec::new();
        while bytes < CALL_BYTES_MAX
            && let Some(buffered) = log.buffers.by_sequence(sequence)
        {
            let committed = buffered.buffer.committed_prefix(0);
            let end = committed - committed % log.block_bytes;
            let is_too_short = end < SEGMENT && end.saturating_sub(start) < least_bytes;
            if end <= start.max(PAYLOAD_START) || is_too_short {
                break;
            }
            bytes += end - start;
            runs.push(Run {
                buffered,
                start,
                end,
            });
            if end < SEGMENT {
                break;
            }
            (sequence, start) = (sequence + 1, 0);
        }
        runs
    }
}

impl Run {
    /// The writes of this run.
    fn writes(&self) -> impl Iterator<Item = Result<Write<'_>>> {
        let starts = (self.start..self.end).step_by(WRITE_BYTES_MAX as usize);
        starts.map(|start| {
            let end = self.end.min(start + WRITE_BYTES_MAX);
            let bytes = self.buffered.buffer.committed_range(start..end);
            let bytes = bytes.ok_or_else(|| Error::invalid("a write of uncommitted bytes"))?;
            Ok(Write::new(self.buffered.offset(start).0, bytes))
        })
    }
}

impl Log {
    /// Writes what can be written, in runs of at least `least_bytes` (but for ends of segments);
    /// whether that was anything.
    ///
    /// # Errors
    /// `Poisoned` if the write fails or an earlier one did.
    pub(super) fn write_ready(&self, out: &mut WriteOut, least_bytes: u32) -> Result<bool> {
        self.poison.check()?;
        let runs = out.ready(self, least_bytes);
        if runs.is_empty() {
            return Ok(false);
        }
        let writes = runs
            .iter()
            .flat_map(Run::writes)
            .collect::<Result<Vec<_>>>();
        writes
            .and_then(|writes| self.home.device.write(&writes))
            .map_err(|error| self.stop(&error.within("a write of the log")))?;
        for run in &runs {
            (out.sequence, out.written) = (run.buffered.sequence, run.end);
            self.written
                .store(run.buffered.lsn(run.end).0, Ordering::Release);
            if run.end == SEGMENT {
                (out.sequence, out.written) = (run.buffered.sequence + 1, 0);
                run.buffered.complete.store(true, Ordering::Release);
            }
        }
        Ok(true)
    }

    /// Writes until everything before `target`, the border of a block, is on the device. Waits for
    /// other threads to commit what they reserved before it.
    pub(super) fn write_until(&self, target: Lsn) -> Result<()> {
        let mut pause = Pause::default();
        while self.written() < target {
            let mut out = self.writer.lock();
            if self.written() >= target {
                break;
            }
            if !self.write_ready(&mut out, 0)? {
                drop(out);
                self.check_holes()?;
                pause.wait();
            }
        }
        Ok(())
    }

    /// A writer that died while it copied leaves a hole that nothing behind can pass.
    pub(super) fn check_holes(&self) -> Result<()> {
        let out = self.writer.lock();
        let buffered = self.buffers.by_sequence(out.sequence);
        if buffered.is_some_and(|buffered| buffered.buffer.is_abandoned()) {
            return Err(self.stop(&Error::invalid(
                "a thread died while it appended to the log",
            )));
        }
        Ok(())
    }

    /// Poisons the log and wakes all who wait for it.
    pub(super) fn stop(&self, cause: &Error) -> Error {
        let error = self.poison.set(cause);
        self.background.wake();
        error
    }
}
