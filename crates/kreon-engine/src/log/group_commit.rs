//! Group commit: one flush makes durable what all waiting writers have appended.
//!
//! The first who comes leads: it waits a moment for others (see [`Crowd`]), pads the tail to the border of a block, writes, flushes and wakes the
//! others. Who comes while a flush is under way waits for it and, if its own bytes were written too
//! late for it, for the next, which one of those waiting leads (see [`Waiters`]). A position counts as durable only when
//! a flush has ended that was begun after all writes before the position had ended (invariant 4).
//!
//! So a writer waits for two flushes at the most: the one under way and the next, which covers every position that was
//! asked for before it was led. It does not wait for what others have buffered behind all those positions, unless that
//! is little.

use crate::sync::{AtomicU64, Ordering};

use kreon_base::{Bug, Lsn, Result};
use kreon_device::Reserve;
use kreon_format::{lsn_at, place_of};

use super::background::STREAM_BYTES;
use super::crowd::Crowd;
use super::open::Log;
use super::steady::Steady;
use super::waiters::Waiters;

pub(super) struct GroupCommit {
    durable: AtomicU64,
    /// See [`Log::claim`].
    claim: AtomicU64,
    /// The furthest position that anybody has asked for: the border of a fragment.
    asked: AtomicU64,
    pub steady: Steady,
    pub waiters: Waiters,
    pub crowd: Crowd,
}

impl GroupCommit {
    pub fn new(durable: Lsn) -> Self {
        Self {
            durable: AtomicU64::new(durable.0),
            claim: AtomicU64::new(durable.0),
            asked: AtomicU64::new(durable.0),
            steady: Steady::default(),
            waiters: Waiters::default(),
            crowd: Crowd::default(),
        }
    }

    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    pub fn claim(&self) -> Lsn {
        Lsn(self.claim.load(Ordering::Acquire))
    }

    /// Somebody is about to wait for `upto`. Comes before the queue, so that whoever leads for those in the queue covers
    /// all of them.
    pub fn ask(&self, upto: Lsn) {
        self.asked.fetch_max(upto.0, Ordering::AcqRel);
    }
}

impl Log {
    /// Makes everything before `upto` durable: a position that [`append`](Log::append) returned. Costs
    /// one flush, shared with all who wait at the same time; the calling thread may do it for all.
    ///
    /// # Errors
    /// `Poisoned` if a write or the flush fails, or one did before.
    pub fn sync(&self, upto: Lsn) -> Result<()> {
        let upto = upto.min(self.tail());
        if self.durable() >= upto {
            return Ok(());
        }
        self.commit.ask(upto);
        self.commit.crowd.arrive();
        match self.wait_or_lead(upto)? {
            Some(_leader) => self.commit_group(),
            None => Ok(()),
        }
    }

    /// Waits until tasks need a flush and nobody leads one, and leads it: the body of the flusher.
    /// Between [`begin_serving`](Self::begin_serving) and [`end_serving`](Self::end_serving).
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn serve(&self) -> Result<()> {
        self.commit.waiters.flusher.wait();
        match self.lead_for_tasks() {
            Some(_leader) => self.commit_group(),
            None => Ok(()),
        }
    }

    /// Where the next flush is to reach: behind every position that was asked for, a fragment's border. What was
    /// appended behind comes along if it is little: whoever appended it will soon ask for it. Buffered records of others
    /// may be far more than a call writes, and nobody waits for them.
    fn goal(&self) -> Lsn {
        let (tail, asked) = (self.tail(), self.commit.asked.load(Ordering::Acquire));
        match tail.0.saturating_sub(asked) <= u64::from(STREAM_BYTES) {
            true => tail,
            false => Lsn(asked),
        }
    }

    /// Makes durable what was asked for.
    fn commit_group(&self) -> Result<()> {
        let group = self.commit.crowd.gather();
        let goal = self.goal();
        let target = self.pad_to_block(goal);
        // The goal is the border of a fragment; the border of a block is one only if nobody appended over it.
        let claim = if self.tail() == target { target } else { goal };
        if Bug::FlushedBeforeWritten.is_planted() {
            self.home.device.flush()?;
        }
        self.write_until(target)?;
        // What others wrote further than that is covered, too: it was written before the flush begins.
        let (written, durable) = (self.written(), self.durable());
        self.flush()
            .map_err(|error| self.stop(&error.within("a flush of the log")))?;
        self.commit.durable.fetch_max(written.0, Ordering::AcqRel);
        self.commit.claim.fetch_max(claim.0, Ordering::AcqRel);
        self.commit.crowd.release(&group);
        self.commit
            .steady
            .flushed(written.0.saturating_sub(durable.0));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        if Bug::FlushSkippedBySync.is_planted() || Bug::FlushedBeforeWritten.is_planted() {
            return Ok(());
        }
        match self.home.device.flush() {
            Err(_) if Bug::FlushRetried.is_planted() => self.home.device.flush(),
            outcome => outcome,
        }
    }

    /// Writes everything before `upto` to the device: it survives the end of the process, but not yet
    /// that of the machine.
    ///
    /// # Errors
    /// `Poisoned` if the write fails, or one did before.
    pub fn write_out(&self, upto: Lsn) -> Result<()> {
        let upto = upto.min(self.tail());
        if self.written() >= upto {
            return self.poison.check();
        }
        let target = self.pad_to_block(upto);
        self.write_until(target)
    }

    /// Pads the log to the end of the block that holds the byte before `upto`, unless records fill it
    /// already; returns that end.
    fn pad_to_block(&self, upto: Lsn) -> Lsn {
        let (sequence, within) = place_of(upto);
        let target = lsn_at(sequence, within.next_multiple_of(self.block_bytes));
        loop {
            let current = self.current.load();
            if current.tail() >= target {
                return target;
            }
            // Whatever another writer reserves in between brings the tail closer to the target, too.
            if let Reserve::Reserved(room) = current.buffer.reserve_to_boundary(self.block_bytes) {
                self.pad(&current, room);
            }
        }
    }
}
