//! The record cache: `S3-FIFO` (J. Yang et al., SOSP 2023) over single records.
//!
//! A record that is read first waits in a small queue. If it is read again there, it moves to the main queue; if not, it
//! leaves and is remembered as a *ghost* for a while. A record whose ghost is there enters the main queue at once. Both
//! queues are rings of frames from the pool that pages use: pages of the last priority are evicted before records, all
//! other pages after them.
//!
//! A record is known by its offset and the generation of its segment. Its bytes never change;
//! [`RecordCache::forget`] invalidates all records of a segment at once by a new generation.

use std::sync::atomic::{AtomicUsize, Ordering};

use kreon_base::{PageNo, SEGMENT_BYTES, SEGMENT_PAGES};

use super::queues::{Queues, RecordId};
use super::slots;
use crate::shared::{GenerationCount, RecordsMutex};
use crate::well::{FrameSpace, FreeFrame};

/// Longest record that is kept, in bytes: longer ones fill pages of their own well enough.
pub(super) const RECORD_BYTES_MAX: usize = 3072;

/// Most locks that the records are spread over.
const SHARDS_MAX: usize = 32;

/// Least memory of a shard for its tables: with less, spare frames would be most of its frames.
const SHARD_TABLE_BYTES_MIN: usize = 4 << 10;

/// The tables take this share of the mapping's memory: enough for records of 350 bytes on average if
/// they fill all of it.
const TABLE_SHARE: usize = 64;

/// Generations take this share of the tables' memory, and as much is for the lists of the rings' frames:
/// 4 bytes each, and as many that a list has in reserve.
const GENERATION_SHARE: usize = 8;

/// A mapping with less memory keeps no records.
const MEMORY_BYTES_MIN: usize = 1 << 20;

/// Records in frames.
pub(crate) struct RecordCache {
    shards: Box<[RecordsMutex<Queues>]>,
    /// One for each segment, modulo their number.
    generations: Box<[GenerationCount]>,
    /// Frames in all shards.
    frames: AtomicUsize,
    /// The shard that gives up frames next.
    turn: AtomicUsize,
}

/// Memory of the tables in a mapping of `memory_bytes`; 0: no records are kept.
pub(crate) const fn table_bytes(memory_bytes: usize) -> usize {
    if memory_bytes < MEMORY_BYTES_MIN {
        return 0;
    }
    memory_bytes / TABLE_SHARE
}

/// The generation of a segment. It must not change between the read of a record from the device and keeping it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation(u32);

/// Whether a range may be kept as a record: it is short, and in one segment, whose pages are discarded together.
pub(crate) fn can_be_kept(offset_bytes: u64, len_bytes: usize) -> bool {
    len_bytes <= RECORD_BYTES_MAX
        && offset_bytes % SEGMENT_BYTES + len_bytes as u64 <= SEGMENT_BYTES
}

impl RecordCache {
    /// An empty cache, with tables of `table_bytes`. `None` if that is 0.
    pub(crate) fn new(table_bytes: usize) -> Option<Self> {
        if table_bytes == 0 {
            return None;
        }
        let generation_bytes = table_bytes / GENERATION_SHARE;
        let shards = (table_bytes / SHARD_TABLE_BYTES_MIN).clamp(1, SHARDS_MAX);
        let shard_bytes = (table_bytes - 2 * generation_bytes) / shards;
        Some(Self {
            shards: (0..shards)
                .map(|_| RecordsMutex::new(Queues::new(shard_bytes)))
                .collect(),
            generations: (0..generation_bytes / size_of::<GenerationCount>())
                .map(|_| GenerationCount::new(0))
                .collect(),
            frames: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
        })
    }

    /// Locks that the records are spread over.
    #[cfg(feature = "lock-times")]
    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Frames that hold records.
    pub(crate) fn frames(&self) -> usize {
        self.frames.load(Ordering::Relaxed)
    }

    /// Reads that found their record.
    pub(crate) fn hits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().hits).sum()
    }

    /// The generation of the bytes at `offset`: to be taken before they are read from the device.
    pub(crate) fn generation(&self, offset: u64) -> Generation {
        let cell = &self.generations[(offset / SEGMENT_BYTES) as usize % self.generations.len()];
        Generation(cell.load(Ordering::SeqCst))
    }

    /// Removes all records that start in the segments of these pages, and those that are being read now in order to be
    /// kept.
    pub(crate) fn forget(&self, first: PageNo, pages: u64) {
        let segments = first.0 / SEGMENT_PAGES..(first.0 + pages).div_ceil(SEGMENT_PAGES);
        let count = self.generations.len();
        for segment in segments.take(count) {
            // Sequentially consistent: a record read before has the old number in every thread.
            self.generations[segment as usize % count].fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Appends the record of `len` bytes at `offset` to `into`, if it is there.
    pub(crate) fn get(
        &self,
        space: &FrameSpace,
        offset: u64,
        len: usize,
        into: &mut Vec<u8>,
    ) -> bool {
        let record = self.current(offset);
        self.shard(offset).lock().get(space, record, len, into)
    }

    /// Whether [`get`](Self::get) would find the record. It does not count as a read.
    pub(crate) fn has(&self, space: &FrameSpace, offset: u64, len: usize) -> bool {
        let record = self.current(offset);
        let queues = self.shard(offset).lock();
        queues.find(space, record, len).is_some()
    }

    /// Keeps a record that was read after its generation was taken. `frames_max` is the number of frames that all records
    /// may take, except a few of each shard; `take_frame` provides them.
    pub(crate) fn keep(
        &self,
        space: &FrameSpace,
        (offset, generation): (u64, Generation),
        bytes: &[u8],
        frames_max: impl Fn() -> usize,
        take_frame: impl Fn() -> Option<FreeFrame>,
    ) {
        debug_assert!(can_be_kept(offset, bytes.len()));
        let record = RecordId {
            offset,
            generation: generation.0,
        };
        let shard = self.shard(offset);
        let mut queues = shard.lock();
        if queues.lacks_frames(bytes.len()) && (self.frames() < frames_max() || queues.is_bare()) {
            // Unlocked, because taking a frame may evict, which locks the shards.
            drop(queues);
            let frame = take_frame();
            queues = shard.lock();
            self.frames
                .fetch_add(usize::from(frame.is_some()), Ordering::Relaxed);
            queues.spare.extend(frame);
        }
        if self.generation(offset) == generation {
            let is_current = |old: &RecordId| *old == self.current(old.offset);
            queues.insert(space, record, bytes, is_current);
        }
    }

    /// Frees up to `wanted` frames, by evicting records of the shards in turn.
    pub(crate) fn give_up(
        &self,
        space: &FrameSpace,
        wanted: usize,
        mut put: impl FnMut(FreeFrame),
    ) {
        let is_current = |old: &RecordId| *old == self.current(old.offset);
        let mut idle = 0;
        let mut given = 0;
        while given < wanted && idle < self.shards.len() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let frame = self.shards[turn % self.shards.len()]
                .lock()
                .give_up(space, is_current);
            match frame {
                Some(frame) => {
                    let before = self.frames.fetch_sub(1, Ordering::Relaxed);
                    debug_assert!(before > 0, "a frame of records that was not counted");
                    put(frame);
                    given += 1;
                    idle = 0;
                }
                None => idle += 1,
            }
        }
    }

    /// The record at `offset`, of the present generation.
    fn current(&self, offset: u64) -> RecordId {
        let generation = self.generation(offset).0;
        RecordId { offset, generation }
    }

    fn shard(&self, offset: u64) -> &RecordsMutex<Queues> {
        // Bits of the hash that the tables do not use.
        &self.shards[(slots::hash(offset) % self.shards.len() as u64) as usize]
    }
}
