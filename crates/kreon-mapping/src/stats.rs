//! What a mapping did, counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kreon_base::Priority;

use crate::hot::Hot;
use crate::mapped::Mapped;
use crate::mapping::Mapping;

/// Threads that count their hits in lines of their own.
const HIT_LINES: usize = 64;

/// Classes of priorities that are counted by themselves: each of the lowest, the last, and those between together.
const CLASSES: usize = 48;

/// What a mapping did since it was made, and what it holds now. Read while others work, the numbers
/// need not fit each other exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappingStats {
    /// Reads of a page that found it resident.
    pub hits: u64,
    /// Reads of a page that had to wait for the device, or for another thread that did.
    pub misses: u64,
    /// Reads of a page through the kernel's mapping; whether the kernel had it, it does not tell.
    pub pages_mapped: u64,
    /// Reads of a record that found it kept by itself.
    pub record_hits: u64,
    /// Pages read from the device, prefetched ones included.
    pub pages_read: u64,
    /// Pages that were read past the frames: long ranges, and pages for which no frame was to be had.
    pub pages_read_past: u64,
    /// Pages made fresh.
    pub pages_fresh: u64,
    /// Dirty pages written.
    pub pages_written: u64,
    /// Writes that carried them, each a run of neighbours.
    pub writes: u64,
    /// Fresh pages that went to the device at once, as no frame was to be had.
    pub pages_written_past: u64,
    /// Write calls that the device failed.
    pub write_errors: u64,
    /// Pages evicted.
    pub pages_evicted: u64,
    /// Stripes of the page table that had to be emptied to stay within the memory.
    pub stripes_emptied: u64,
    /// Frames that there are.
    pub frames: u64,
    /// Frames that hold no page.
    pub frames_free: u64,
    /// Pages that have a frame.
    pub pages_resident: u64,
    /// Frames that hold single records.
    pub frames_of_records: u64,
    /// Pages whose content the device does not have yet.
    pub pages_dirty: u64,
    /// Memory that the mapping uses now at most, in bytes: all frames with their records, and the
    /// part of the page table that is in use.
    pub memory_bytes: u64,
}

/// What a mapping did with pages of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityStats {
    /// As in [`MappingStats`].
    pub hits: u64,
    /// As in [`MappingStats`].
    pub misses: u64,
    /// As in [`MappingStats`].
    pub pages_evicted: u64,
    /// As in [`MappingStats`].
    pub pages_written: u64,
}

/// The counters behind the statistics.
#[derive(Default)]
pub(crate) struct Counters {
    pub hits: ThreadCounters,
    pub misses: ClassCounters,
    pub pages_read: Counter,
    pub pages_read_past: Counter,
    pub pages_fresh: Counter,
    pub pages_written: Counter,
    pub writes: Counter,
    pub pages_written_past: Counter,
    pub write_errors: Counter,
    pub pages_evicted: ClassCounters,
    pub stripes_emptied: Counter,
}

/// One number that many threads add to.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

/// Counters per thread and class, so that hits do not write to shared memory.
pub(crate) struct ThreadCounters(Box<[Line]>);

/// Counters of the classes.
pub(crate) struct ClassCounters([Counter; CLASSES]);

#[repr(align(128))]
struct Line([AtomicU64; CLASSES]);

/// Memory of the counters, in bytes.
pub(crate) const COUNTER_BYTES: usize = size_of::<Counters>() + (HIT_LINES + 1) * size_of::<Line>();

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Default for Line {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; CLASSES])
    }
}

impl Default for ClassCounters {
    fn default() -> Self {
        Self([const { Counter(AtomicU64::new(0)) }; CLASSES])
    }
}

impl Default for ThreadCounters {
    fn default() -> Self {
        Self((0..=HIT_LINES).map(|_| Line::default()).collect())
    }
}

impl ThreadCounters {
    /// Counts one for the thread with this number.
    #[inline]
    pub(crate) fn add(&self, thread: usize, priority: Priority) {
        let class = class(priority);
        if thread < HIT_LINES {
            if let Some(own) = self.0.get(thread).and_then(|line| line.0.get(class)) {
                // No other living thread has the number: a plain increment loses nothing.
                own.store(own.load(Relaxed) + 1, Relaxed);
            }
        } else if let Some(shared) = self.0.get(HIT_LINES).and_then(|line| line.0.get(class)) {
            shared.fetch_add(1, Relaxed);
        }
    }

    fn of(&self, class: usize) -> u64 {
        let counters = self.0.iter().filter_map(|line| line.0.get(class));
        counters.map(|counter| counter.load(Relaxed)).sum()
    }

    /// Of all threads and classes.
    pub(crate) fn sum(&self) -> u64 {
        (0..CLASSES).map(|class| self.of(class)).sum()
    }
}

impl ClassCounters {
    pub(crate) fn add(&self, priority: Priority, count: u64) {
        if let Some(counter) = self.0.get(class(priority)) {
            counter.add(count);
        }
    }

    fn of(&self, class: usize) -> u64 {
        self.0.get(class).map_or(0, Counter::get)
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }
}

/// The class that counts for a priority.
#[inline]
fn class(priority: Priority) -> usize {
    match priority {
        Priority(u8::MAX) => CLASSES - 1,
        Priority(number) => usize::from(number).min(CLASSES - 2),
    }
}

impl Mapping {
    /// What the mapping did, and what it holds.
    pub fn stats(&self) -> MappingStats {
        let counters = &self.counters;
        MappingStats {
            hits: counters.hits.sum(),
            misses: counters.misses.sum(),
            pages_mapped: self.mapped.as_ref().map_or(0, Mapped::reads),
            record_hits: self.hot.as_ref().map_or(0, Hot::hits),
            pages_read: counters.pages_read.get(),
            pages_read_past: counters.pages_read_past.get(),
            pages_fresh: counters.pages_fresh.get(),
            pages_written: counters.pages_written.get(),
            writes: counters.writes.get(),
            pages_written_past: counters.pages_written_past.get(),
            write_errors: counters.write_errors.get(),
            pages_evicted: counters.pages_evicted.sum(),
            stripes_emptied: counters.stripes_emptied.get(),
            frames: self.plan.frames as u64,
            frames_free: self.pool.len() as u64,
            pages_resident: self.resident_pages(),
            frames_of_records: self.hot.as_ref().map_or(0, |hot| hot.frames() as u64),
            pages_dirty: self.pages.dirty.load(Relaxed) as u64,
            memory_bytes: self.plan.bytes(self.pages.stripe_budget.used()) as u64,
        }
    }

    /// What it did with pages of each priority that was counted; those from 46 to 254 count as 46.
    pub fn stats_by_priority(&self) -> impl Iterator<Item = (Priority, PriorityStats)> + '_ {
        let counters = &self.counters;
        (0..CLASSES).map(|class| {
            let stats = PriorityStats {
                hits: counters.hits.of(class),
                misses: counters.misses.of(class),
                pages_evicted: counters.pages_evicted.of(class),
                pages_written: self.pages.written.of(class),
            };
            let last = class == CLASSES - 1;
            (Priority(if last { u8::MAX } else { class as u8 }), stats)
        })
    }

    /// How many pages of each priority have a frame; priorities without any are left out.
    pub fn pages_by_priority(&self) -> impl Iterator<Item = (Priority, u64)> + '_ {
        (0..=u8::MAX)
            .zip(self.pages.classes.iter())
            .filter_map(|(priority, class)| {
                let pages = class.load(Relaxed) as u64;
                (pages > 0).then_some((Priority(priority), pages))
            })
    }

    /// Pages that have a frame.
    pub fn resident_pages(&self) -> u64 {
        self.pages.resident() as u64
    }
}
