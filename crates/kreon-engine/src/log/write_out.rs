//! Writing buffered segments to the device, in order, each block once.
//!
//! Invariants:
//! - only whole blocks of the gapless committed prefix are written: nothing in them changes any more,
//!   so no block is ever written twice, but for [`zeroes`](super::zeroes) before it, and none that holds acknowledged
//!   bytes can be torn by a later write;
//! - a segment's header goes with its first records;
//! - blocks are given to the device in the order of the log, in calls of which a few are under way at once,
//!   so that it is never idle between two; calls *land* in that order, too, so `written` is a prefix.

use crate::sync::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use kreon_base::{Error, Lsn, Result};
use kreon_device::Write;

use super::buffers::Buffered;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::open::Log;
use super::pause::Pause;
use super::zeroes::{Prepared, zeroes};

/// Most bytes of one call. Writers wait for calls to land when the device falls behind: short calls make
/// short waits. With 1 MiB they waited for a millisecond, and the device was no faster.
const CALL_BYTES_MAX: u32 = 256 << 10;

/// Most calls under way: how much of the log may wait for the next flush behind them.
const CALLS_MAX: usize = 3;

/// What the holder of the write-out lock knows: how far the log is written, or about to be.
pub(super) struct WriteOut {
    /// Sequence of the segment to go on in.
    sequence: u64,
    /// Bytes of it that calls have taken.
    taken: u32,
    /// How far blocks behind that were written before.
    prepared: Prepared,
    /// Calls under way, and those that ended before one ahead of them did.
    calls: VecDeque<Call>,
    /// Number of the first of `calls`.
    first_call: u64,
    /// Of all calls so far.
    zeroed_bytes: u64,
}

struct Call {
    runs: Arc<[Run]>,
    /// Writes zeroes behind its runs, where the next call writes.
    is_ahead: bool,
    has_ended: bool,
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
        Self {
            sequence,
            taken: written,
            prepared: Prepared::default(),
            calls: VecDeque::new(),
            first_call: 0,
            zeroed_bytes: 0,
        }
    }

    /// Takes what can be written now for a call, but nothing behind `upto`, the border of a block; its number, what it
    /// writes, and how many zeroes behind that.
    fn take(&mut self, log: &Log, least_bytes: u32, upto: Lsn) -> Option<(u64, Arc<[Run]>, u32)> {
        let is_ahead = |call: &Call| call.is_ahead && !call.has_ended;
        if self.calls.len() >= CALLS_MAX || self.calls.iter().any(is_ahead) {
            return None;
        }
        let runs: Arc<[Run]> = self.ready(log, least_bytes, upto).into();
        let last = runs.last()?;
        let zeroes = self
            .prepared
            .extend(&last.buffered, last.end, (log.durable(), log.tail()));
        (self.sequence, self.taken) = match last.end {
            SEGMENT => (last.buffered.sequence + 1, 0),
            end => (last.buffered.sequence, end),
        };
        self.zeroed_bytes += u64::from(zeroes);
        self.calls.push_back(Call {
            runs: Arc::clone(&runs),
            is_ahead: zeroes > 0,
            has_ended: false,
        });
        Some((self.first_call + self.calls.len() as u64 - 1, runs, zeroes))
    }

    /// The call with this number has ended well: it lands with all that wait for it to.
    fn land(&mut self, number: u64, log: &Log) {
        let index = number.checked_sub(self.first_call);
        let index = index.and_then(|index| usize::try_from(index).ok());
        if let Some(call) = index.and_then(|index| self.calls.get_mut(index)) {
            call.has_ended = true;
        }
        while self.calls.front().is_some_and(|call| call.has_ended) {
            self.first_call += 1;
            let landed = self.calls.pop_front();
            for run in landed.iter().flat_map(|call| &*call.runs) {
                let end = run.buffered.lsn(run.end);
                log.written.store(end.0, Ordering::Release);
                if run.end == SEGMENT {
                    run.buffered.complete.store(true, Ordering::Release);
                }
            }
        }
    }

    /// A thread died while it copied what is to be written next: nothing behind can pass the hole.
    fn is_at_hole(&self, log: &Log) -> bool {
        let buffered = log.buffers.by_sequence(self.sequence);
        buffered.is_some_and(|buffered| buffered.buffer.is_abandoned())
    }

    /// The runs that can be written now, in order. A run of less than `least_bytes` waits, unless it
    /// ends its segment. Nothing behind `upto` is among them.
    fn ready(&self, log: &Log, least_bytes: u32, upto: Lsn) -> Vec<Run> {
        let (mut sequence, mut start, mut bytes) = (self.sequence, self.taken, 0);
        let mut runs = Vec::new();
        while bytes < CALL_BYTES_MAX
            && let Some(buffered) = log.buffers.by_sequence(sequence)
        {
            let committed = buffered.buffer.committed_prefix(0);
            let fits = start + (CALL_BYTES_MAX - bytes);
            let end = (committed - committed % log.block_bytes).min(fits);
            let end = end.min(buffered.within(upto));
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
    fn write(&self) -> Result<Write<'_>> {
        let bytes = self.buffered.buffer.committed_range(self.start..self.end);
        let bytes = bytes.ok_or_else(|| Error::invalid("a write of uncommitted bytes"))?;
        Ok(Write::new(self.buffered.offset(self.start).0, bytes))
    }
}

impl Log {
    /// Writes what can be written, in runs of at least `least_bytes` (but for ends of segments);
    /// whether that was anything.
    ///
    /// # Errors
    /// `Poisoned` if the write fails or an earlier one did.
    pub(super) fn write_ready(&self, least_bytes: u32) -> Result<bool> {
        self.write_ready_upto(least_bytes, Lsn::MAX)
    }

    /// The same, but nothing behind `upto`.
    fn write_ready_upto(&self, least_bytes: u32, upto: Lsn) -> Result<bool> {
        self.poison.check()?;
        let taken = self.writer.lock().take(self, least_bytes, upto);
        let Some((number, runs, ahead)) = taken else {
            return Ok(false);
        };
        let dies = Dies(self);
        let mut writes = runs.iter().map(Run::write).collect::<Result<Vec<_>>>();
        if let Ok(writes) = &mut writes
            && let Some(last) = writes.last_mut()
        {
            last.buffers.extend(zeroes(ahead));
        }
        let outcome = writes.and_then(|writes| self.home.device.write(&writes));
        std::mem::forget(dies);
        // A buffer is free for use as soon as its last call has landed.
        drop(runs);
        outcome.map_err(|error| self.stop(&error.within("a write of the log")))?;
        self.writer.lock().land(number, self);
        self.landed.notify_all();
        Ok(true)
    }

    /// Bytes of zeroes that were written ahead of records.
    pub fn zeroed_bytes(&self) -> u64 {
        self.writer.lock().zeroed_bytes
    }

    /// Writes until everything before `target`, the border of a block, is on the device. Waits for
    /// other threads to commit what they reserved before it, and for calls under way that hold some of it; begins none
    /// that writes more.
    pub(super) fn write_until(&self, target: Lsn) -> Result<()> {
        let mut pause = Pause::default();
        while self.written() < target {
            if !self.write_ready_upto(0, target)? {
                self.wait_to_land(&mut pause)?;
            }
        }
        Ok(())
    }

    /// Waits a little: for a call under way to land, or else for threads that copy.
    ///
    /// # Errors
    /// `Poisoned` if a write failed, or a thread died while it copied.
    pub(super) fn wait_to_land(&self, pause: &mut Pause) -> Result<()> {
        let mut out = self.writer.lock();
        self.poison.check()?;
        if !out.calls.is_empty() {
            self.landed.wait(&mut out);
            return Ok(());
        }
        let is_at_hole = out.is_at_hole(self);
        drop(out);
        if is_at_hole {
            let error = Error::invalid("a thread died while it appended to the log");
            return Err(self.stop(&error));
        }
        pause.wait();
        Ok(())
    }

    /// Poisons the log and wakes all who wait for it.
    pub(super) fn stop(&self, cause: &Error) -> Error {
        let error = self.poison.set(cause);
        self.background.wake();
        // Who waits for a call looked at the poison under this lock.
        drop(self.writer.lock());
        self.landed.notify_all();
        error
    }
}

/// Stops the log if the thread dies while it writes: the call would never land.
struct Dies<'a>(&'a Log);

impl Drop for Dies<'_> {
    fn drop(&mut self) {
        let error = Error::invalid("a thread died while it wrote the log");
        _ = self.0.stop(&error);
    }
}
