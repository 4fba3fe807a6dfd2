//! What a mapping did and holds, collected from its parts.

use kreon_base::Priority;

use crate::counters::CLASSES;
use crate::plan::MemoryPlan;
use crate::read::PageReader;
use crate::record_cache::RecordCache;

/// What a mapping did since it was made, and what it holds now. Read while other threads work, the numbers need not be
/// consistent with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappingStats {
    /// Reads of a page that found it resident.
    pub hits: u64,
    /// Reads of a page that had to wait for the device, or for another thread that did.
    pub misses: u64,
    /// Reads of a page through the kernel's mapping, whether or not the kernel had to read it.
    pub pages_mapped: u64,
    /// Reads of a record that found it in the record cache.
    pub record_hits: u64,
    /// Pages read from the device, prefetched ones included.
    pub pages_read: u64,
    /// Pages that were read past the frames: of long ranges, and those for which no frame was to be had.
    pub pages_read_past: u64,
    /// Pages made fresh, from a copy or from an open frame.
    pub pages_fresh: u64,
    /// Dirty pages written.
    pub pages_written: u64,
    /// Writes of them, each of a run of neighbours.
    pub writes: u64,
    /// Fresh pages that were written at once, because no frame was to be had.
    pub pages_written_past: u64,
    /// Write calls that the device failed.
    pub write_errors: u64,
    /// Pages evicted.
    pub pages_evicted: u64,
    /// Stripes of the page array that had to be emptied to stay within the memory.
    pub stripes_emptied: u64,
    /// All frames.
    pub frames: u64,
    /// Frames that hold no page.
    pub frames_free: u64,
    /// Frames that callers fill in place: they hold no page, and are not free.
    pub frames_open: u64,
    /// Pages that have a frame.
    pub pages_resident: u64,
    /// Frames that hold single records.
    pub frames_of_records: u64,
    /// Pages whose content the device does not have yet.
    pub pages_dirty: u64,
    /// Memory that the mapping uses now at most, in bytes: all frames with their records, and the
    /// part of the page array that is in use.
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

impl MappingStats {
    /// What a reader and its parts did and hold.
    pub(crate) fn collect(reader: &PageReader, plan: &MemoryPlan) -> Self {
        let (frames, table) = (&reader.frames, reader.table());
        let (reads, evictions) = (&reader.counters, frames.counters());
        let writes = frames.writer().counters();
        let records = frames.records();
        Self {
            hits: reads.hits.sum(),
            misses: reads.misses.sum(),
            pages_mapped: reader.mapped.as_ref().map_or(0, |mapped| mapped.reads()),
            record_hits: records.map_or(0, RecordCache::hits),
            pages_read: reads.pages_read.get(),
            pages_read_past: reads.pages_read_past.get(),
            pages_fresh: writes.pages_fresh.get(),
            pages_written: writes.pages_written.get(),
            writes: writes.writes.get(),
            pages_written_past: writes.pages_written_past.get(),
            write_errors: writes.write_errors.get(),
            pages_evicted: evictions.pages_evicted.sum(),
            stripes_emptied: evictions.stripes_emptied.get(),
            frames: table.frames() as u64,
            frames_free: table.pool().len() as u64,
            frames_open: frames.open_share().open() as u64,
            pages_resident: table.counts().resident() as u64,
            frames_of_records: records.map_or(0, |records| records.frames() as u64),
            pages_dirty: table.counts().dirty() as u64,
            memory_bytes: plan.bytes(table.stripes_used()) as u64,
        }
    }
}

/// What a reader and its parts did with pages of each class of priorities.
pub(crate) fn by_priority(
    reader: &PageReader,
) -> impl Iterator<Item = (Priority, PriorityStats)> + '_ {
    (0..CLASSES).map(|class| {
        let stats = PriorityStats {
            hits: reader.counters.hits.of(class),
            misses: reader.counters.misses.of(class),
            pages_evicted: reader.frames.counters().pages_evicted.of(class),
            pages_written: reader.table().counts().written().of(class),
        };
        let is_last = class == CLASSES - 1;
        (Priority(if is_last { u8::MAX } else { class as u8 }), stats)
    })
}
