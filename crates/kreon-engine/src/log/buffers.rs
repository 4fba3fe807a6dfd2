//! Segments in memory: where records are appended, and where they are read until they are on the
//! device.
//!
//! A buffer goes round: free, open (takes records), full, complete (all of it on the device), free.
//! A complete one stays readable until its memory is needed, oldest first. Invariants:
//! - a segment that is not complete is in a buffer, and readers find it there: pages of it are never
//!   read through the mapping before they are final;
//! - there are at most `max` buffers, but for those that a reader still holds when all the others are
//!   in use: a reader's closure may itself append, so nobody waits for readers.

use crate::sync::{AtomicBool, AtomicU32, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::Mutex;
use arc_swap::{ArcSwapOption, Guard};
use kreon_base::{LogOffset, Lsn, SegmentId};
use kreon_device::AppendBuffer;
use kreon_format::lsn_at;

use super::cut::SEGMENT;

/// A segment of the log in memory.
pub(super) struct Buffered {
    pub segment: SegmentId,
    pub sequence: u64,
    /// The segment reserved to follow it.
    pub next: SegmentId,
    /// Its bytes. Positions are those within the segment.
    pub buffer: AppendBuffer,
    /// Records before this position are not in the buffer: an earlier run wrote them.
    pub readable_from: u32,
    /// See [`TakenSegment`](super::TakenSegment).
    pub was_written: bool,
    /// All of it is on the device.
    pub complete: AtomicBool,
}

impl Buffered {
    /// LSN of the position `within` the segment.
    pub fn lsn(&self, within: u32) -> Lsn {
        lsn_at(self.sequence, within)
    }

    /// Where the position `within` the segment is on the volume.
    pub fn offset(&self, within: u32) -> LogOffset {
        LogOffset(self.segment.offset_bytes() + u64::from(within))
    }

    /// LSN behind the last reservation.
    pub fn tail(&self) -> Lsn {
        self.lsn(self.buffer.reserved_bytes())
    }

    /// Bytes that may be reserved still.
    pub fn rest_bytes(&self) -> u32 {
        let limit = self.buffer.limit_bytes();
        limit.saturating_sub(self.buffer.reserved_bytes())
    }

    /// Whether all of it is on the device.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }
}

/// One place where readers look for a buffered segment.
#[derive(Default)]
struct Window {
    /// 0: empty (segment 0 is never of a log).
    segment: AtomicU32,
    buffered: ArcSwapOption<Buffered>,
}

/// All buffers of a log.
pub(super) struct Buffers {
    windows: Box<[Window]>,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    /// Segments in memory in the order of the log, with no sequence left out.
    chain: VecDeque<Arc<Buffered>>,
    free: Vec<AppendBuffer>,
    /// Taken out of the chain while a reader held them.
    lingering: Vec<Arc<Buffered>>,
    /// Buffers in `chain`, `free`, `lingering` and in the hands of a roll.
    count: usize,
}

impl Buffers {
    /// No buffer yet; there will be up to `max`.
    pub fn new(max: usize) -> Self {
        let windows = (0..max).map(|_| Window::default()).collect();
        Self {
            windows,
            pool: Mutex::default(),
        }
    }

    /// The buffer of `segment`, if it is in memory. Two loads and a short search; no lock.
    pub fn find(&self, segment: SegmentId) -> Option<Guard<Option<Arc<Buffered>>>> {
        let windows = self.windows.iter();
        windows
            .filter(|window| window.segment.load(Ordering::Acquire) == segment.0)
            .map(|window| window.buffered.load())
            .find(|found| {
                found
                    .as_ref()
                    .is_some_and(|buffered| buffered.segment == segment)
            })
    }

    /// The segment `sequence`, if it is in memory.
    pub fn by_sequence(&self, sequence: u64) -> Option<Arc<Buffered>> {
        let pool = self.pool.lock();
        let first = pool.chain.front()?.sequence;
        let index = usize::try_from(sequence.checked_sub(first)?).ok()?;
        pool.chain.get(index).cloned()
    }

    /// Adds the newest segment of the log and shows it to readers.
    pub fn publish(&self, buffered: Arc<Buffered>) {
        let mut pool = self.pool.lock();
        pool.chain.push_back(Arc::clone(&buffered));
        let empty = |window: &&Window| window.segment.load(Ordering::Relaxed) == 0;
        // There is one: as many as buffers in the chain, which `try_take` keeps within `max`.
        if let Some(window) = self.windows.iter().find(empty) {
            let segment = buffered.segment.0;
            window.buffered.store(Some(buffered));
            window.segment.store(segment, Ordering::Release);
        }
    }

    /// A buffer for a new segment; `None`: every one is in use, something must be written out first.
    pub fn try_take(&self) -> Option<AppendBuffer> {
        let mut pool = self.pool.lock();
        let (max, windows) = (self.windows.len(), &self.windows);
        if let Some(buffer) = pool.free.pop().or_else(|| pool.reclaim()) {
            return Some(buffer);
        }
        if pool.count < max {
            pool.count += 1;
            return Some(AppendBuffer::new(SEGMENT));
        }
        while pool.chain.len() > 1 && pool.chain.front().is_some_and(|first| first.is_complete()) {
            if let Some(first) = pool.chain.pop_front() {
                close_window(windows, &first);
                if let Some(buffer) = pool.retire(first) {
                    return Some(buffer);
                }
            }
        }
        // Only the open segment is left and readers hold all the others: their memory goes when they
        // do, and a new buffer takes the place of one of them.
        let held_by_readers = pool.chain.len() <= 1 && pool.lingering.pop().is_some();
        held_by_readers.then(|| AppendBuffer::new(SEGMENT))
    }

    /// Makes a buffer before a roll needs it, unless one is free or there are as many as there may be: the first
    /// touch of its memory takes long.
    pub fn make_ahead(&self) {
        let mut pool = self.pool.lock();
        if !pool.free.is_empty() || pool.count >= self.windows.len() {
            return;
        }
        pool.count += 1;
        drop(pool);
        let buffer = AppendBuffer::new(SEGMENT);
        self.pool.lock().free.push(buffer);
    }

    /// Hides the buffer of a segment that was released and may soon be used for something else. Its
    /// memory comes back in its turn: the chain must have no gap.
    pub fn hide(&self, segment: SegmentId) {
        let pool = self.pool.lock();
        if let Some(buffered) = pool
            .chain
            .iter()
            .find(|buffered| buffered.segment == segment)
        {
            close_window(&self.windows, buffered);
        }
    }
}

fn close_window(windows: &[Window], buffered: &Buffered) {
    let shown = |window: &&Window| {
        let inside = window.buffered.load();
        inside
            .as_ref()
            .is_some_and(|b| b.sequence == buffered.sequence)
    };
    if let Some(window) = windows.iter().find(shown) {
        window.segment.store(0, Ordering::Release);
        window.buffered.store(None);
    }
}

impl Pool {
    /// The buffer of a segment that readers no longer find, if none holds it.
    fn retire(&mut self, buffered: Arc<Buffered>) -> Option<AppendBuffer> {
        match Arc::try_unwrap(buffered) {
            Ok(buffered) => Some(emptied(buffered.buffer)),
            Err(held) => {
                self.lingering.push(held);
                None
            }
        }
    }

    /// A buffer that a reader held and has let go.
    fn reclaim(&mut self) -> Option<AppendBuffer> {
        let free = self
            .lingering
            .iter()
            .position(|held| Arc::strong_count(held) == 1)?;
        let held = self.lingering.swap_remove(free);
        self.retire(held)
    }
}

fn emptied(mut buffer: AppendBuffer) -> AppendBuffer {
    buffer.reset();
    buffer
}
