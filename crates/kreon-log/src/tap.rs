//! Reading the committed bytes of an open log in order, for its mirror.

use std::sync::{Arc, Weak};

use kreon_base::{Error, LogOffset, Lsn, Result};
use kreon_format::place_of;

use super::buffered::Buffered;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::log::Log;
use super::poison::closed;
use super::reader::LogReader;

/// Committed bytes of one segment of the log. They never change any more.
#[derive(Clone, Copy, Debug)]
pub struct LogRun<'a> {
    /// Where they start in the log.
    pub from: Lsn,
    /// Behind them: where the next run starts.
    pub end: Lsn,
    /// Where they stand on the volume.
    pub offset: LogOffset,
    /// The bytes. The first run of a segment begins with the page of its header, which has no positions of its own: such a
    /// run is a page longer than `from` to `end`.
    pub bytes: &'a [u8],
}

/// Reads the committed bytes of a log for as long as the log is there, and tells it what has landed. Keeps neither the log
/// nor its device.
#[derive(Clone)]
pub struct LogTap(Weak<Log>);

impl LogTap {
    /// Of `log`.
    pub fn new(log: &Arc<Log>) -> Self {
        Self(Arc::downgrade(log))
    }

    /// Calls `f` with committed bytes from `from` on: up to the end of their segment, and no more than `max_bytes` behind
    /// `from`. Returns `false`, without a call, if there are none yet. A position from which it was told and that the mirror
    /// has not [landed](super::LogMirror::landed) is never missing. `f` runs without a lock, but keeps the buffer of the
    /// segment from being used again.
    ///
    /// # Errors
    /// `InvalidArgument`: what stood there is not in memory any more, or was written by an earlier run. `Closed`: the log
    /// is gone.
    pub fn run(&self, from: Lsn, max_bytes: u32, f: impl FnOnce(LogRun<'_>)) -> Result<bool> {
        self.log()?.reader().run(from, max_bytes, f)
    }

    /// What the mirror has [landed](super::LogMirror::landed) has grown: wakes the threads that wait for it. Never blocks
    /// for long.
    pub fn landed(&self) {
        if let Some(log) = self.0.upgrade() {
            log.mirror_landed();
        }
    }

    /// Behind the last record, or the last that is being appended.
    ///
    /// # Errors
    /// `Closed`: the log is gone.
    pub fn tail(&self) -> Result<Lsn> {
        Ok(self.log()?.tail())
    }

    fn log(&self) -> Result<Arc<Log>> {
        self.0.upgrade().ok_or_else(closed)
    }
}

impl LogReader {
    /// See [`LogTap::run`].
    pub fn run(&self, from: Lsn, max_bytes: u32, f: impl FnOnce(LogRun<'_>)) -> Result<bool> {
        let (sequence, within) = place_of(from);
        let current = self.buffers.current_full();
        let buffered = match current.sequence() == sequence {
            true => current,
            // A full segment ends where the next begins.
            false if from == current.lsn(SEGMENT) => return Ok(false),
            false => self
                .buffers
                .by_sequence(sequence)
                .ok_or_else(|| not_in_memory(from))?,
        };
        if within < buffered.readable_from() {
            return Err(not_in_memory(from));
        }
        let committed = buffered.buffer().committed_prefix(0);
        let end = committed.min(within.saturating_add(max_bytes));
        if end <= within {
            return Ok(false);
        }
        f(run_of(&buffered, within, end)?);
        Ok(true)
    }
}

/// The bytes of a segment from its payload's `within` to `end`, which are committed.
fn run_of(buffered: &Buffered, within: u32, end: u32) -> Result<LogRun<'_>> {
    let start = match within {
        PAYLOAD_START => 0,
        within => within,
    };
    let bytes = buffered.buffer().committed_range(start..end);
    Ok(LogRun {
        from: buffered.lsn(within),
        end: buffered.lsn(end),
        offset: buffered.offset(start),
        bytes: bytes.ok_or_else(|| Error::invalid("a run of uncommitted bytes"))?,
    })
}

#[cold]
fn not_in_memory(from: Lsn) -> Error {
    Error::invalid(format!(
        "the log has nothing in memory from {from} on: it was landed, or another run wrote it"
    ))
}
