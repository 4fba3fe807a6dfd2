//! Segments in memory: where records are appended, and where they are read until they are on the
//! device.
//!
//! A buffer goes round: free, open (takes records), full, complete (all of it on the device), free.
//! A complete one stays readable until its memory is needed, oldest first. The id of a segment does not
//! tell which buffer is meant: a segment that was released and taken again may have one buffer for each
//! use. The sequence does; the table of segments has that of the present use. Invariants:
//! - a segment that is not complete is in a buffer, and readers find it there: pages of it are never
//!   read through the mapping before they are final;
//! - the sequences in memory are consecutive and at most `max`, so each has a window of its own: number
//!   `sequence % max`;
//! - there are at most `max` buffers, but for those that a reader still holds when all the others are
//!   in use: a reader's closure may itself append, so nobody waits for readers.

use crate::sync::{AtomicBool, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::Mutex;
use arc_swap::{ArcSwapOption, Guard};
use kreon_base::{LogOffset, Lsn, SegmentId};
use kreon_device::{AppendBuffer, Backing};
use kreon_format::{lsn_at, place_of};

use super::cut::{PAYLOAD_START, SEGMENT};

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

    /// How far into the segment `lsn` lies: 0 if it lies before the segment's first record, all of it if it lies behind.
    pub fn within(&self, lsn: Lsn) -> u32 {
        match place_of(lsn) {
            (sequence, _) if sequence > self.sequence => SEGMENT,
            (sequence, within) if sequence == self.sequence && within > PAYLOAD_START => within,
            _ => 0,
        }
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
    /// 0: empty (sequences start at 1). Most lookups end here.
    sequence: AtomicU64,
    buffered: ArcSwapOption<Buffered>,
}

impl Window {
    fn show(&self, buffered: Arc<Buffered>) {
        let sequence = buffered.sequence;
        self.buffered.store(Some(buffered));
        self.sequence.store(sequence, Ordering::Release);
    }

    fn close(&self) {
        self.sequence.store(0, Ordering::Release);
        self.buffered.store(None);
    }
}

/// A buffer that a reader holds.
pub(super) type FoundBuffer = Guard<Option<Arc<Buffered>>>;

/// All buffers of a log.
pub(super) struct Buffers {
    windows: Box<[Window]>,
    pool: Mutex<Pool>,
    backing: Backing,
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
    /// No buffer yet; there will be up to `max`, 1 at the least.
    pub fn new(max: usize, backing: Backing) -> Self {
        let windows = (0..max.max(1)).map(|_| Window::default()).collect();
        Self {
            windows,
            pool: Mutex::default(),
            backing,
        }
    }

    /// A buffer that does not count.
    pub fn make(&self) -> AppendBuffer {
        AppendBuffer::with_backing(SEGMENT, self.backing)
    }

    /// The segment `sequence`, if it is in memory, to be read. Two loads; no lock.
    pub fn find(&self, sequence: u64) -> Option<FoundBuffer> {
        let window = self.window(sequence);
        if window.sequence.load(Ordering::Acquire) != sequence {
            return None;
        }
        let found = window.buffered.load();
        // The window may have passed on to another segment in between.
        let is_it = found.as_ref().is_some_and(|it| it.sequence == sequence);
        is_it.then_some(found)
    }

    /// [`Bug::BufferOfEarlierUse`](kreon_base::Bug::BufferOfEarlierUse): a buffer of any use of `segment`.
    #[cold]
    pub fn find_any_of(&self, segment: SegmentId) -> Option<FoundBuffer> {
        let mut windows = self.windows.iter().map(|window| window.buffered.load());
        let is_of = |found: &FoundBuffer| found.as_ref().is_some_and(|it| it.segment == segment);
        windows.find(is_of)
    }

    fn window(&self, sequence: u64) -> &Window {
        window(&self.windows, sequence)
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
        let window = self.window(buffered.sequence);
        // `try_take` keeps the chain within `max`, and who leaves the chain leaves its window.
        debug_assert!(
            pool.chain.len() < self.windows.len(),
            "more segments than windows"
        );
        debug_assert_eq!(
            window.sequence.load(Ordering::Relaxed),
            0,
            "the window is taken"
        );
        pool.chain.push_back(Arc::clone(&buffered));
        window.show(buffered);
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
            return Some(self.make());
        }
        while pool.chain.len() > 1 && pool.chain.front().is_some_and(|first| first.is_complete()) {
            if let Some(first) = pool.chain.pop_front() {
                window(windows, first.sequence).close();
                if let Some(buffer) = pool.retire(first) {
                    return Some(buffer);
                }
            }
        }
        // Only the open segment is left and readers hold all the others: their memory goes when they
        // do, and a new buffer takes the place of one of them.
        let held_by_readers = pool.chain.len() <= 1 && pool.lingering.pop().is_some();
        held_by_readers.then(|| self.make())
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
        let buffer = self.make();
        self.pool.lock().free.push(buffer);
    }
}

fn window(windows: &[Window], sequence: u64) -> &Window {
    &windows[(sequence % windows.len() as u64) as usize]
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
