//! The numbers of a store as one JSON object.

use kreon::{
    DeviceStats, ImageStats, LevelStats, MappingStats, MemoryStats, PageClassStats, Stats,
    TransferStats,
};
use serde_json::{Value, json};

use super::place::Place;

/// Fields are only ever added, and `schema` grows if one had to change its meaning: docs/stats.md lists them.
pub fn as_json(stats: &Stats, place: &Place) -> Value {
    let mut object = store_as_json(stats, place);
    if let (Value::Object(fields), Value::Object(more)) = (&mut object, traffic_as_json(stats)) {
        fields.extend(more);
    }
    object
}

fn store_as_json(stats: &Stats, place: &Place) -> Value {
    json!({
        "schema": 1,
        "path": place.path.to_string_lossy(),
        "format_version": kreon_format::FORMAT_VERSION,
        "disk_bytes": place.disk_bytes,
        "regions": place.regions,
        "epoch": stats.epoch,
        "volume_bytes": stats.volume_bytes,
        "free_bytes": stats.free_bytes,
        "log_bytes": stats.log_bytes,
        "log_live_bytes": stats.log_live_bytes,
        "replay_bytes": stats.replay_bytes,
        "image_bytes": stats.image_bytes,
        "found_damaged_image": stats.found_damaged_image,
        "images": stats.images,
        "last_image": stats.last_image.as_ref().map(image_as_json),
        "l0_entries": stats.l0_entries,
        "l0_ranges": stats.l0_ranges,
        "l0_bytes": stats.l0_bytes,
        "levels": stats.levels.iter().map(level_as_json).collect::<Vec<_>>(),
        "spills": stats.spills,
        "spill_pages_read": stats.spill_pages_read,
        "spill_pages_written": stats.spill_pages_written,
        "merges": stats.merges,
        "merge_pages_read": stats.merge_pages_read,
        "merge_pages_written": stats.merge_pages_written,
        "collection": collection_as_json(&stats.collection),
        "gets": {
            "leaf_reads": stats.gets.leaf_reads,
            "index_reads": stats.gets.index_reads,
            "filter_checks": stats.gets.filter_checks,
            "filter_exclusions": stats.gets.filter_exclusions,
            "filter_failures": stats.gets.filter_failures,
        },
        "scanned_dead": stats.scanned_dead,
        "reorganisation": {
            "ranges_found": stats.reorganisation.ranges_found,
            "ranges_moved": stats.reorganisation.ranges_moved,
            "records_moved": stats.reorganisation.records_moved,
            "bytes_copied": stats.reorganisation.bytes_copied,
            "seconds": stats.reorganisation.seconds,
            "idle": {
                "passes": stats.reorganisation.idle.passes,
                "records_moved": stats.reorganisation.idle.records_moved,
                "bytes_copied": stats.reorganisation.idle.bytes_copied,
                "budget_bytes": stats.reorganisation.idle.budget_bytes,
                "seconds": stats.reorganisation.idle.seconds,
            },
        },
        "snapshots": stats.snapshots,
        "retired_pages": stats.retired_pages,
        "memory_bytes": stats.memory_bytes,
        "memory": memory_as_json(&stats.memory),
        "resident_pages": stats.resident_pages,
        "mapping": mapping_as_json(&stats.mapping),
        "pages": {
            "index": pages_as_json(&stats.pages.index),
            "leaves": pages_as_json(&stats.pages.leaves),
            "log": pages_as_json(&stats.pages.log),
        },
    })
}

/// Fields of the same object: `json!` takes no longer one.
fn traffic_as_json(stats: &Stats) -> Value {
    json!({
        "device_reads": stats.device_reads,
        "device_read_bytes": stats.device_read_bytes,
        "device_writes": stats.device_writes,
        "device_write_bytes": stats.device_write_bytes,
        "device_flushes": stats.device_flushes,
        "zeroed_bytes": stats.zeroed_bytes,
        "device": device_as_json(&stats.device),
    })
}

fn memory_as_json(memory: &MemoryStats) -> Value {
    json!({
        "index_bytes": memory.index_bytes,
        "leaf_bytes": memory.leaf_bytes,
        "log_page_bytes": memory.log_page_bytes,
        "record_bytes": memory.record_bytes,
        "free_frame_bytes": memory.free_frame_bytes,
        "table_bytes": memory.table_bytes,
        "log_buffer_bytes": memory.log_buffer_bytes,
        "collector_bytes": memory.collector_bytes,
        "scan_bytes": memory.scan_bytes,
        "l0_bytes": memory.l0_bytes,
        "spare_bytes": memory.spare_bytes,
    })
}

fn collection_as_json(collection: &kreon::CollectionStats) -> Value {
    json!({
        "taken_bytes": collection.taken_bytes,
        "live_bytes": collection.live_bytes,
        "space_amplification": collection.space_amplification,
        "space_planned": collection.space_planned,
        "cost_planned": collection.cost_planned,
        "log_bytes": collection.log_bytes,
        "moved_bytes": collection.moved_bytes,
        "dead_bytes": collection.dead_bytes,
        "rounds": collection.rounds,
        "victims": collection.victims,
        "records_moved": collection.records_moved,
        "records_skipped": collection.records_skipped,
        "bytes_copied": collection.bytes_copied,
        "bytes_freed": collection.bytes_freed,
        "seconds": collection.seconds,
    })
}

fn mapping_as_json(mapping: &MappingStats) -> Value {
    json!({
        "hits": mapping.hits,
        "misses": mapping.misses,
        "pages_mapped": mapping.pages_mapped,
        "record_hits": mapping.record_hits,
        "pages_read": mapping.pages_read,
        "pages_read_past": mapping.pages_read_past,
        "pages_fresh": mapping.pages_fresh,
        "pages_written": mapping.pages_written,
        "writes": mapping.writes,
        "pages_written_past": mapping.pages_written_past,
        "write_errors": mapping.write_errors,
        "pages_evicted": mapping.pages_evicted,
        "stripes_emptied": mapping.stripes_emptied,
        "frames": mapping.frames,
        "frames_free": mapping.frames_free,
        "pages_resident": mapping.pages_resident,
        "frames_of_records": mapping.frames_of_records,
        "pages_dirty": mapping.pages_dirty,
        "memory_bytes": mapping.memory_bytes,
    })
}

fn pages_as_json(class: &PageClassStats) -> Value {
    json!({
        "hits": class.hits,
        "misses": class.misses,
        "evicted": class.evicted,
        "written": class.written,
    })
}

fn device_as_json(device: &DeviceStats) -> Value {
    json!({
        "reads": transfers_as_json(&device.reads),
        "writes": transfers_as_json(&device.writes),
        "flushes": device.flushes,
        "allocations": device.allocations,
        "discards": device.discards,
        "depth_max": device.depth_max,
        "depth_average": device.depth_average,
    })
}

/// `sizes`: transfers by the logarithm to base 2 of their bytes.
fn transfers_as_json(transfers: &TransferStats) -> Value {
    json!({
        "count": transfers.count,
        "bytes": transfers.bytes,
        "sizes": transfers.sizes,
    })
}

fn image_as_json(image: &ImageStats) -> Value {
    json!({
        "bytes": image.bytes,
        "seconds": image.seconds,
        "age_seconds": image.age_seconds,
    })
}

fn level_as_json(level: &LevelStats) -> Value {
    json!({
        "region": level.region,
        "level": level.level,
        "entries": level.entries,
        "leaf_pages": level.leaf_pages,
        "index_pages": level.index_pages,
        "bytes": level.bytes,
        "target_bytes": level.target_bytes,
        "height": level.height,
    })
}
