//! The figures of the moment.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use crate::metrics::{Process, ServerFigures, text};
use crate::settings::Persistence;
use crate::shared::Shared;

/// For Prometheus: the server's, then the store's.
pub(super) fn metrics(shared: &Shared) -> String {
    let process = Process::now();
    let clients = &shared.clients;
    let figures = ServerFigures {
        clients: clients.count() as u64,
        accepted: clients.accepted.load(Ordering::Relaxed),
        refused: clients.refused.load(Ordering::Relaxed),
        buffers_bytes: clients.budget.taken_bytes() as u64,
        subscribed_channels: shared.channels.names(None).len() as u64,
        resident_bytes: process.resident_bytes,
        cpu_s: process.user_s + process.system_s,
    };
    let mut all = text(&figures, &shared.recorders.totals());
    all.push_str(&shared.keyspace.store().stats().to_prometheus());
    all
}

/// For the page.
pub(super) fn json(shared: &Shared) -> Value {
    let store = shared.keyspace.store().stats();
    let totals = shared.recorders.totals();
    let commands = totals.commands.iter().map(|(command, figures)| {
        let us = |share| figures.times_ns.value_at_quantile(share) as f64 / 1000.0;
        json!({
            "name": command.name,
            "calls": figures.times_ns.len(),
            "failed": figures.failed + figures.refused,
            "mean_us": figures.times_ns.mean() / 1000.0,
            "p50_us": us(0.5),
            "p99_us": us(0.99),
            "p999_us": us(0.999),
        })
    });
    let levels = store.levels.iter().map(|level| {
        json!({
            "region": level.region,
            "level": level.level,
            "entries": level.entries,
            "bytes": level.bytes,
            "target_bytes": level.target_bytes,
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "up_s": shared.since.elapsed().as_secs(),
        "durability": durability(shared),
        "threads": shared.settings.threads,
        "clients": shared.clients.count(),
        "clients_max": shared.config.clients_max.load(Ordering::Relaxed),
        "memory_bytes": store.memory_bytes,
        "resident_bytes": Process::now().resident_bytes,
        "volume_bytes": store.volume_bytes,
        "free_bytes": store.free_bytes,
        "taken_bytes": store.collection.taken_bytes,
        "live_bytes": store.collection.live_bytes,
        "space_amplification": store.collection.space_amplification,
        "l0_entries": store.l0_entries,
        "l0_bytes": store.l0_bytes,
        "replay_bytes": store.replay_bytes,
        "memory": memory_classes(&store),
        "levels": levels.collect::<Vec<_>>(),
        "commands": commands.collect::<Vec<_>>(),
        "errors": totals.errors,
        "samples": shared.history.samples(),
    })
}

fn durability(shared: &Shared) -> String {
    match shared.settings.persistence {
        Persistence::Sync => "sync".to_owned(),
        Persistence::Buffered => "buffered".to_owned(),
        Persistence::Interval(time) => format!("interval:{}", time.as_millis()),
    }
}

/// Memory of the store by use, in bytes.
pub(super) fn memory_classes(store: &kreon::Stats) -> Value {
    let memory = &store.memory;
    let classes = [
        ("in-memory level", memory.l0_bytes),
        ("index", memory.index_bytes),
        ("leaves", memory.leaf_bytes),
        ("log", memory.log_page_bytes + memory.log_buffer_bytes),
        ("records", memory.record_bytes),
        (
            "other",
            memory.table_bytes + memory.collector_bytes + memory.scan_bytes,
        ),
        ("free", memory.free_frame_bytes + memory.spare_bytes),
    ];
    let classes = classes.map(|(name, bytes)| (name.to_owned(), bytes.into()));
    Value::Object(Map::from_iter(classes))
}
