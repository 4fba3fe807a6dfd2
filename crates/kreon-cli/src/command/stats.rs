//! `kreon stats`: what the store holds and has done.

use clap::Args;
use kreon::{LevelStats, MemoryStats, Result};
use serde_json::{Value, json};

use crate::session::Session;
use crate::sink::Sink;

/// Print what the store holds and what it did since it was opened
#[derive(Debug, Args)]
pub struct Stats {
    /// As one JSON object, with sizes in bytes
    #[arg(long)]
    json: bool,
}

impl Stats {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let stats = session.store.stats();
        match self.json {
            true => out.line(&as_json(&stats).to_string()),
            false => out.write(stats.to_string().as_bytes()),
        }
    }
}

fn as_json(stats: &kreon::Stats) -> Value {
    json!({
        "epoch": stats.epoch,
        "volume_bytes": stats.volume_bytes,
        "free_bytes": stats.free_bytes,
        "log_bytes": stats.log_bytes,
        "log_live_bytes": stats.log_live_bytes,
        "replay_bytes": stats.replay_bytes,
        "l0_entries": stats.l0_entries,
        "l0_bytes": stats.l0_bytes,
        "levels": stats.levels.iter().map(level_as_json).collect::<Vec<_>>(),
        "spills": stats.spills,
        "snapshots": stats.snapshots,
        "retired_pages": stats.retired_pages,
        "memory_bytes": stats.memory_bytes,
        "memory": memory_as_json(&stats.memory),
        "resident_pages": stats.resident_pages,
        "page_hits": stats.mapping.hits,
        "record_hits": stats.mapping.record_hits,
        "page_misses": stats.mapping.misses,
        "pages_evicted": stats.mapping.pages_evicted,
        "pages_written_back": stats.mapping.pages_written,
        "writebacks": stats.mapping.writes,
        "device_reads": stats.device_reads,
        "device_read_bytes": stats.device_read_bytes,
        "device_writes": stats.device_writes,
        "device_write_bytes": stats.device_write_bytes,
        "device_flushes": stats.device_flushes,
        "device_depth_max": stats.device.depth_max,
        "device_depth_average": stats.device.depth_average,
        "device_reads_by_log2_bytes": stats.device.reads.sizes,
        "device_writes_by_log2_bytes": stats.device.writes.sizes,
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
        "l0_bytes": memory.l0_bytes,
        "spare_bytes": memory.spare_bytes,
    })
}

fn level_as_json(level: &LevelStats) -> Value {
    json!({
        "region": level.region,
        "level": level.level,
        "entries": level.entries,
        "leaf_pages": level.leaf_pages,
        "index_pages": level.index_pages,
        "height": level.height,
    })
}
