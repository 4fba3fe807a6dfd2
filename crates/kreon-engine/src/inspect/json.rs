//! The figures of a store as one JSON object. `docs/stats.md` lists the fields.

use kreon_base::json::{Json, JsonObject};
use kreon_device::{DeviceStats, TransferStats};
use kreon_format::FORMAT_VERSION;
use kreon_mapping::MappingStats;

use super::memory_stats::MemoryStats;
use super::page_stats::PageClassStats;
use super::stats::{LevelStats, Stats};
use crate::maintenance::{CollectionStats, ImageStats};

impl Stats {
    /// One JSON object in a line, of a store with these regions. Fields are only ever added, and `schema` grows if one had
    /// to change its meaning.
    pub fn to_json(&self, regions: &[String]) -> String {
        let object = traffic_as_json(store_as_json(self, regions), self);
        Json::from(object).into_text()
    }
}

fn store_as_json(stats: &Stats, regions: &[String]) -> JsonObject {
    JsonObject::default()
        .field("schema", 1_u64)
        .field("format_version", FORMAT_VERSION)
        .field("regions", Json::list(regions.iter().map(String::as_str)))
        .field("epoch", stats.epoch)
        .field("volume_bytes", stats.volume_bytes)
        .field("free_bytes", stats.free_bytes)
        .field("log_bytes", stats.log_bytes)
        .field("log_live_bytes", stats.log_live_bytes)
        .field("replay_bytes", stats.replay_bytes)
        .field("image_bytes", stats.image_bytes)
        .field("found_damaged_image", stats.found_damaged_image)
        .field("images", stats.images)
        .field("last_image", stats.last_image.as_ref().map(image_as_json))
        .field("l0_entries", stats.l0_entries)
        .field("l0_ranges", stats.l0_ranges)
        .field("l0_bytes", stats.l0_bytes)
        .field("levels", Json::list(stats.levels.iter().map(level_as_json)))
        .field("spills", stats.spills)
        .field("spill_pages_read", stats.spill_pages_read)
        .field("spill_pages_written", stats.spill_pages_written)
        .field("merges", stats.merges)
        .field("merge_pages_read", stats.merge_pages_read)
        .field("merge_pages_written", stats.merge_pages_written)
        .field("collection", collection_as_json(&stats.collection))
        .field(
            "gets",
            JsonObject::default()
                .field("leaf_reads", stats.gets.leaf_reads)
                .field("index_reads", stats.gets.index_reads)
                .field("filter_checks", stats.gets.filter_checks)
                .field("filter_exclusions", stats.gets.filter_exclusions)
                .field("filter_failures", stats.gets.filter_failures),
        )
        .field("scanned_dead", stats.scanned_dead)
        .field(
            "reorganisation",
            JsonObject::default()
                .field("ranges_found", stats.reorganisation.ranges_found)
                .field("ranges_moved", stats.reorganisation.ranges_moved)
                .field("records_moved", stats.reorganisation.records_moved)
                .field("bytes_copied", stats.reorganisation.bytes_copied)
                .field("seconds", stats.reorganisation.seconds)
                .field(
                    "idle",
                    JsonObject::default()
                        .field("passes", stats.reorganisation.idle.passes)
                        .field("records_moved", stats.reorganisation.idle.records_moved)
                        .field("bytes_copied", stats.reorganisation.idle.bytes_copied)
                        .field("budget_bytes", stats.reorganisation.idle.budget_bytes)
                        .field("seconds", stats.reorganisation.idle.seconds),
                ),
        )
        .field("snapshots", stats.snapshots)
        .field("retired_pages", stats.retired_pages)
        .field("memory_bytes", stats.memory_bytes)
        .field("memory", memory_as_json(&stats.memory))
        .field("resident_pages", stats.resident_pages)
        .field("mapping", mapping_as_json(&stats.mapping))
        .field(
            "pages",
            JsonObject::default()
                .field("index", pages_as_json(&stats.pages.index))
                .field("leaves", pages_as_json(&stats.pages.leaves))
                .field("log", pages_as_json(&stats.pages.log)),
        )
}

fn traffic_as_json(object: JsonObject, stats: &Stats) -> JsonObject {
    object
        .field("device_reads", stats.device_reads)
        .field("device_read_bytes", stats.device_read_bytes)
        .field("device_writes", stats.device_writes)
        .field("device_write_bytes", stats.device_write_bytes)
        .field("device_flushes", stats.device_flushes)
        .field("zeroed_bytes", stats.zeroed_bytes)
        .field("device", device_as_json(&stats.device))
}

fn memory_as_json(memory: &MemoryStats) -> JsonObject {
    JsonObject::default()
        .field("index_bytes", memory.index_bytes)
        .field("leaf_bytes", memory.leaf_bytes)
        .field("log_page_bytes", memory.log_page_bytes)
        .field("record_bytes", memory.record_bytes)
        .field("free_frame_bytes", memory.free_frame_bytes)
        .field("table_bytes", memory.table_bytes)
        .field("log_buffer_bytes", memory.log_buffer_bytes)
        .field("collector_bytes", memory.collector_bytes)
        .field("scan_bytes", memory.scan_bytes)
        .field("l0_bytes", memory.l0_bytes)
        .field("spare_bytes", memory.spare_bytes)
}

fn collection_as_json(collection: &CollectionStats) -> JsonObject {
    JsonObject::default()
        .field("taken_bytes", collection.taken_bytes)
        .field("live_bytes", collection.live_bytes)
        .field("space_amplification", collection.space_amplification)
        .field("space_planned", collection.space_planned)
        .field("cost_planned", collection.cost_planned)
        .field("log_bytes", collection.log_bytes)
        .field("moved_bytes", collection.moved_bytes)
        .field("dead_bytes", collection.dead_bytes)
        .field("rounds", collection.rounds)
        .field("victims", collection.victims)
        .field("records_moved", collection.records_moved)
        .field("records_skipped", collection.records_skipped)
        .field("bytes_copied", collection.bytes_copied)
        .field("bytes_freed", collection.bytes_freed)
        .field("seconds", collection.seconds)
}

fn mapping_as_json(mapping: &MappingStats) -> JsonObject {
    JsonObject::default()
        .field("hits", mapping.hits)
        .field("misses", mapping.misses)
        .field("pages_mapped", mapping.pages_mapped)
        .field("record_hits", mapping.record_hits)
        .field("pages_read", mapping.pages_read)
        .field("pages_read_past", mapping.pages_read_past)
        .field("pages_fresh", mapping.pages_fresh)
        .field("pages_written", mapping.pages_written)
        .field("writes", mapping.writes)
        .field("pages_written_past", mapping.pages_written_past)
        .field("write_errors", mapping.write_errors)
        .field("pages_evicted", mapping.pages_evicted)
        .field("stripes_emptied", mapping.stripes_emptied)
        .field("frames", mapping.frames)
        .field("frames_free", mapping.frames_free)
        .field("frames_open", mapping.frames_open)
        .field("pages_resident", mapping.pages_resident)
        .field("frames_of_records", mapping.frames_of_records)
        .field("pages_dirty", mapping.pages_dirty)
        .field("memory_bytes", mapping.memory_bytes)
}

fn pages_as_json(class: &PageClassStats) -> JsonObject {
    JsonObject::default()
        .field("hits", class.hits)
        .field("misses", class.misses)
        .field("evicted", class.evicted)
        .field("written", class.written)
}

fn device_as_json(device: &DeviceStats) -> JsonObject {
    JsonObject::default()
        .field("reads", transfers_as_json(&device.reads))
        .field("writes", transfers_as_json(&device.writes))
        .field("flushes", device.flushes)
        .field("allocations", device.allocations)
        .field("discards", device.discards)
        .field("depth_max", device.depth_max)
        .field("depth_average", device.depth_average)
}

/// `sizes`: transfers by the logarithm to base 2 of their bytes.
fn transfers_as_json(transfers: &TransferStats) -> JsonObject {
    JsonObject::default()
        .field("count", transfers.count)
        .field("bytes", transfers.bytes)
        .field("sizes", Json::list(transfers.sizes))
}

fn image_as_json(image: &ImageStats) -> JsonObject {
    JsonObject::default()
        .field("bytes", image.bytes)
        .field("seconds", image.seconds)
        .field("age_seconds", image.age_seconds)
}

fn level_as_json(level: &LevelStats) -> JsonObject {
    JsonObject::default()
        .field("region", level.region.as_str())
        .field("level", level.level)
        .field("entries", level.entries)
        .field("leaf_pages", level.leaf_pages)
        .field("index_pages", level.index_pages)
        .field("bytes", level.bytes)
        .field("target_bytes", level.target_bytes)
        .field("height", level.height)
}
