//! Single records that are read again and again, kept without the pages around them: `S3-FIFO`
//! (J. Yang et al., SOSP 2023) over records.
//!
//! What is read first waits in a small queue; what is read again there moves to the main queue, what
//! is not leaves, remembered as a *ghost* for a while: read again, it comes to the main queue at once.
//! Both queues are rings of frames out of the same pool that pages use, so that memory goes where it
//! is needed: pages of the last priority go before records, all other pages after them.
//!
//! Bytes are known by their offset. They are never changed; [`Hot::forget`] makes all those of a
//! segment invalid at once, by a new generation of the segment.

mod queues;
mod ring;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use kreon_base::{PageNo, SEGMENT_BYTES, SEGMENT_PAGES};
use parking_lot::Mutex;

use crate::well::{FreeFrame, Space};
use queues::{Queues, Record};

/// Longest record that is kept, in bytes: longer ones fill pages of their own well enough.
pub(crate) const RECORD_BYTES_MAX: usize = 3072;

/// Most locks that the records are spread over.
const SHARDS_MAX: usize = 32;

/// A shard has at least so much memory for its tables: with less, spare frames would be most of its frames.
const SHARD_TABLE_BYTES_MIN: usize = 4 << 10;

/// The tables take this share of the mapping's memory: enough for records of 350 bytes on average if
/// they fill all of it.
const TABLE_SHARE: usize = 64;

/// Generations take this share of the tables' memory, and as much is for the lists of the rings' frames:
/// 4 bytes each, and as many that a list has in reserve.
const GENERATION_SHARE: usize = 8;

/// Less memory than this has no room for records.
const MEMORY_BYTES_MIN: usize = 1 << 20;

/// The records.
pub(crate) struct Hot {
    shards: Box<[Mutex<Queues>]>,
    /// One for every segment, modulo their number.
    generations: Box<[AtomicU32]>,
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

/// What must not change between reading a record from the device and keeping it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Hot {
    /// No records, with tables of so many bytes.
    pub(crate) fn new(table_bytes: usize) -> Option<Self> {
        if table_bytes == 0 {
            return None;
        }
        let generation_bytes = table_bytes / GENERATION_SHARE;
        let shards = (table_bytes / SHARD_TABLE_BYTES_MIN).clamp(1, SHARDS_MAX);
        let shard_bytes = (table_bytes - 2 * generation_bytes) / shards;
        Some(Self {
            shards: (0..shards)
                .map(|_| Mutex::new(Queues::new(shard_bytes)))
                .collect(),
            generations: (0..generation_bytes / size_of::<AtomicU32>())
                .map(|_| AtomicU32::new(0))
                .collect(),
            frames: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
        })
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

    /// Forgets all records that start in the segments of these pages, those included that somebody is
    /// reading now in order to keep them.
    pub(crate) fn forget(&self, first: PageNo, pages: u64) {
        let segments = first.0 / SEGMENT_PAGES..(first.0 + pages).div_ceil(SEGMENT_PAGES);
        let count = self.generations.len();
        for segment in segments.take(count) {
            // Sequentially consistent: a record read before has the old number, whoever finds it.
            self.generations[segment as usize % count].fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Appends the record of `len` bytes at `offset` to `into`, if it is there.
    pub(crate) fn get(&self, space: &Space, offset: u64, len: usize, into: &mut Vec<u8>) -> bool {
        let generation = self.generation(offset).0;
        self.shard(offset)
            .lock()
            .get(space, offset, generation, len, into)
    }

    /// Whether [`get`](Self::get) would find the record. It does not count as a read.
    pub(crate) fn has(&self, space: &Space, offset: u64, len: usize) -> bool {
        let generation = self.generation(offset).0;
        let queues = self.shard(offset).lock();
        queues
            .find(space, Record { offset, generation }, len)
            .is_some()
    }

    /// Keeps a record that was read after its generation was taken. `frames_max`: what all records
    /// may take, but for a few that each shard has; `take_frame` is asked for frames until then.
    pub(crate) fn keep(
        &self,
        space: &Space,
        (offset, generation): (u64, Generation),
        bytes: &[u8],
        frames_max: impl Fn() -> usize,
        take_frame: impl Fn() -> Option<FreeFrame>,
    ) {
        let record = Record {
            offset,
            generation: generation.0,
        };
        let shard = self.shard(offset);
        let mut queues = shard.lock();
        if queues.lacks_frames(bytes.len()) && (self.frames() < frames_max() || queues.is_bare()) {
            // Taking one may evict, and that asks the shards for theirs.
            drop(queues);
            let frame = take_frame();
            queues = shard.lock();
            self.frames
                .fetch_add(usize::from(frame.is_some()), Ordering::Relaxed);
            queues.spare.extend(frame);
        }
        if self.generation(offset) == generation {
            let is_current = |old: &Record| self.generation(old.offset).0 == old.generation;
            queues.insert(space, record, bytes, is_current);
        }
    }

    /// Gives up to `wanted` frames back, evicting records, by turns of the shards.
    pub(crate) fn give_up(&self, space: &Space, wanted: usize, mut put: impl FnMut(FreeFrame)) {
        let is_current = |old: &Record| self.generation(old.offset).0 == old.generation;
        let mut idle = 0;
        let mut given = 0;
        while given < wanted && idle < self.shards.len() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let frame = self.shards[turn % self.shards.len()]
                .lock()
                .give_up(space, is_current);
            match frame {
                Some(frame) => {
                    self.frames.fetch_sub(1, Ordering::Relaxed);
                    put(frame);
                    given += 1;
                    idle = 0;
                }
                None => idle += 1,
            }
        }
    }

    fn shard(&self, offset: u64) -> &Mutex<Queues> {
        // Other bits than those that tables use.
        &self.shards[(slots::hash(offset) % self.shards.len() as u64) as usize]
    }
}
