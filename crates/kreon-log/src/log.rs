//! The open log: the one place that knows all its parts. It writes here; [`LogReader`] reads.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use kreon_base::{Error, Incarnation, Lsn, Result};
use kreon_sync::AtomicU64;

use super::append::Appender;
use super::buffers::Buffers;
use super::calls::Calls;
use super::durable_wait::DurableWait;
use super::framing::Framing;
use super::group_commit::GroupCommit;
use super::history::LogHistory;
use super::home::{LogHome, LogOptions};
use super::landing::Landing;
use super::output::{LogOutput, Sources};
use super::poison::{Poison, closed};
use super::positions::Positions;
use super::reader::LogReader;
use super::record::{NewRecord, Place};
use super::resume::Resume;
use super::roll::{RollParts, Roller};
use super::segments::SegmentTable;
use super::supply::Supply;
use super::sync_load::{SegmentDemand, SyncLoad};
use super::waiters::Waiters;
use super::write_out::WriteOut;

/// A log that takes records: the append-only home of keys and values, and the redo log.
///
/// Locks, in the order in which they are taken: the roll lock, the supplier's, that of the reserved segments, the write-out
/// lock, the pool of buffers. No thread waits for any of them while it holds a reservation that is not committed: a thread
/// that waits for the gapless committed prefix waits for threads that copy bytes, and for nothing else.
pub struct Log {
    pub(super) history: LogHistory,
    /// See [`followed_from`](Log::followed_from); 0: none.
    pub(super) followed: AtomicU64,
    pub(super) positions: Arc<Positions>,
    output: Arc<LogOutput>,
    load: Arc<SyncLoad>,
    pub(super) appender: Appender,
    commit: GroupCommit,
    landing: Landing,
    reader: LogReader,
}

impl Log {
    /// Opens a log behind the end of its `history`, which replay found. Writes nothing.
    ///
    /// Before anything is appended, a checkpoint with the log's
    /// [`checkpoint_record`](Log::checkpoint_record) must be durable: only it tells a later replay to
    /// believe in what this run writes.
    ///
    /// # Errors
    /// `OutOfSpace` if no segment can be had; `InvalidArgument` if its mirror lacks some of it.
    pub fn open(home: LogHome, mut history: LogHistory, options: LogOptions) -> Result<Self> {
        check_mirror(&home, &history)?;
        let resume = Resume::at(history.resume(home.incarnation));
        let table = SegmentTable::new(&history.segments);
        let reserved = std::mem::take(&mut history.reserved);
        let supply = Supply::new(&home, resume.next_sequence(), reserved);
        let buffers = Buffers::open(
            options.buffers_max.max(2),
            options.backing,
            home.elsewhere(),
            |buffer| resume.open(&home, &table, &supply, buffer),
        )?;
        Ok(Self::new(
            home,
            history,
            &options,
            (resume, supply),
            (table, buffers),
            (Positions::new(resume.lsn), Poison::default()),
        ))
    }

    /// The parts, each with those that it works on.
    pub(super) fn new(
        home: LogHome,
        history: LogHistory,
        options: &LogOptions,
        (resume, supply): (Resume, Supply),
        (table, buffers): (SegmentTable, Buffers),
        (positions, poison): (Positions, Poison),
    ) -> Self {
        let (table, buffers) = (Arc::new(table), Arc::new(buffers));
        let (positions, poison, load) = (Arc::new(positions), Arc::new(poison), Arc::default());
        let framing = Framing::new(&home, Arc::clone(&positions), Arc::clone(&poison));
        let sources = Sources {
            buffers: Arc::clone(&buffers),
            positions: Arc::clone(&positions),
            poison: Arc::clone(&poison),
            framing: framing.clone(),
            load: Arc::clone(&load),
        };
        let output = Arc::new(output(&home, resume, sources, options));
        let parts = RollParts {
            home: home.clone(),
            table: Arc::clone(&table),
            buffers: Arc::clone(&buffers),
            positions: Arc::clone(&positions),
            poison: Arc::clone(&poison),
            framing: framing.clone(),
            output: Arc::clone(&output),
            load: Arc::clone(&load),
        };
        let appender = Appender {
            buffers: Arc::clone(&buffers),
            framing,
            output: Arc::clone(&output),
            poison: Arc::clone(&poison),
            roller: Roller::new(supply, parts),
        };
        let commit = GroupCommit::new(
            &home,
            (Arc::clone(&buffers), Arc::clone(&positions)),
            (Arc::clone(&output), Arc::clone(&load)),
            Waiters::new(Arc::clone(&positions), poison),
        );
        let landing = Landing::new(home.elsewhere(), Arc::clone(&buffers), resume.lsn);
        let reader = LogReader {
            home,
            table,
            buffers,
            verifies_every_read: options.verifies_every_read,
        };
        Self {
            followed: AtomicU64::new(history.followed_from.map_or(0, |from| from.0)),
            history,
            positions,
            output,
            load,
            appender,
            commit,
            landing,
            reader,
        }
    }

    /// Behind the last record, or the last that is being appended.
    pub fn tail(&self) -> Lsn {
        self.reader.buffers.tail()
    }

    /// Everything before this is on the device, but perhaps not durable.
    pub fn written(&self) -> Lsn {
        self.positions.written()
    }

    /// Everything before this is durable.
    pub fn durable(&self) -> Lsn {
        self.positions.durable()
    }

    /// How far the log is durable as checkpoints, headers and pads tell it: a replay that finds
    /// something else before it calls that damage. The border of a fragment. [`durable`](Self::durable) may
    /// lie within a record whose rest was written later and may be lost in a crash.
    pub fn claim(&self) -> Lsn {
        self.positions.claim()
    }

    /// Start of the oldest unit that the mirror has not landed as a whole; the tail if there is none. Never falls. Without
    /// a mirror: the tail.
    pub fn unlanded_from(&self) -> Lsn {
        self.landing.unlanded_from()
    }

    /// The run of the store that this log belongs to.
    pub fn incarnation(&self) -> Incarnation {
        self.reader.home.incarnation
    }

    /// What it stands on.
    pub(super) fn home(&self) -> &LogHome {
        &self.reader.home
    }

    /// Reads it.
    #[inline]
    pub fn reader(&self) -> &LogReader {
        &self.reader
    }

    /// Appends `unit`: after a crash either all of its records are replayed or none. Tells the place of
    /// each in order, and returns the LSN behind the last: `sync` up to there makes the unit durable.
    /// The records are readable at once. An empty unit does nothing.
    ///
    /// Takes no lock unless a segment is full. Waits if the device falls behind so far that the buffers are nearly
    /// full.
    ///
    /// # Errors
    /// `InvalidArgument` for a key or value that is too long. `OutOfSpace` if the volume has no room;
    /// nothing was written, and later calls try again. `Poisoned` after a failed write or flush.
    #[inline]
    pub fn append(&self, unit: &[NewRecord<'_>], placed: impl FnMut(Place)) -> Result<Lsn> {
        self.appender.append(unit, placed)
    }

    /// Appends one record; see [`Self::append`].
    #[inline]
    pub fn append_one(&self, record: &NewRecord<'_>) -> Result<(Place, Lsn)> {
        let mut place = Place {
            lsn: Lsn(0),
            offset: Default::default(),
        };
        let end = self.append(std::slice::from_ref(record), |found| place = found)?;
        Ok((place, end))
    }

    /// Makes everything before `upto` durable: a position that [`append`](Log::append) returned. Costs
    /// one flush, shared with all that wait at the same time; the calling thread may do it for all.
    ///
    /// # Errors
    /// `Poisoned` if a write or the flush fails, or one did before.
    pub fn sync(&self, upto: Lsn) -> Result<()> {
        self.commit.sync(upto)
    }

    /// A writer will wait for `upto`: the next flush covers it.
    pub fn ask(&self, upto: Lsn) {
        self.commit.ask(upto);
    }

    /// A writer is about to append what it will wait for.
    pub fn expect_wait(&self) {
        self.load.waits(Instant::now());
    }

    /// Whether everything before the position that `wait` was made for is durable; if not, the task is
    /// woken when it is. The flusher makes it so, or a thread that syncs; without a flusher this call does,
    /// and blocks for as long as a flush takes.
    ///
    /// # Errors
    /// As [`sync`](Log::sync); `Closed` if the log was closed before it was durable.
    pub fn poll_durable(
        &self,
        wait: &mut DurableWait,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        wait.poll(&self.commit, context)
    }

    /// Waits until tasks need a flush and no thread leads one, and leads it: the body of the flusher.
    /// Between [`begin_serving`](Self::begin_serving) and [`end_serving`](Self::end_serving).
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn serve(&self) -> Result<()> {
        self.commit.serve()
    }

    /// Tasks that wait for a flush are served from now on, by a thread that calls
    /// [`serve`](Log::serve) over and over.
    pub fn begin_serving(&self) {
        self.commit.waiters().set_served(true);
    }

    /// No thread serves tasks any more.
    pub fn end_serving(&self) {
        self.commit.waiters().set_served(false);
    }

    /// Ends a [`serve`](Log::serve) that waits: its thread can look whether to go on.
    pub fn wake_flusher(&self) {
        self.commit.waiters().flusher().call();
    }

    /// Nothing becomes durable any more, and all that wait are told; a flush under way is waited for.
    pub fn close(&self) {
        self.commit.waiters().close();
        self.positions.tell();
    }

    /// Nothing is written any more, now: all that wait are told `Closed`. Calls of the device and of the mirror that are
    /// under way are waited for. The device holds then what it would after a crash.
    pub fn abandon(&self) {
        self.appender.poison.close();
        _ = self.output.write_out().stop(&closed());
        self.close();
    }

    /// What the mirror has landed has grown: wakes the threads that wait for it.
    pub fn mirror_landed(&self) {
        self.output.write_out().mirror_landed();
    }

    /// Writes everything before `upto` to the device: it survives the end of the process, but not yet
    /// that of the machine.
    ///
    /// # Errors
    /// `Poisoned` if the write fails, or one did before.
    pub fn write_out(&self, upto: Lsn) -> Result<()> {
        self.output.write_before(upto)
    }

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
        self.appender.poison.check()?;
        self.appender.roller.reserve_ahead();
        self.output.step(now)
    }

    /// Counts a thread that calls [`write_out_step`](Self::write_out_step) over and over, until
    /// [`end_writing`](Self::end_writing): appenders leave the writing to it.
    pub fn begin_writing(&self) {
        self.output.begin_writing();
    }

    /// See [`begin_writing`](Self::begin_writing).
    pub fn end_writing(&self) {
        self.output.end_writing();
    }

    /// Blocks until there may be work for [`write_out_step`](Self::write_out_step), at most half of
    /// the age after which records are written anyway.
    pub fn wait_for_work(&self) {
        self.output.wait_for_work();
    }

    /// Ends a [`wait_for_work`](Self::wait_for_work): the thread can look whether to go on.
    pub fn wake_writer(&self) {
        self.output.wake();
    }

    /// Bytes of zeroes that were written ahead of records.
    pub fn zeroed_bytes(&self) -> u64 {
        self.output.write_out().zeroed_bytes()
    }

    /// Prepared segments that the log could use at `now`.
    pub fn segment_demand(&self, now: Instant) -> SegmentDemand {
        self.load.demand(now)
    }

    /// Blocks until [`segment_demand`](Self::segment_demand) may have changed, or until `patience` is over.
    pub fn wait_for_demand(&self, patience: Duration) {
        self.load.wakeup().wait_for(patience);
    }

    /// Ends a [`wait_for_demand`](Self::wait_for_demand).
    pub fn wake_preparer(&self) {
        self.load.wakeup().call();
    }
}

/// What this run tells of the log before it is claimed at once: all members must have it.
fn check_mirror(home: &LogHome, history: &LogHistory) -> Result<()> {
    let (durable, end) = (home.elsewhere().durable(), history.end);
    match durable >= end {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the members of the group have the log up to {durable} only, and it ends at {end}"
        ))),
    }
}

/// Writes behind `resume`.
fn output(home: &LogHome, resume: Resume, sources: Sources, options: &LogOptions) -> LogOutput {
    let write_out = WriteOut::new(
        home,
        Arc::clone(&sources.buffers),
        Arc::clone(&sources.positions),
        Arc::clone(&sources.poison),
        Calls::new(resume.sequence, resume.written_bytes()),
    );
    LogOutput::new(write_out, sources, options)
}

#[cfg(test)]
impl Log {
    pub(super) fn commit(&self) -> &GroupCommit {
        &self.commit
    }

    pub(super) fn write_ready(&self, least_bytes: u32) -> Result<bool> {
        self.output.write_out().write_ready(least_bytes, Lsn::MAX)
    }

    pub(super) fn pad_to_block(&self, upto: Lsn) -> Lsn {
        self.output.pad_to_block(upto)
    }

    pub(super) fn positions(&self) -> Arc<Positions> {
        self.output.positions()
    }

    #[cfg(shuttle)]
    pub(super) fn wait_for_mirror(&self, position: Lsn) -> Result<()> {
        self.output.write_out().wait_for_mirror(position)
    }

    pub(super) fn log_framing(&self) -> &Framing {
        &self.appender.framing
    }

    pub(super) fn roller(&self) -> &Roller {
        &self.appender.roller
    }
}
