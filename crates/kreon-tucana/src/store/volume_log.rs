//! The log of a store, in segments of its volume.
//!
//! Records are appended to the segment in memory without a lock, and without a wait for the device: the next segment is
//! reserved and backed before the current one is full, and a full one is written out later. A record is read in memory while its
//! segment is there, then through the mapping. Every opening of the store begins with a segment of its own, so what an earlier
//! one wrote never changes.
//!
//! The header of each segment names the one behind it, so that a replay finds all that was written since the last commit.
//! Records that collection copies are in a log of their own: they are older than all that is being written, and a replay
//! does not read them.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kreon_base::{Error, ErrorKind, Lsn, Result, SEGMENT_PAGES, SegmentId, planted};
use kreon_format::{LOG_HEADER_BYTES, MOVED_SEQUENCE_MIN, OpenSegment, lsn_at};
use kreon_mapping::Fetched;
use kreon_sync::{
    AtomicBool, AtomicU64, AtomicUsize, Mutex,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use kreon_volume::Purpose;

use super::call::Call;
use super::home::{Home, LOG_PRIORITY, out_of_space};
use super::log_buffer::{LogBuffer, SEGMENT};
use super::log_mark::LogMark;
use super::log_opening::{open, open_first, open_moved};
use super::log_reads::LogReads;
use super::log_record::bytes_of;
use super::segment_table::SegmentTable;
use crate::format::Location;
use crate::log::{Placed, Record, RecordLog};

/// When no more is left of a segment, the next one is made ready.
const AHEAD_BYTES: u32 = SEGMENT / 2;

/// Each opening numbers its segments from its own number times two to this power on: as many segments are 512 GiB.
const OPENING_BITS: u32 = 18;

/// Both logs.
pub(crate) struct VolumeLog {
    home: Home,
    pub(super) table: SegmentTable,
    /// Takes records.
    current: ArcSwap<LogBuffer>,
    ahead: Mutex<Ahead>,
    /// Whether one is ready, for a look without the lock. Changes while `ahead` is locked: else it could tell for ever of one that
    /// another thread has taken.
    is_ready: AtomicBool,
    full_count: AtomicUsize,
    /// Held while a segment is made ready.
    preparing: Mutex<()>,
    /// Work for the thread that writes full segments, if there is one, and makes the next one ready.
    pub(super) work: Call,
    is_threaded: AtomicBool,
    /// There was no space when the thread made the last one ready: writers do, until one is.
    is_refused: AtomicBool,
    /// Held while segments are written out. No record waits for it while it is being copied.
    turn: Mutex<()>,
    /// Takes records that are moved, if there is one.
    moved: Mutex<Option<Arc<LogBuffer>>>,
    /// Number of the segment that takes moved records, now or next.
    moved_from: AtomicU64,
    /// Everything before this LSN is durable.
    durable: AtomicU64,
    /// Zeroes that were written behind records.
    zeroed_bytes: AtomicU64,
}

/// Segments around the current one. The current one changes while this is locked.
#[derive(Default)]
struct Ahead {
    /// The next one.
    ready: Option<Arc<LogBuffer>>,
    /// Those that are full and not written out, the oldest first.
    full: VecDeque<Arc<LogBuffer>>,
}

/// What an opening knows of the logs.
pub(super) struct KnownLog {
    /// Segments with their numbers.
    pub segments: Vec<(SegmentId, u64)>,
    pub moved: Vec<(SegmentId, u64)>,
    /// Segments that the log before had reserved and never written, in their order: this one begins with them.
    pub unwritten: Vec<SegmentId>,
    /// Numbers up to this one are not used again.
    pub last: u64,
}

impl VolumeLog {
    /// The log goes on in a new segment behind these.
    ///
    /// # Errors
    /// `OutOfSpace` without two segments.
    pub(super) fn new(home: Home, known: &KnownLog) -> Result<Self> {
        let table = SegmentTable::default();
        for (segment, sequence) in known.segments.iter().chain(&known.moved) {
            table.add_written(*segment, *sequence);
        }
        // An opening that was lost has perhaps used the numbers behind the last ones that are known, at the same places of the
        // device: its records must not verify as those of this one.
        let own = home.incarnation.0 << OPENING_BITS;
        let last_moved = known.moved.iter().map(|(_, sequence)| *sequence).max();
        let moved_from = last_moved.map_or(0, |last| last + 1);
        let sequence = (known.last + 1).max(own);
        let first = open_first(&home, &known.unwritten, sequence)?;
        table.add(&first);
        Ok(Self {
            home,
            table,
            current: ArcSwap::new(first),
            ahead: Mutex::default(),
            is_ready: AtomicBool::new(false),
            full_count: AtomicUsize::new(0),
            preparing: Mutex::new(()),
            work: Call::default(),
            is_threaded: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            turn: Mutex::new(()),
            moved: Mutex::new(None),
            moved_from: AtomicU64::new(moved_from.max(MOVED_SEQUENCE_MIN + own)),
            durable: AtomicU64::new(0),
            zeroed_bytes: AtomicU64::new(0),
        })
    }

    /// Where the next record will be.
    pub(super) fn tail(&self) -> Lsn {
        self.current.load().tail()
    }

    /// The position at its end, if nobody appends.
    pub(super) fn mark(&self) -> LogMark {
        let current = self.current.load();
        LogMark {
            marker: current.tail(),
            open: OpenSegment {
                segment: current.segment,
                sequence: current.sequence,
            },
            incarnation: self.home.incarnation,
            moved_from: self.moved_from.load(Acquire),
        }
    }

    /// Everything before `end` is durable.
    pub(super) fn set_durable(&self, end: Lsn) {
        self.durable.fetch_max(end.0, AcqRel);
    }

    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Acquire))
    }

    /// Bytes of zeroes that were written behind records, which small flushes then overwrite.
    pub(super) fn zeroed_bytes(&self) -> u64 {
        self.zeroed_bytes.load(Relaxed)
    }

    /// Full segments that are not written out.
    pub(super) fn full_count(&self) -> usize {
        self.full_count.load(Relaxed)
    }

    /// Writes full segments to the device, without a flush.
    ///
    /// # Errors
    /// Those of the device. The store takes no more writes then.
    pub(super) fn write_full(&self) -> Result<()> {
        let _turn = self.turn.lock();
        loop {
            let oldest = self.ahead.lock().full.front().cloned();
            let Some(full) = oldest else {
                return Ok(());
            };
            self.write_whole(&full)?;
            self.ahead.lock().full.pop_front();
            self.full_count.fetch_sub(1, Relaxed);
        }
    }

    /// Writes everything that was appended before the call to the device, without a flush. Returns the end of it.
    ///
    /// # Errors
    /// Those of the device. The store takes no more writes then.
    pub(super) fn write_out(&self) -> Result<Lsn> {
        self.home.poison.check()?;
        let moved = self.moved.lock().clone();
        if let Some(moved) = moved
            && let Some(end) = moved.end_block(self.block_bytes(), Lsn(0))?
        {
            self.write(&moved, end)?;
        }
        // A segment that becomes full from now on is the current one here.
        let current = {
            let _ahead = self.ahead.lock();
            self.current.load_full()
        };
        self.write_full()?;
        let _turn = self.turn.lock();
        planted!(LogBehindTree => return Ok(current.tail()));
        let end = current.end_block(self.block_bytes(), self.durable())?;
        if let Some(end) = end {
            self.write(&current, end)?;
        }
        // Without a record: where the first one will be, even if it is there by now.
        Ok(lsn_at(current.sequence, end.unwrap_or(LOG_HEADER_BYTES)))
    }

    fn block_bytes(&self) -> u32 {
        self.home.device.block_bytes()
    }

    fn write(&self, buffer: &LogBuffer, end: u32) -> Result<()> {
        // Pages of the log never change, and what was written last is read soonest.
        let mapping = &self.home.mapping;
        let keep = |first, bytes: &[u8]| mapping.admit(first, LOG_PRIORITY, bytes);
        let written = buffer.write(self.home.device.as_ref(), end, keep);
        let zeroes = self.home.poison.note(written)?;
        self.zeroed_bytes.fetch_add(zeroes.into(), Relaxed);
        Ok(())
    }

    fn write_whole(&self, full: &Arc<LogBuffer>) -> Result<()> {
        self.write(full, SEGMENT)?;
        self.table.written(full);
        Ok(())
    }

    /// Makes a segment ready behind the current one. The caller holds `preparing`.
    ///
    /// # Errors
    /// `OutOfSpace`; those of the device.
    fn prepare(&self, purpose: Purpose) -> Result<()> {
        // Without a segment that is ready the current one stays what it is.
        let current = {
            let ahead = self.ahead.lock();
            if ahead.ready.is_some() {
                return Ok(());
            }
            self.current.load_full()
        };
        let missing = || Error::invalid("a segment of the log names none behind it");
        let segment = current.next.ok_or_else(missing)?;
        let place = (segment, current.sequence + 1);
        let next = open(&self.home, place, self.durable(), purpose)?;
        self.table.add(&next);
        let mut ahead = self.ahead.lock();
        ahead.ready = Some(next);
        self.is_ready.store(true, Relaxed);
        self.is_refused.store(false, Relaxed);
        Ok(())
    }

    /// From now on a thread waits for [`work`](Self::work).
    pub(super) fn set_threaded(&self) {
        self.is_threaded.store(true, Relaxed);
    }

    /// Makes the next segment ready when the current one is half full, so that no writer waits for the blocks of the file system.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn prepare_ahead(&self) -> Result<()> {
        if self.is_ready.load(Relaxed) || self.left_bytes() >= AHEAD_BYTES {
            return Ok(());
        }
        let _turn = self.preparing.lock();
        match self.prepare(Purpose::Put) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                self.is_refused.store(true, Relaxed);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Bytes that are left for records in the current segment.
    fn left_bytes(&self) -> u32 {
        self.current.load().left_bytes()
    }

    /// Goes on in the segment behind `full`, unless another thread did. False if none is ready.
    ///
    /// # Errors
    /// None that a segment can have.
    fn roll(&self, full: &Arc<LogBuffer>) -> Result<bool> {
        let mut ahead = self.ahead.lock();
        if !Arc::ptr_eq(&self.current.load(), full) {
            return Ok(true);
        }
        let Some(next) = ahead.ready.take() else {
            return Ok(false);
        };
        // The old one takes no record after the new one took its first.
        full.end(self.durable())?;
        ahead.full.push_back(Arc::clone(full));
        self.full_count.fetch_add(1, Relaxed);
        self.is_ready.store(false, Relaxed);
        self.current.store(next);
        Ok(true)
    }

    /// Appends the copy of a record that is moved. The caller has let the tree point at all copies before.
    ///
    /// # Errors
    /// `OutOfSpace`; those of the device.
    pub(super) fn append_moved(&self, record: &Record<'_>) -> Result<Placed> {
        self.home.poison.check()?;
        let mut moved = self.moved.lock();
        loop {
            if let Some(current) = &*moved {
                if let Some(placed) = current.append(record) {
                    return Ok(placed);
                }
                current.end(Lsn(0))?;
                self.write_whole(current)?;
                self.moved_from.store(current.sequence + 1, Release);
                *moved = None;
            }
            let opened = open_moved(&self.home, self.moved_from.load(Relaxed))?;
            self.table.add(&opened);
            *moved = Some(opened);
        }
    }

    /// Nobody reaches a record of these segments any more, and they are durable as free.
    ///
    /// # Errors
    /// None that a retired segment can have.
    pub(super) fn reuse(&self, segments: &[SegmentId]) -> Result<()> {
        for segment in segments {
            self.table.remove(*segment);
            let first = segment.first_page();
            self.home.mapping.discard(first, SEGMENT_PAGES);
        }
        let mut allocator = self.home.allocator.lock();
        segments
            .iter()
            .try_for_each(|segment| allocator.reuse_segment(*segment))
    }
}

impl RecordLog for VolumeLog {
    #[inline]
    fn make_room(&self, record: &Record<'_>) -> Result<()> {
        let extent = bytes_of(record)?;
        self.home.poison.check()?;
        let left = self.left_bytes();
        if self.is_ready.load(Relaxed) || left >= extent + AHEAD_BYTES {
            return Ok(());
        }
        let is_early = left >= extent + AHEAD_BYTES / 2;
        if is_early && self.is_threaded.load(Relaxed) && !self.is_refused.load(Relaxed) {
            self.work.call();
            return Ok(());
        }
        let fits = || self.left_bytes() >= extent;
        let turn = match fits() {
            true => self.preparing.try_lock(),
            false => Some(self.preparing.lock()),
        };
        let Some(_turn) = turn else {
            return Ok(());
        };
        // A commit frees the segments that hold nothing but deletions, and needs none: these may have the last one.
        let (purpose, what) = match record.value {
            Some(_) => (Purpose::Put, "new data"),
            None => (Purpose::Maintenance, "deletions"),
        };
        match self.prepare(purpose) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => match fits() {
                // The rest of the segment is still to be had.
                true => Ok(()),
                false => Err(out_of_space(what)),
            },
            outcome => outcome,
        }
    }

    fn append(&self, record: &Record<'_>) -> Result<Option<Placed>> {
        bytes_of(record)?;
        self.home.poison.check()?;
        loop {
            let current = self.current.load();
            if let Some(placed) = current.append(record) {
                return Ok(Some(placed));
            }
            if !self.roll(&current)? {
                return Ok(None);
            }
        }
    }

    fn read<R>(&self, location: Location, use_record: impl FnOnce(Record<'_>) -> R) -> Result<R> {
        self.reads().read(location, use_record)
    }

    fn read_resident<R>(
        &self,
        location: Location,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        self.reads().read_resident(location, use_record)
    }

    fn fetch(&self, locations: impl Iterator<Item = Location>, into: &mut Fetched) {
        self.reads().fetch(locations, into);
    }

    fn read_fetched<R>(
        &self,
        location: Location,
        fetched: &Fetched,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        self.reads().read_fetched(location, fetched, use_record)
    }

    /// A moved record is older than every record that is not in the tree yet.
    fn lsn(&self, location: Location) -> Lsn {
        match self.table.sequence(location.offset.segment()) {
            Some(sequence) if sequence < MOVED_SEQUENCE_MIN => {
                lsn_at(sequence, location.offset.within_segment())
            }
            _ => Lsn(0),
        }
    }
}

impl VolumeLog {
    #[inline]
    fn reads(&self) -> LogReads<'_> {
        let (home, table) = (&self.home, &self.table);
        LogReads { home, table }
    }
}
