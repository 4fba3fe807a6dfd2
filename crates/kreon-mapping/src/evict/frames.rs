//! The supply of frames.
//!
//! A thread that evicts holds a turn, of which there are a few. Order of locks: a turn or the table hand, then one shard,
//! then a list of the pool. The locks of the record cache are held with none of the table's. No lock is held during a
//! transfer.

use std::sync::Arc;

use kreon_base::{Priority, Result};
use kreon_device::Device;

use super::hunt::Hunt;
use super::open::OpenShare;
use super::table_room::{self, StripeHand};
use super::turns::Turns;
use crate::counters::{ClassCounters, Counter};
use crate::modes::EVICT_BATCH_MAX;
use crate::options::MappingOptions;
use crate::record_cache::{Generation, RecordCache};
use crate::shared::RoomMutex;
use crate::table::{PRIORITIES, PageTable, TableShape};
use crate::well::FreeFrame;
use crate::writeback::Writer;

/// Rounds of evicting and writing back that a thread makes for the frames that it wants.
const ROUNDS_MAX: usize = 4;

/// Pages that a thread in need of frames writes back at once: 1 MiB.
const WRITE_BACK_PAGES: usize = 256;

/// Frames that records leave to pages of the last priority: one in this many.
const LAST_PAGES_SHARE: usize = 64;

/// Frames are plenty while one in this many is free.
const FREE_SHARE: usize = 8;

/// The fewest free frames that are plenty; an eviction frees some at a time.
const FREE_MIN: usize = 4 * EVICT_BATCH_MAX;

/// What is counted of evictions.
#[derive(Default)]
pub(crate) struct EvictCounters {
    pub pages_evicted: ClassCounters,
    pub stripes_emptied: Counter,
}

/// The page table, and all that gives up frames: clean pages, dirty pages after a write, single records.
pub(crate) struct Frames {
    table: PageTable,
    writer: Writer,
    records: Option<RecordCache>,
    /// Who evicts where.
    turns: Turns,
    /// Where the search for room in the page array goes on. One thread searches at a time.
    stripe_hand: RoomMutex<StripeHand>,
    /// Pages that are evicted at once.
    batch: usize,
    open: OpenShare,
    counters: EvictCounters,
}

impl Frames {
    /// Frames of this shape, all free.
    pub(crate) fn new(
        device: Arc<dyn Device>,
        shape: &TableShape,
        record_table_bytes: usize,
        options: &MappingOptions,
    ) -> Result<Self> {
        let share_percent = options.dirty_share_percent;
        Ok(Self {
            table: PageTable::new(shape, options)?,
            writer: Writer::new(device, shape.frames, share_percent, &options.modes),
            records: RecordCache::new(record_table_bytes),
            turns: Turns::new(shape.shards, shape.frames),
            stripe_hand: RoomMutex::default(),
            batch: (shape.frames / 8).min(options.modes.evict_batch_max()),
            open: OpenShare::new(shape.frames),
            counters: EvictCounters::default(),
        })
    }

    #[inline]
    pub(crate) fn table(&self) -> &PageTable {
        &self.table
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Single records, if they are kept.
    pub(crate) fn records(&self) -> Option<&RecordCache> {
        self.records.as_ref()
    }

    /// How many threads can evict at once.
    #[cfg(feature = "lock-times")]
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// How many frames callers fill in place, and may.
    pub(crate) fn open_share(&self) -> &OpenShare {
        &self.open
    }

    pub(crate) fn counters(&self) -> &EvictCounters {
        &self.counters
    }

    /// Frames that are evicted at once, at least 1.
    pub(super) fn batch(&self) -> usize {
        self.batch.max(1)
    }

    /// A frame; `None` if readers hold all that could be evicted, or the device takes no dirty page.
    pub(crate) fn take(&self) -> Option<FreeFrame> {
        self.take_many(1).pop()
    }

    /// Up to `wanted` frames. Fewer only if readers hold all that could be evicted, or the device takes no dirty page.
    pub(crate) fn take_many(&self, wanted: usize) -> Vec<FreeFrame> {
        let mut frames = Vec::with_capacity(wanted);
        self.table.pool().take(wanted, &mut frames);
        for _ in 0..ROUNDS_MAX {
            let missing = wanted - frames.len();
            if missing == 0 {
                break;
            }
            let (freed, dirty) = self.evict(missing);
            self.table.pool().take(missing, &mut frames);
            if freed > 0 || frames.len() == wanted {
                continue;
            }
            if dirty.is_empty() {
                break;
            }
            // A failed write is counted, and the next sync returns its error.
            let written = self
                .writer
                .write_stripes(&self.table, &dirty, WRITE_BACK_PAGES);
            if written.is_err() {
                break;
            }
        }
        debug_assert!(frames.len() <= wanted);
        frames
    }

    /// Evicts a batch of pages, `wanted` at least if they can be had. Returns how many frames became free, and the
    /// stripes, sorted, of dirty pages that must be written first.
    fn evict(&self, wanted: usize) -> (usize, Vec<u64>) {
        let mut turn = self.turns.take();
        let free = self.table.pool().len();
        if free >= wanted {
            // Another thread evicted while this one waited for its turn.
            return (free, Vec::new());
        }
        let settled = self.table.settle(Vec::new());
        if settled >= wanted {
            return (settled, Vec::new());
        }
        let mut hunt = Hunt::new(
            &self.table,
            self.records.as_ref(),
            &self.counters.pages_evicted,
            wanted.max(self.batch),
        );
        hunt.run(&mut turn);
        let (freed, dirty) = hunt.end();
        (settled + freed, dirty)
    }

    /// Makes room in the page array for one more stripe. False if that is not possible, because readers hold pages of
    /// the stripe that would have to go.
    pub(crate) fn make_table_room(&self) -> bool {
        // Frames in limbo stay attached to their stripes.
        self.table.settle(Vec::new());
        let poorest = {
            let mut hand = self.stripe_hand.lock();
            match hand.release_empty(&self.table) {
                table_room::Room::Released => return true,
                table_room::Room::Poorest(stripe) => stripe,
                table_room::Room::None => return false,
            }
        };
        self.counters.stripes_emptied.add(1);
        // A page that cannot be written stays; the next sync returns the error.
        let _ = self
            .writer
            .write_stripes(&self.table, &[poorest], usize::MAX);
        table_room::evict_stripe(&self.table, poorest, &self.counters.pages_evicted);
        self.table.lock_stripe(poorest).release_stripe(poorest)
    }

    /// Whether enough frames are free for log pages to be kept whole.
    pub(crate) fn are_plenty(&self) -> bool {
        self.table.pool().len() >= (self.table.frames() / FREE_SHARE).max(FREE_MIN)
    }

    /// Keeps a record that was read after its generation was taken.
    pub(crate) fn keep_record(&self, offset_bytes: u64, generation: Generation, bytes: &[u8]) {
        if let Some(records) = &self.records {
            records.keep(
                self.table.space(),
                (offset_bytes, generation),
                bytes,
                || self.record_frames_max(),
                || self.take(),
            );
        }
    }

    /// Frames that records may take now: all except a few, and except those of pages of a higher rank.
    fn record_frames_max(&self) -> usize {
        let last = Priority((PRIORITIES - 1) as u8);
        let more = self.table.counts().resident_below(last);
        let left = self.table.frames() / LAST_PAGES_SHARE;
        self.table.frames().saturating_sub(more + left)
    }
}
