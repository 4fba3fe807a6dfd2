//! The figures of a store as metrics for Prometheus. `docs/stats.md` lists them; a test compares the names.

use kreon_base::metrics::{Number, labels, push_metric};

use super::memory_stats::MemoryStats;
use super::page_stats::PageClassStats;
use super::stats::{LevelStats, Stats};

/// A metric of a `T`: its name behind the prefix, what it is, its value.
type Metric<T> = (&'static str, &'static str, fn(&T) -> Number);

/// A ratio: its name behind the prefix, what it is, its value if that is defined.
type Ratio = (&'static str, &'static str, fn(&Stats) -> Option<f64>);

/// A use of memory, and its bytes.
type Use = (&'static str, fn(&MemoryStats) -> u64);

/// Those of the whole store, without labels.
const OF_STORE: &[Metric<Stats>] = &[
    (
        "epoch_total",
        "Checkpoints since the store was made.",
        |stats| stats.epoch.into(),
    ),
    ("volume_bytes", "Length of the volume.", |stats| {
        stats.volume_bytes.into()
    }),
    ("free_bytes", "Free within the volume.", |stats| {
        stats.free_bytes.into()
    }),
    ("log_bytes", "Segments of the log.", |stats| {
        stats.log_bytes.into()
    }),
    (
        "log_live_bytes",
        "Bytes of the log that the levels point at.",
        |stats| stats.log_live_bytes.into(),
    ),
    (
        "replay_bytes",
        "Log that the next opening replays.",
        |stats| stats.replay_bytes.into(),
    ),
    (
        "image_bytes",
        "Image of L0 that the next opening loads.",
        |stats| stats.image_bytes.into(),
    ),
    ("images_total", "Images of L0 that were taken.", |stats| {
        stats.images.into()
    }),
    (
        "l0_entries",
        "Entries in memory that no spill has taken.",
        |stats| stats.l0_entries.into(),
    ),
    (
        "l0_ranges",
        "Deleted ranges that no spill has taken.",
        |stats| stats.l0_ranges.into(),
    ),
    ("l0_bytes", "Memory of L0' and L0.", |stats| {
        stats.l0_bytes.into()
    }),
    ("spills_total", "Spills that ended.", |stats| {
        stats.spills.into()
    }),
    (
        "spill_pages_read_total",
        "Pages that spills took apart.",
        |stats| stats.spill_pages_read.into(),
    ),
    (
        "spill_pages_written_total",
        "Pages that spills wrote.",
        |stats| stats.spill_pages_written.into(),
    ),
    ("merges_total", "Merges of levels that ended.", |stats| {
        stats.merges.into()
    }),
    (
        "merge_pages_read_total",
        "Pages that merges took apart.",
        |stats| stats.merge_pages_read.into(),
    ),
    (
        "merge_pages_written_total",
        "Pages that merges wrote.",
        |stats| stats.merge_pages_written.into(),
    ),
    (
        "taken_bytes",
        "Bytes of the device that the volume has blocks for.",
        |stats| stats.collection.taken_bytes.into(),
    ),
    (
        "live_bytes",
        "Keys and values that are live, about.",
        |stats| stats.collection.live_bytes.into(),
    ),
    ("moved_log_bytes", "Segments of moved records.", |stats| {
        stats.collection.moved_bytes.into()
    }),
    (
        "dead_log_bytes",
        "Bytes of the log that no level points at.",
        |stats| stats.collection.dead_bytes.into(),
    ),
    (
        "collection_rounds_total",
        "Rounds of garbage collection.",
        |stats| stats.collection.rounds.into(),
    ),
    (
        "collection_victims_total",
        "Segments that were emptied, or tried to.",
        |stats| stats.collection.victims.into(),
    ),
    (
        "collection_records_moved_total",
        "Records that collection copied.",
        |stats| stats.collection.records_moved.into(),
    ),
    (
        "collection_records_skipped_total",
        "Records that collection copied in vain.",
        |stats| stats.collection.records_skipped.into(),
    ),
    (
        "collection_copied_bytes_total",
        "Log of moved records that collection wrote.",
        |stats| stats.collection.bytes_copied.into(),
    ),
    (
        "collection_freed_bytes_total",
        "Segments that collection freed.",
        |stats| stats.collection.bytes_freed.into(),
    ),
    (
        "collection_seconds_total",
        "Time of garbage collection.",
        |stats| stats.collection.seconds.into(),
    ),
    (
        "reorganisation_ranges_found_total",
        "Ranges that scans found scattered.",
        |stats| stats.reorganisation.ranges_found.into(),
    ),
    (
        "reorganisation_ranges_moved_total",
        "Ranges that were laid together.",
        |stats| stats.reorganisation.ranges_moved.into(),
    ),
    (
        "reorganisation_records_moved_total",
        "Their records.",
        |stats| stats.reorganisation.records_moved.into(),
    ),
    (
        "reorganisation_copied_bytes_total",
        "Bytes of these.",
        |stats| stats.reorganisation.bytes_copied.into(),
    ),
    (
        "reorganisation_seconds_total",
        "Time of reorganisation for scans.",
        |stats| stats.reorganisation.seconds.into(),
    ),
    (
        "idle_passes_total",
        "Passes over all keys in idle time that ended.",
        |stats| stats.reorganisation.idle.passes.into(),
    ),
    (
        "idle_records_moved_total",
        "Records that were laid together in idle time.",
        |stats| stats.reorganisation.idle.records_moved.into(),
    ),
    ("idle_copied_bytes_total", "Bytes of these.", |stats| {
        stats.reorganisation.idle.bytes_copied.into()
    }),
    (
        "idle_budget_bytes",
        "Bytes that may still be copied in idle time.",
        |stats| stats.reorganisation.idle.budget_bytes.into(),
    ),
    (
        "idle_seconds_total",
        "Time of reorganisation in idle time.",
        |stats| stats.reorganisation.idle.seconds.into(),
    ),
    ("snapshots", "Open snapshots.", |stats| {
        stats.snapshots.into()
    }),
    (
        "retired_pages",
        "Pages that wait for readers of older views.",
        |stats| stats.retired_pages.into(),
    ),
    (
        "scanned_dead_total",
        "Entries without a value that scans passed one by one.",
        |stats| stats.scanned_dead.into(),
    ),
    ("memory_budget_bytes", "The memory budget.", |stats| {
        stats.memory_bytes.into()
    }),
    (
        "resident_pages",
        "Frames of the mapping that hold a page.",
        |stats| stats.resident_pages.into(),
    ),
    (
        "get_leaf_reads_total",
        "Leaves that gets read from the device.",
        |stats| stats.gets.leaf_reads.into(),
    ),
    (
        "get_index_reads_total",
        "Index nodes that gets read from the device.",
        |stats| stats.gets.index_reads.into(),
    ),
    ("filter_checks_total", "Filters that gets asked.", |stats| {
        stats.gets.filter_checks.into()
    }),
    (
        "filter_exclusions_total",
        "Filters that spared a read.",
        |stats| stats.gets.filter_exclusions.into(),
    ),
    (
        "filter_failures_total",
        "Filters that spared none though the key is absent.",
        |stats| stats.gets.filter_failures.into(),
    ),
    (
        "record_hits_total",
        "Reads that found a single record in memory.",
        |stats| stats.mapping.record_hits.into(),
    ),
    (
        "pages_read_total",
        "Pages read from the device, prefetched ones included.",
        |stats| stats.mapping.pages_read.into(),
    ),
    (
        "pages_dirty",
        "Pages whose content the device does not have yet.",
        |stats| stats.mapping.pages_dirty.into(),
    ),
    (
        "write_errors_total",
        "Writes of pages that the device failed.",
        |stats| stats.mapping.write_errors.into(),
    ),
    ("device_reads_total", "Reads at the device.", |stats| {
        stats.device_reads.into()
    }),
    (
        "device_read_bytes_total",
        "Bytes read from the device.",
        |stats| stats.device_read_bytes.into(),
    ),
    ("device_writes_total", "Writes at the device.", |stats| {
        stats.device_writes.into()
    }),
    (
        "device_written_bytes_total",
        "Bytes written to the device.",
        |stats| stats.device_write_bytes.into(),
    ),
    ("device_flushes_total", "Flushes of the device.", |stats| {
        stats.device_flushes.into()
    }),
    (
        "zeroed_bytes_total",
        "Zeroes written ahead of the records of the log.",
        |stats| stats.zeroed_bytes.into(),
    ),
];

/// Those of one tree, by region and level.
const OF_LEVELS: &[Metric<LevelStats>] = &[
    (
        "level_entries",
        "Versions of keys, and deletions.",
        |level| level.entries.into(),
    ),
    ("level_leaf_pages", "Leaves, 4 KiB each.", |level| {
        level.leaf_pages.into()
    }),
    ("level_index_pages", "Index nodes, 4 KiB each.", |level| {
        level.index_pages.into()
    }),
    ("level_bytes", "All pages of the tree.", |level| {
        level.bytes.into()
    }),
    ("level_height", "Nodes from the root to a leaf.", |level| {
        u64::from(level.height).into()
    }),
];

/// Those of the pages of one class.
const OF_PAGES: &[Metric<PageClassStats>] = &[
    (
        "page_hits_total",
        "Reads that found the page in memory.",
        |pages| pages.hits.into(),
    ),
    (
        "page_misses_total",
        "Reads that waited for the device.",
        |pages| pages.misses.into(),
    ),
    ("pages_evicted_total", "Pages evicted.", |pages| {
        pages.evicted.into()
    }),
    ("pages_written_total", "Dirty pages written.", |pages| {
        pages.written.into()
    }),
];

/// What memory is used for; the label is `use`.
const OF_MEMORY: &[Use] = &[
    ("index", |memory| memory.index_bytes),
    ("leaves", |memory| memory.leaf_bytes),
    ("log_pages", |memory| memory.log_page_bytes),
    ("records", |memory| memory.record_bytes),
    ("free_frames", |memory| memory.free_frame_bytes),
    ("tables", |memory| memory.table_bytes),
    ("log_buffers", |memory| memory.log_buffer_bytes),
    ("collector", |memory| memory.collector_bytes),
    ("scans", |memory| memory.scan_bytes),
    ("l0", |memory| memory.l0_bytes),
    ("spare", |memory| memory.spare_bytes),
];

/// Ratios, without a sample while they are not defined.
const RATIOS: &[Ratio] = &[
    (
        "space_amplification_ratio",
        "Bytes of the device in use for each live byte.",
        |stats| stats.collection.space_amplification,
    ),
    (
        "space_planned_ratio",
        "Planned bytes of the device for each live byte.",
        |stats| stats.collection.space_planned,
    ),
];

impl Stats {
    /// The figures in the text format of Prometheus (content type `text/plain; version=0.0.4`). All names begin with
    /// `kreon_store_` and end in their unit, those of counters in `_total`; sizes are in bytes, times in seconds. Counters
    /// begin at 0 when the store is opened, but for `kreon_store_epoch_total`. Levels have the labels `region` and `level`. Costs a few dozen
    /// microseconds.
    pub fn to_prometheus(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        let mut push = |name: &str, help: &str, samples: Vec<(String, Number)>| {
            push_metric(&mut text, (&format!("kreon_store_{name}"), help), samples);
        };
        for (name, help, value) in OF_STORE {
            push(name, help, vec![(String::new(), value(self))]);
        }
        for (name, help, value) in RATIOS {
            let sample = value(self).map(|ratio| (String::new(), ratio.into()));
            push(name, help, sample.into_iter().collect());
        }
        for (name, help, value) in OF_LEVELS {
            let sample = |level: &LevelStats| {
                let number = level.level.to_string();
                let labels = labels(&[("region", &level.region), ("level", &number)]);
                (labels, value(level))
            };
            push(name, help, self.levels.iter().map(sample).collect());
        }
        let classes = [
            ("index", &self.pages.index),
            ("leaf", &self.pages.leaves),
            ("log", &self.pages.log),
        ];
        for (name, help, value) in OF_PAGES {
            let sample = |(class, pages): (&str, &PageClassStats)| {
                (labels(&[("class", class)]), value(pages))
            };
            push(name, help, classes.map(sample).into());
        }
        let memory = OF_MEMORY
            .iter()
            .map(|(of, bytes)| (labels(&[("use", of)]), bytes(&self.memory).into()));
        push("memory_bytes", "Memory by use.", memory.collect());
        text
    }
}
