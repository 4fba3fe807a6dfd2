//! Group commit: one flush makes durable what all waiting writers have appended.
//!
//! The first writer that comes leads: it waits a moment for others (see [`CommitGroup`]), pads the tail to the border of a
//! block, writes, flushes and wakes the others. A writer that comes while a flush is under way waits for it and, if its
//! bytes were written too late, for the next, which one of those that wait leads (see [`Waiters`]).
//!
//! Invariants:
//! - a position counts as durable only when a flush has ended that was begun after all writes before the position had
//!   ended (invariant 4);
//! - with a mirror, no position counts as durable, and none is claimed, before its answer reaches there;
//! - a flush covers every position that was asked for before it was led: a writer waits for at most two flushes, the one
//!   under way and the next. It does not wait for records that others have buffered behind all those positions, unless
//!   they are few.

use std::sync::Arc;

use kreon_base::{Error, Lsn, Result, planted};
use kreon_device::Device;
use kreon_sync::{AtomicU64, Ordering};

use super::buffers::Buffers;
use super::commit_group::CommitGroup;
use super::home::LogHome;
use super::mirror::Elsewhere;
use super::output::{LogOutput, STREAM_BYTES_MIN};
use super::positions::Positions;
use super::sync_load::SyncLoad;
use super::waiters::Waiters;

/// Makes records durable.
pub(super) struct GroupCommit {
    device: Arc<dyn Device>,
    elsewhere: Elsewhere,
    buffers: Arc<Buffers>,
    positions: Arc<Positions>,
    output: Arc<LogOutput>,
    load: Arc<SyncLoad>,
    /// The furthest position that any writer has asked for: the border of a fragment.
    asked: AtomicU64,
    waiters: Waiters,
    group: CommitGroup,
}

impl GroupCommit {
    pub fn new(
        home: &LogHome,
        (buffers, positions): (Arc<Buffers>, Arc<Positions>),
        (output, load): (Arc<LogOutput>, Arc<SyncLoad>),
        waiters: Waiters,
    ) -> Self {
        Self {
            device: home.log_device(),
            elsewhere: home.elsewhere(),
            buffers,
            asked: AtomicU64::new(positions.durable().0),
            positions,
            output,
            load,
            waiters,
            group: CommitGroup::default(),
        }
    }

    /// Everything before this is durable.
    pub fn durable(&self) -> Lsn {
        self.positions.durable()
    }

    /// The queue of threads and tasks that wait.
    pub fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// A writer is about to wait for `upto`. Comes before the queue, so that the leader of those in the queue covers all of
    /// them.
    pub fn ask(&self, upto: Lsn) {
        self.asked.fetch_max(upto.0, Ordering::AcqRel);
    }

    /// Counts a writer that waits.
    pub fn arrive(&self) {
        self.group.arrive();
    }

    /// See [`Log::sync`](super::Log::sync).
    pub fn sync(&self, upto: Lsn) -> Result<()> {
        let upto = upto.min(self.buffers.tail());
        if self.positions.durable() >= upto {
            return Ok(());
        }
        self.ask(upto);
        self.group.arrive();
        match self.waiters.wait_or_lead(upto)? {
            Some(_leader) => self.lead(),
            None => Ok(()),
        }
    }

    /// See [`Log::serve`](super::Log::serve).
    pub fn serve(&self) -> Result<()> {
        self.waiters.flusher().wait();
        match self.waiters.lead_for_tasks() {
            Some(_leader) => self.lead(),
            None => Ok(()),
        }
    }

    /// Where the next flush is to reach: behind every position that was asked for, a fragment's border. A little that was
    /// appended behind comes along: its writers will soon ask for it. Buffered records of others may be far more than a
    /// call writes, and no writer waits for them.
    fn goal(&self) -> Lsn {
        let (tail, asked) = (self.buffers.tail(), self.asked.load(Ordering::Acquire));
        match tail.0.saturating_sub(asked) <= STREAM_BYTES_MIN {
            true => tail,
            false => Lsn(asked),
        }
    }

    /// Makes durable what was asked for. Only the leader calls this.
    fn lead(&self) -> Result<()> {
        let group = self.group.gather();
        let goal = self.goal();
        let target = self.output.pad_to_block(goal);
        assert!(goal <= target, "a flush short of what was asked for");
        // The goal is the border of a fragment; the border of a block is one only if nothing was appended over it.
        let claim = match self.buffers.tail() == target {
            true => target,
            false => goal,
        };
        self.elsewhere.begin_sync(target);
        planted!(FlushedBeforeWritten => self.device.flush()?);
        let write_out = self.output.write_out();
        write_out.write_until(target)?;
        // What others wrote further than that is covered, too: it was written before the flush begins.
        let (written, durable) = (self.positions.written(), self.positions.durable());
        self.flush()
            .map_err(|error| write_out.stop(&error.within("a flush of the log")))?;
        planted!(DurableUnclamped => self.positions.durable_upto(written));
        planted!(ClaimUnclamped => self.positions.claim_upto(claim));
        let elsewhere = self
            .sync_elsewhere(target)
            .map_err(|error| write_out.stop(&error.within("the mirror of the log")))?;
        self.positions.flushed(written.min(elsewhere), claim);
        self.group.release(&group);
        self.load.flushed(written.0.saturating_sub(durable.0));
        Ok(())
    }

    /// Waits for the mirror. Its members flush beside this device.
    fn sync_elsewhere(&self, target: Lsn) -> Result<Lsn> {
        let answer = self.elsewhere.sync(target)?;
        match answer >= target {
            true => Ok(answer),
            false => Err(Error::invalid(format!(
                "it has made the log durable up to {answer}, and was asked for {target}"
            ))),
        }
    }

    fn flush(&self) -> Result<()> {
        planted!(FlushSkippedBySync => return Ok(()));
        planted!(FlushedBeforeWritten => return Ok(()));
        let outcome = self.device.flush();
        planted!(FlushRetried => let outcome = outcome.or_else(|_| self.device.flush()));
        outcome
    }
}
