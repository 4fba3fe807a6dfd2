//! Segments in memory: where records are appended, and where they are read until they are on the
//! device.
//!
//! A buffer passes through these states: free, open (takes records), full, complete (all of it on the device), free.
//! A complete one stays readable until its memory is needed, oldest first; one that the log's mirror has not landed as a
//! whole stays in any case. A buffer is looked up by sequence: a segment that was released and taken again has the same
//! id, and may have one buffer for each use. Invariants:
//! - a segment that is not complete is in a buffer, and readers find it there: pages of it are never
//!   read through the mapping before they are final;
//! - the sequences in memory are consecutive and at most `max`, so each has a slot of its own: number
//!   `sequence % max`;
//! - the current segment is the last of them, and all before it are full;
//! - there are at most `max` buffers, not counting those that a reader still holds when all others are
//!   in use: a reader's closure may itself append, so no thread waits for readers.

use kreon_sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use kreon_base::{Lsn, Result, SegmentId, planted};
use kreon_device::{AppendBuffer, Backing};
use kreon_sync::Mutex;

use super::buffered::Buffered;
use super::cut::SEGMENT;
use super::mirror::Elsewhere;

/// One place where readers look for a buffered segment.
#[derive(Default)]
struct ReaderSlot {
    /// 0: empty (sequences start at 1). Most lookups end here.
    sequence: AtomicU64,
    buffered: ArcSwapOption<Buffered>,
}

impl ReaderSlot {
    fn show(&self, buffered: Arc<Buffered>) {
        let sequence = buffered.sequence();
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
    slots: Box<[ReaderSlot]>,
    pool: Mutex<Pool>,
    /// Takes the records.
    current: ArcSwap<Buffered>,
    backing: Backing,
    elsewhere: Elsewhere,
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
    /// Up to `max` buffers, 1 at the least. `open` makes the first segment in the first of them.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn open(
        max: usize,
        backing: Backing,
        elsewhere: Elsewhere,
        open: impl FnOnce(AppendBuffer) -> Result<Buffered>,
    ) -> Result<Self> {
        let first = open(AppendBuffer::new(SEGMENT, backing))?;
        let first = Arc::new(first);
        let pool = Pool {
            count: 1,
            ..Pool::default()
        };
        let slots = (0..max.max(1)).map(|_| ReaderSlot::default()).collect();
        let buffers = Self {
            slots,
            pool: Mutex::new(pool),
            current: ArcSwap::new(Arc::clone(&first)),
            backing,
            elsewhere,
        };
        buffers.show(first);
        Ok(buffers)
    }

    /// The segment that takes records.
    #[inline]
    pub fn current(&self) -> Guard<Arc<Buffered>> {
        self.current.load()
    }

    /// The same, for longer than a moment.
    pub fn current_full(&self) -> Arc<Buffered> {
        self.current.load_full()
    }

    /// Behind the last record, or the last that is being appended.
    #[inline]
    pub fn tail(&self) -> Lsn {
        self.current.load().tail()
    }

    /// A buffer that does not count.
    fn make(&self) -> AppendBuffer {
        AppendBuffer::new(SEGMENT, self.backing)
    }

    /// The segment `sequence`, if it is in memory, to be read. Two loads; no lock.
    pub fn find(&self, sequence: u64) -> Option<FoundBuffer> {
        let slot = self.slot(sequence);
        if slot.sequence.load(Ordering::Acquire) != sequence {
            return None;
        }
        let found = slot.buffered.load();
        // The slot may have passed on to another segment in between.
        let is_it = found.as_ref().is_some_and(|it| it.sequence() == sequence);
        is_it.then_some(found)
    }

    /// [`Bug::BufferOfEarlierUse`](kreon_base::Bug::BufferOfEarlierUse): a buffer of any use of `segment`.
    #[cold]
    pub fn find_any_of(&self, segment: SegmentId) -> Option<FoundBuffer> {
        let mut slots = self.slots.iter().map(|slot| slot.buffered.load());
        let is_of = |found: &FoundBuffer| {
            found
                .as_ref()
                .is_some_and(|it| it.link().segment == segment)
        };
        slots.find(is_of)
    }

    fn slot(&self, sequence: u64) -> &ReaderSlot {
        &self.slots[(sequence % self.slots.len() as u64) as usize]
    }

    /// The segment `sequence`, if it is in memory.
    pub fn by_sequence(&self, sequence: u64) -> Option<Arc<Buffered>> {
        let pool = self.pool.lock();
        let first = pool.chain.front()?.sequence();
        let index = usize::try_from(sequence.checked_sub(first)?).ok()?;
        pool.chain.get(index).cloned()
    }

    /// Makes `next` the segment that takes records, and shows it to readers. The one before has no room left.
    pub fn publish(&self, next: Arc<Buffered>) {
        {
            let before = self.current.load();
            assert!(before.is_full(), "records may still go into the segment");
            assert_eq!(next.sequence(), before.sequence() + 1, "a gap in the log");
        }
        self.show(Arc::clone(&next));
        self.current.store(next);
    }

    /// Adds the newest segment of the log and shows it to readers.
    fn show(&self, buffered: Arc<Buffered>) {
        let mut pool = self.pool.lock();
        let slot = self.slot(buffered.sequence());
        // `try_take` keeps the chain within `max`, and a segment that leaves the chain leaves its slot.
        debug_assert!(
            pool.chain.len() < self.slots.len(),
            "more segments than slots"
        );
        debug_assert_eq!(
            slot.sequence.load(Ordering::Relaxed),
            0,
            "the slot is taken"
        );
        pool.chain.push_back(Arc::clone(&buffered));
        slot.show(buffered);
    }

    /// A buffer for a new segment; `None`: every one is in use, something must be written out first.
    pub fn try_take(&self) -> Option<AppendBuffer> {
        let mut pool = self.pool.lock();
        if let Some(buffer) = pool.free.pop().or_else(|| pool.reclaim()) {
            return Some(buffer);
        }
        if pool.count < self.slots.len() {
            pool.count += 1;
            return Some(self.make());
        }
        while pool.chain.len() > 1 && pool.chain.front().is_some_and(|first| self.is_done(first)) {
            if let Some(first) = pool.chain.pop_front() {
                self.slot(first.sequence()).close();
                if let Some(buffer) = pool.reuse(first) {
                    return Some(buffer);
                }
            }
        }
        // Only the open segment is left and readers hold all others: a new buffer takes the place of one of them, whose
        // memory is freed by its last reader.
        let held_by_readers = pool.chain.len() <= 1 && pool.lingering.pop().is_some();
        held_by_readers.then(|| self.make())
    }

    /// Whether a segment is on the device, and with the mirror.
    fn is_done(&self, buffered: &Buffered) -> bool {
        let has_landed = self.elsewhere.landed() >= buffered.lsn(SEGMENT);
        planted!(BufferReusedBeforeLanding => let has_landed = true);
        buffered.is_complete() && has_landed
    }

    /// Up to where the mirror has to land the log before [`try_take`](Self::try_take) finds a buffer. `None`: it finds one,
    /// or what it lacks is not on the device yet.
    pub fn held_for_mirror(&self) -> Option<Lsn> {
        if self.elsewhere.is_none() {
            return None;
        }
        let pool = self.pool.lock();
        let is_held = |held: &Arc<Buffered>| Arc::strong_count(held) > 1;
        let is_any_free = !pool.free.is_empty()
            || pool.count < self.slots.len()
            || !pool.lingering.iter().all(is_held);
        if is_any_free || pool.chain.len() <= 1 {
            return None;
        }
        let first = pool.chain.front()?;
        let is_held_here = !first.is_complete() || self.is_done(first);
        (!is_held_here).then(|| first.lsn(SEGMENT))
    }

    /// Makes a buffer before a roll needs it, unless one is free or there are as many as there may be: the first
    /// touch of its memory takes long.
    pub fn make_ahead(&self) {
        let mut pool = self.pool.lock();
        if !pool.free.is_empty() || pool.count >= self.slots.len() {
            return;
        }
        pool.count += 1;
        drop(pool);
        let buffer = self.make();
        self.pool.lock().free.push(buffer);
    }
}

impl Pool {
    /// The buffer of a segment that readers no longer find, if none holds it.
    fn reuse(&mut self, buffered: Arc<Buffered>) -> Option<AppendBuffer> {
        match Arc::try_unwrap(buffered) {
            Ok(buffered) => Some(buffered.into_empty_buffer()),
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
        self.reuse(held)
    }
}
