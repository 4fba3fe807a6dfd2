//! The segments that follow the current one.
//!
//! The id of the segment behind the next is reserved before the next is opened, and stands in its header: recovery can
//! follow the log past the last checkpoint, and a roll that finds no space fails before it has changed anything.
//!
//! Invariants:
//! - reserved segments have consecutive sequences from `next_sequence` on;
//! - segments are added only under the supplier's lock, which is held while the volume backs them (milliseconds); the lock
//!   of the list itself is held for moments only, because threads that write out need it.

use std::collections::VecDeque;
use std::sync::Arc;

use kreon_base::{Error, LogId, Result, SegmentId};
use kreon_sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use kreon_volume::Purpose;

use super::buffered::ChainLink;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::home::{LogHome, LogSpace, TakenSegment};

/// Segments that are reserved in the background: as many as writers may need while one call writes out.
const SEGMENTS_AHEAD: usize = 4;

/// Segments that are reserved for the log.
pub(super) struct Supply {
    space: Arc<dyn LogSpace>,
    log: LogId,
    /// Held while segments are being reserved.
    supplier: Mutex<()>,
    reserved: Mutex<Reserved>,
    /// There was a roll since segments were last reserved ahead.
    rolled: AtomicBool,
}

struct Reserved {
    /// Sequence of the first reserved segment.
    next_sequence: u64,
    segments: VecDeque<TakenSegment>,
}

impl Reserved {
    /// Sequence behind those that are reserved, and how many of `count` are missing.
    fn missing(&self, count: usize) -> (u64, usize) {
        let reserved = self.segments.len();
        let behind = self.next_sequence + reserved as u64;
        (behind, count.saturating_sub(reserved))
    }

    /// The next segment, and the one behind it.
    fn upcoming(&self) -> Result<ChainLink> {
        match (self.segments.front(), self.segments.get(1)) {
            (Some(taken), Some(next)) => Ok(ChainLink {
                segment: taken.id,
                sequence: self.next_sequence,
                next: next.id,
                was_written: taken.was_written,
            }),
            _ => Err(none_reserved()),
        }
    }
}

impl Supply {
    /// The segments `reserved` are the log's already; the first has the sequence `next_sequence`.
    pub fn new(home: &LogHome, next_sequence: u64, reserved: Vec<SegmentId>) -> Self {
        let taken = |id| TakenSegment {
            id,
            was_written: false,
        };
        Self {
            space: Arc::clone(&home.space),
            log: home.log,
            supplier: Mutex::default(),
            reserved: Mutex::new(Reserved {
                next_sequence,
                segments: reserved.into_iter().map(taken).collect(),
            }),
            rolled: AtomicBool::new(false),
        }
    }

    /// Makes sure that `count` segments are reserved. Backing one may take milliseconds: no lock that the
    /// threads that write out need is held.
    ///
    /// # Errors
    /// `OutOfSpace`, with nothing changed: segments reserved for a long unit that fails are there for others.
    pub fn reserve(&self, count: usize, purpose: Purpose) -> Result<()> {
        if self.reserved.lock().missing(count).1 == 0 {
            return Ok(());
        }
        self.reserve_as(&self.supplier.lock(), count, purpose)
    }

    /// One thread at a time: the end of the list changes only here.
    fn reserve_as(&self, _: &MutexGuard<'_, ()>, count: usize, purpose: Purpose) -> Result<()> {
        let (sequence, missing) = self.reserved.lock().missing(count);
        if missing > 0 {
            let (space, log) = (&self.space, self.log);
            let taken = space.allocate_segments(log, sequence, missing, purpose)?;
            let mut reserved = self.reserved.lock();
            // Rolls take from the front meanwhile: the sequence behind the last stays.
            assert_eq!(reserved.missing(0).0, sequence, "reserved by two at once");
            reserved.segments.extend(taken);
        }
        Ok(())
    }

    /// Notes a roll: segments are to be reserved ahead.
    pub fn rolled(&self) {
        self.rolled.store(true, Ordering::Release);
    }

    /// Reserves segments ahead of need, if there was a roll since: no writer waits for them then. A
    /// volume that has none left says so to the writer that needs one. `then` is called before another thread may do
    /// the same.
    pub fn reserve_ahead(&self, then: impl FnOnce()) {
        if self.rolled.load(Ordering::Acquire)
            && let Some(supplier) = self.supplier.try_lock()
            && self.rolled.swap(false, Ordering::AcqRel)
        {
            let _ = self.reserve_as(&supplier, SEGMENTS_AHEAD, Purpose::Put);
            then();
        }
    }

    /// The next segment.
    ///
    /// # Errors
    /// `InvalidArgument`: none is reserved.
    pub fn next(&self) -> Result<SegmentId> {
        let reserved = self.reserved.lock();
        let first = reserved.segments.front().map(|next| next.id);
        first.ok_or_else(none_reserved)
    }

    /// Makes sure that the front of the next segment can be written, `bytes` behind its header; up to where.
    pub fn back_next(&self, bytes: usize, purpose: Purpose) -> Result<u32> {
        let next = self.reserved.lock().upcoming()?.segment;
        let range = (PAYLOAD_START, PAYLOAD_START + bytes as u32);
        self.space.back(next, range, purpose)
    }

    /// Makes sure that the next `count` segments can be written as a whole.
    pub fn back_all(&self, count: usize, purpose: Purpose) -> Result<()> {
        let reserved = self.reserved.lock();
        let reserved = reserved.segments.iter().take(count).map(|taken| taken.id);
        let reserved: Vec<_> = reserved.collect();
        for segment in reserved {
            let range = (PAYLOAD_START, SEGMENT);
            self.space.back(segment, range, purpose)?;
        }
        Ok(())
    }

    /// Takes the next segment out of the reserved ones once `open` has made something of it, under the lock of the list.
    ///
    /// # Errors
    /// `InvalidArgument`: it and the one behind it are not reserved.
    pub fn take_next<T>(&self, open: impl FnOnce(ChainLink) -> T) -> Result<T> {
        let mut reserved = self.reserved.lock();
        let opened = open(reserved.upcoming()?);
        reserved.segments.pop_front();
        reserved.next_sequence += 1;
        Ok(opened)
    }

    /// Gives up all reserved segments but the next one, which gives up its blocks. Returns them. The caller holds the roll
    /// lock: the next one is not written meanwhile.
    ///
    /// # Errors
    /// `Corruption`: the volume does not know the next one.
    pub fn give_up_ahead(&self) -> Result<Vec<SegmentId>> {
        let _supplier = self.supplier.lock();
        let (next, ahead) = {
            let mut reserved = self.reserved.lock();
            let keep = reserved.segments.len().min(1);
            let ahead = reserved.segments.split_off(keep);
            (reserved.segments.front().map(|next| next.id), ahead)
        };
        next.map_or(Ok(()), |next| self.space.unback(next))?;
        Ok(ahead.into_iter().map(|taken| taken.id).collect())
    }
}

#[cold]
fn none_reserved() -> Error {
    Error::invalid("no segment is reserved")
}
