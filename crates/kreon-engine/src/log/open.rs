//! The open log.

use crate::sync::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};
use arc_swap::ArcSwap;
use kreon_base::{Error, ErrorKind, Incarnation, LogId, Lsn, Result, SegmentId};
use kreon_device::{Backing, Device};
use kreon_format::{LogRecord, OpenSegment, StoreId, place_of};

use super::background::Background;
use super::buffers::{Buffered, Buffers};
use super::cut::{PAYLOAD_START, SEGMENT};
use super::group_commit::GroupCommit;
use super::history::LogHistory;
use super::poison::Poison;
use super::roll::Roller;
use super::segments::SegmentTable;
use super::write_out::WriteOut;
use crate::volume::Purpose;

/// A segment that a log has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenSegment {
    /// Which.
    pub id: SegmentId,
    /// All of it was written since it was backed. Only a hint: a wrong one makes flushes slower.
    pub was_written: bool,
}

/// Where a log gets its segments from.
pub trait LogSpace: Send + Sync {
    /// Takes `count` segments that will be the numbers from `first_sequence` on of `log`: all or none.
    /// What [`back`](Self::back) has allowed can be written without running out of space.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed.
    fn allocate_segments(
        &self,
        log: LogId,
        first_sequence: u64,
        count: usize,
        purpose: Purpose,
    ) -> Result<Vec<TakenSegment>>;

    /// Makes sure that `segment` may be written up to the second position of `range`; it might up to the first. Returns
    /// up to where it may now.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed.
    fn back(&self, segment: SegmentId, range: (u32, u32), purpose: Purpose) -> Result<u32> {
        let _ = (segment, range, purpose);
        Ok(SEGMENT)
    }

    /// Gives the blocks of a segment back that was not written; it stays the log's.
    ///
    /// # Errors
    /// `Corruption`: there is no such segment.
    fn unback(&self, segment: SegmentId) -> Result<()> {
        let _ = segment;
        Ok(())
    }
}

/// What a log stands on.
#[derive(Clone)]
pub struct LogHome {
    /// The device under the volume.
    pub device: Arc<dyn Device>,
    /// Gives segments.
    pub space: Arc<dyn LogSpace>,
    /// The store, in every checksum.
    pub store: StoreId,
    /// Number of the log.
    pub log: LogId,
    /// This run of the store.
    pub incarnation: Incarnation,
}

/// Settings of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Most segments in memory, 2 MiB each; 2 at the least.
    pub buffers_max: usize,
    /// Records that are older than this are written to the device by
    /// [`write_out_step`](Log::write_out_step), so that a killed process loses little.
    pub age_max: Duration,
    /// When a segment in memory becomes real.
    pub backing: Backing,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            buffers_max: 8,
            age_max: Duration::from_millis(100),
            backing: Backing::Ahead,
        }
    }
}

/// A log that takes records: the append-only home of keys and values, and the redo log.
///
/// Locks, in the order in which they are taken: the roll lock, the supplier's, the roller's, the write-out lock, the
/// pool of buffers. Nobody holds a reservation that is not committed while waiting for any of them; so who
/// waits for the gapless committed prefix waits for threads that copy bytes, and for nothing else.
pub struct Log {
    pub(super) home: LogHome,
    pub(super) options: LogOptions,
    /// Blocks of this size are the unit of writing; see [`Device::block_bytes`].
    pub(super) block_bytes: u32,
    history: LogHistory,
    pub(super) table: SegmentTable,
    pub(super) buffers: Buffers,
    /// Takes the records.
    pub(super) current: ArcSwap<Buffered>,
    /// The roll lock: one thread at a time opens segments.
    pub(super) rolling: Mutex<()>,
    /// Held while segments are being reserved.
    pub(super) supplier: Mutex<()>,
    pub(super) roller: Mutex<Roller>,
    /// There was a roll since segments were last reserved ahead.
    pub(super) rolled: AtomicBool,
    pub(super) writer: Mutex<WriteOut>,
    /// A call that writes out has landed, or none will any more.
    pub(super) landed: Condvar,
    /// See [`Log::written`].
    pub(super) written: AtomicU64,
    pub(super) commit: GroupCommit,
    pub(super) background: Background,
    pub(super) poison: Poison,
}

impl Log {
    /// Opens a log behind the end of its `history`, which replay found. Writes nothing.
    ///
    /// Before anything is appended, a checkpoint with the log's
    /// [`checkpoint_record`](Log::checkpoint_record) must be durable: only it tells a later replay to
    /// believe in what this run writes.
    ///
    /// # Errors
    /// `OutOfSpace` if no segment can be had.
    pub fn open(home: LogHome, mut history: LogHistory, options: LogOptions) -> Result<Self> {
        let resume = history.resume(home.incarnation);
        let (sequence, within) = place_of(resume);
        let is_fresh = within == PAYLOAD_START;
        let table = SegmentTable::new(&history.segments);
        let reserved = std::mem::take(&mut history.reserved).into_iter();
        let reserved = reserved.map(|id| TakenSegment {
            id,
            was_written: false,
        });
        let mut roller = Roller::new(sequence + u64::from(!is_fresh), reserved.collect());
        let buffers = Buffers::new(options.buffers_max.max(2), options.backing);
        let buffer = buffers.try_take().unwrap_or_else(|| buffers.make());
        let (first, out) = if is_fresh {
            roller.reserve(&home, 2, Purpose::Upkeep)?;
            let upcoming = roller.upcoming()?;
            let range = (PAYLOAD_START, PAYLOAD_START);
            let limit = home.space.back(upcoming.taken.id, range, Purpose::Upkeep)?;
            buffer.set_limit(limit);
            let first = roller.open_next(&home, &table, upcoming, buffer, resume);
            (first, WriteOut::new(sequence, 0))
        } else {
            let Some(segment) = table.by_sequence(sequence) else {
                return Err(Error::corruption(format!(
                    "{} ends in its segment number {sequence}, which is unknown",
                    home.log
                )));
            };
            let limit = home.space.back(segment, (within, within), Purpose::Upkeep);
            let limit = match limit {
                // Only what frees space has to be written on a full volume, and it asks again.
                Err(error) if error.kind() == ErrorKind::OutOfSpace => within,
                limit => limit?,
            };
            buffer.set_limit(limit);
            let first = roller.resume(&home, segment, sequence, buffer, within)?;
            (first, WriteOut::new(sequence, within))
        };
        let first = Arc::new(first);
        buffers.publish(Arc::clone(&first));
        Ok(Self {
            block_bytes: home.device.block_bytes(),
            home,
            options,
            history,
            table,
            buffers,
            current: ArcSwap::new(first),
            roller: Mutex::new(roller),
            rolling: Mutex::default(),
            supplier: Mutex::default(),
            rolled: AtomicBool::new(false),
            writer: Mutex::new(out),
            landed: Condvar::new(),
            written: AtomicU64::new(resume.0),
            commit: GroupCommit::new(resume),
            background: Background::default(),
            poison: Poison::default(),
        })
    }

    /// Behind the last record, or the last that is being appended.
    pub fn tail(&self) -> Lsn {
        self.current.load().tail()
    }

    /// Everything before this is on the device, but perhaps not durable.
    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// Everything before this is durable.
    pub fn durable(&self) -> Lsn {
        self.commit.durable()
    }

    /// How far the log is durable as checkpoints, headers and pads tell it: a replay that finds
    /// something else before it calls that damage. The border of a fragment. [`durable`](Self::durable) may
    /// lie within a record whose rest was written later, and that rest a crash may take.
    pub(crate) fn claim(&self) -> Lsn {
        self.commit.claim()
    }

    /// The run of the store that this log belongs to.
    pub fn incarnation(&self) -> Incarnation {
        self.home.incarnation
    }

    /// What a checkpoint records, with replay to start at `marker`: the border of a record, not behind
    /// the tail. Segments that it names were taken from the [`LogSpace`] before the call.
    pub fn checkpoint_record(&self, marker: Lsn) -> LogRecord {
        let durable = self.claim();
        let (incarnation, resumes) = self.history.runs_from(marker);
        let current = self.current.load();
        LogRecord {
            id: self.home.log,
            marker,
            durable,
            incarnation,
            resumes,
            open: Some(OpenSegment {
                segment: current.segment,
                sequence: current.sequence,
            }),
            next: Some(current.next),
            image: Vec::new(),
        }
    }

    /// Takes a segment of moved records for one of the log's: its records are read by their offsets as any others.
    pub fn adopt(&self, segment: SegmentId, sequence: u64) {
        self.table.insert(segment, sequence);
    }

    /// The segments that hold records, with their sequences, in the order of the log; the last one is
    /// open.
    pub fn segments(&self) -> Vec<(SegmentId, u64)> {
        self.table.list()
    }

    /// Forgets a segment that nothing points at any more and that replay no longer needs. The open one
    /// stays.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not a segment of the log, or not wholly on the device.
    pub fn release(&self, segment: SegmentId) -> Result<()> {
        let Some(sequence) = self.table.sequence(segment) else {
            return Err(Error::invalid(format!("{segment} is not of the log")));
        };
        let in_memory = self.buffers.by_sequence(sequence);
        let in_use = in_memory.is_some_and(|buffered| !buffered.is_complete());
        if in_use || self.current.load().sequence == sequence {
            return Err(Error::invalid(format!(
                "{segment} of the log is still being written"
            )));
        }
        // Its buffer stays in the chain, which must have no gap; nobody looks for that sequence any more.
        self.table.remove(segment);
        Ok(())
    }
}
