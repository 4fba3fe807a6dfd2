//! Opening the next segment.
//!
//! The id of the segment behind the next is reserved before the next is opened, and stands in its
//! header: so recovery can follow the log past the last checkpoint, and a roll that finds no space
//! fails before it changed anything.

use crate::sync::{AtomicBool, MutexGuard, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use kreon_base::{Error, Lsn, Result, SegmentId};
use kreon_device::{AppendBuffer, BLOCK_BYTES_MAX, Reservation, Reserve};
use kreon_format::{LogSegmentHeader, encode_pad};

use super::buffers::Buffered;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::open::{Log, LogHome, TakenSegment};
use super::pause::Pause;
use super::segments::SegmentTable;
use crate::volume::Purpose;

/// Segments that are reserved in the background: as many as writers may need while one call writes out.
const SEGMENTS_AHEAD: usize = 4;

/// The segments that follow. Its lock is held for moments only.
pub(super) struct Roller {
    /// Sequence of the first reserved segment.
    next_sequence: u64,
    reserved: VecDeque<TakenSegment>,
}

impl Roller {
    pub fn new(next_sequence: u64, reserved: Vec<TakenSegment>) -> Self {
        Self {
            next_sequence,
            reserved: reserved.into(),
        }
    }

    /// Sequence behind those that are reserved, and how many of `count` are missing.
    fn missing(&self, count: usize) -> (u64, usize) {
        let reserved = self.reserved.len();
        let behind = self.next_sequence + reserved as u64;
        (behind, count.saturating_sub(reserved))
    }

    /// Makes sure that `count` segments are reserved.
    ///
    /// # Errors
    /// `OutOfSpace`, with no segment taken: those of a long unit that failed are there for others.
    pub fn reserve(&mut self, home: &LogHome, count: usize, purpose: Purpose) -> Result<()> {
        let (sequence, missing) = self.missing(count);
        if missing > 0 {
            let taken = home
                .space
                .allocate_segments(home.log, sequence, missing, purpose)?;
            self.reserved.extend(taken);
        }
        Ok(())
    }

    /// The next segment and the one behind it.
    pub fn upcoming(&self) -> Result<Upcoming> {
        match (self.reserved.front(), self.reserved.get(1)) {
            (Some(&taken), Some(next)) => Ok(Upcoming {
                taken,
                next: next.id,
            }),
            _ => Err(Error::invalid("no segment is reserved")),
        }
    }

    /// Opens the next segment in `buffer`, with its header; `durable` goes into that.
    pub fn open_next(
        &mut self,
        home: &LogHome,
        table: &SegmentTable,
        Upcoming { taken, next }: Upcoming,
        buffer: AppendBuffer,
        durable: Lsn,
    ) -> Buffered {
        let (sequence, segment) = (self.next_sequence, taken.id);
        let header = LogSegmentHeader {
            store: home.store,
            log: home.log,
            segment,
            sequence,
            incarnation: home.incarnation,
            previous: table.by_sequence(sequence.wrapping_sub(1)),
            next: Some(next),
            durable,
        };
        fill_start(&buffer, PAYLOAD_START, header.encode().as_slice());
        self.reserved.pop_front();
        self.next_sequence += 1;
        table.insert(segment, sequence);
        let complete = AtomicBool::new(false);
        Buffered {
            segment,
            sequence,
            next,
            buffer,
            readable_from: PAYLOAD_START,
            was_written: taken.was_written,
            complete,
        }
    }

    /// Takes up a segment that an earlier run wrote up to a page border before `within`.
    pub fn resume(
        &mut self,
        home: &LogHome,
        segment: SegmentId,
        sequence: u64,
        buffer: AppendBuffer,
        within: u32,
    ) -> Result<Buffered> {
        self.reserve(home, 1, Purpose::Upkeep)?;
        let Some(&next) = self.reserved.front() else {
            return Err(Error::invalid("no segment is reserved"));
        };
        fill_start(&buffer, within, &[]);
        let complete = AtomicBool::new(false);
        Ok(Buffered {
            segment,
            sequence,
            next: next.id,
            buffer,
            readable_from: within,
            was_written: false,
            complete,
        })
    }
}

/// The next two segments.
#[derive(Clone, Copy)]
pub(super) struct Upcoming {
    pub taken: TakenSegment,
    next: SegmentId,
}

/// Takes the first `end` bytes of an empty buffer and puts `bytes` there, and zeroes behind them.
fn fill_start(buffer: &AppendBuffer, end: u32, bytes: &[u8]) {
    if let Reserve::Reserved(mut start) = buffer.reserve(end) {
        let filled = bytes.len().min(start.len());
        let (front, rest) = start.split_at_mut(filled);
        front.copy_from_slice(bytes.get(..filled).unwrap_or_default());
        rest.fill(0);
        start.commit();
    }
}

impl Log {
    /// Opens another segment because the current one has no room for `bytes`, unless somebody else did
    /// while this thread waited.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed: smaller records may still go into the current segment, and
    /// the next call tries again.
    pub(super) fn roll_for(&self, bytes: usize, purpose: Purpose) -> Result<()> {
        let _rolling = self.rolling.lock();
        self.poison.check()?;
        let current = self.current.load_full();
        if bytes <= current.rest_bytes() as usize {
            return Ok(());
        }
        if self.extend(&current, bytes, purpose)? {
            return Ok(());
        }
        self.supply(2, purpose)?;
        let limit = self.back_next(bytes, purpose)?;
        let next = self.open_segment()?;
        next.buffer.set_limit(limit);
        if let Reserve::Reserved(rest) = current.buffer.reserve_rest() {
            self.pad(&current, rest);
        }
        self.publish(Arc::new(next));
        Ok(())
    }

    /// Asks for more room in the current segment; whether `bytes` fit then. If they do not, all of it may be written.
    /// The caller holds the roll lock.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed.
    pub(super) fn extend(
        &self,
        current: &Buffered,
        bytes: usize,
        purpose: Purpose,
    ) -> Result<bool> {
        let bytes = u32::try_from(bytes).unwrap_or(SEGMENT);
        // Who pads the end for a flush may take what was asked for.
        while current.rest_bytes() < bytes {
            let limit = current.buffer.limit_bytes();
            if limit == SEGMENT {
                return Ok(false);
            }
            let needed = current.buffer.reserved_bytes().saturating_add(bytes);
            let range = (limit, needed.min(SEGMENT));
            let limit = self.home.space.back(current.segment, range, purpose)?;
            current.buffer.set_limit(limit);
        }
        Ok(true)
    }

    /// Makes sure that the front of the next segment can be written, `bytes` behind its header; up to where.
    fn back_next(&self, bytes: usize, purpose: Purpose) -> Result<u32> {
        let next = self.roller.lock().upcoming()?.taken.id;
        let range = (PAYLOAD_START, PAYLOAD_START + bytes as u32);
        self.home.space.back(next, range, purpose)
    }

    /// Makes sure that the next `count` segments can be written as a whole.
    pub(super) fn back_all(&self, count: usize, purpose: Purpose) -> Result<()> {
        let reserved = self.roller.lock();
        let reserved = reserved.reserved.iter().take(count).map(|taken| taken.id);
        let reserved: Vec<_> = reserved.collect();
        for segment in reserved {
            let range = (PAYLOAD_START, SEGMENT);
            self.home.space.back(segment, range, purpose)?;
        }
        Ok(())
    }

    /// From now on room in the current segment is asked for anew. No record may be appended meanwhile, but by those that
    /// hold the roll lock.
    pub fn restrain(&self) {
        if let Some(_rolling) = self.rolling.try_lock() {
            let current = self.current.load();
            let used = current.buffer.reserved_bytes();
            let limit = used.next_multiple_of(BLOCK_BYTES_MAX);
            current
                .buffer
                .set_limit(limit.min(current.buffer.limit_bytes()));
        }
    }

    /// Bytes that may be appended before more room is asked for.
    pub fn granted_bytes(&self) -> u64 {
        u64::from(self.current.load().rest_bytes())
    }

    /// Gives up the segments that were reserved ahead, but for the next one, which gives up its blocks. Returns them.
    ///
    /// # Errors
    /// `Corruption`: the volume does not know the next one.
    pub fn give_up_ahead(&self) -> Result<Vec<SegmentId>> {
        let _rolling = self.rolling.lock();
        let _supplier = self.supplier.lock();
        let (next, ahead) = {
            let mut roller = self.roller.lock();
            let keep = roller.reserved.len().min(1);
            let ahead: Vec<TakenSegment> = roller.reserved.split_off(keep).into();
            (roller.reserved.front().map(|next| next.id), ahead)
        };
        // Under the roll lock: nobody writes it meanwhile.
        next.map_or(Ok(()), |next| self.home.space.unback(next))?;
        Ok(ahead.into_iter().map(|taken| taken.id).collect())
    }

    /// Makes sure that `count` segments are reserved. Backing one may take milliseconds: no lock that the
    /// threads that write out need is held.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed.
    pub(super) fn supply(&self, count: usize, purpose: Purpose) -> Result<()> {
        if self.roller.lock().missing(count).1 == 0 {
            return Ok(());
        }
        self.supply_as(&self.supplier.lock(), count, purpose)
    }

    /// One at a time: what follows the reserved segments changes nowhere else.
    fn supply_as(&self, _: &MutexGuard<'_, ()>, count: usize, purpose: Purpose) -> Result<()> {
        let (sequence, missing) = self.roller.lock().missing(count);
        if missing > 0 {
            let (space, log) = (&self.home.space, self.home.log);
            let taken = space.allocate_segments(log, sequence, missing, purpose)?;
            self.roller.lock().reserved.extend(taken);
        }
        Ok(())
    }

    /// Reserves segments ahead of need, if there was a roll since: then no writer waits for them. A volume
    /// that has none left says so to the writer that needs one.
    pub(super) fn supply_ahead(&self) {
        if self.rolled.load(Ordering::Acquire)
            && let Some(supplier) = self.supplier.try_lock()
            && self.rolled.swap(false, Ordering::AcqRel)
        {
            let _ = self.supply_as(&supplier, SEGMENTS_AHEAD, Purpose::Put);
            self.buffers.make_ahead();
        }
    }

    /// Opens the next segment, with a buffer that may have to be waited for. Nobody else sees it yet. The caller holds
    /// the roll lock; it and the segment behind it are reserved.
    pub(super) fn open_segment(&self) -> Result<Buffered> {
        let mut pause = Pause::default();
        loop {
            self.poison.check()?;
            if let Some(buffer) = self.buffers.try_take() {
                let mut roller = self.roller.lock();
                let upcoming = roller.upcoming()?;
                let claim = self.claim();
                return Ok(roller.open_next(&self.home, &self.table, upcoming, buffer, claim));
            }
            self.make_way(&mut pause)?;
        }
    }

    /// Makes `next` the current segment. The one before must have no room left.
    pub(super) fn publish(&self, next: Arc<Buffered>) {
        self.buffers.publish(Arc::clone(&next));
        self.current.store(next);
        self.rolled.store(true, Ordering::Release);
        self.commit.steady.rolled(Instant::now());
        self.background.wake();
    }

    /// Fills `room` with a pad. It tells how far the log is durable.
    pub(super) fn pad(&self, buffered: &Buffered, mut room: Reservation<'_>) {
        let (seal, offset) = (self.seal(buffered.sequence), buffered.offset(room.at()));
        let durable = self.claim();
        if let Err(error) = encode_pad(&mut room, &seal, offset, self.mark(), durable) {
            // Cannot be: every reservation is a multiple of 8 bytes. The hole would stop the log.
            self.poison.set(&error);
        }
        room.commit();
    }
}
