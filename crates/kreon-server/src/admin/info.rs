//! `INFO`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::clients::ClientKind;
use crate::metrics::{Process, Totals};
use crate::reply::{CommandError, Reply};
use crate::settings::Persistence;
use crate::shared::{Shared, unix_s};

/// The version of Redis that clients are to think of: they choose by it what they use.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// The section that costs a read of all keys.
const KEYSPACE: &str = "keyspace";

/// A section: its name, whether it is told if none is named, and its lines.
type Section = (&'static str, bool, fn(&Facts<'_>, &mut String));

const SECTIONS: &[Section] = &[
    ("server", true, server),
    ("clients", true, clients),
    ("memory", true, memory),
    ("persistence", true, persistence),
    ("stats", true, stats),
    ("replication", true, replication),
    ("cpu", true, cpu),
    ("modules", true, |_, _| ()),
    ("commandstats", false, commands),
    ("latencystats", false, latencies),
    ("errorstats", true, errors),
    ("cluster", true, |_, text| line(text, "cluster_enabled", 0)),
    (KEYSPACE, false, keys),
    ("kreon", true, kreon),
];

/// What sections tell.
struct Facts<'a> {
    shared: &'a Shared,
    totals: Totals,
    store: kreon::Stats,
    process: Process,
    /// Of each database that has any; empty where the section is not asked for.
    keys: Vec<(usize, u64)>,
}

/// `INFO [section ...]`. Keys are counted only for whoever names the section `keyspace`: that reads all of them, as `DBSIZE` does.
pub(super) async fn info(shared: &Arc<Shared>, args: &[Bytes]) -> Result<Reply, CommandError> {
    let asked = args.iter().skip(1).map(|name| name.to_ascii_lowercase());
    let asked: Vec<Vec<u8>> = asked.collect();
    let has = |name: &str| asked.iter().any(|asked| asked == name.as_bytes());
    let (all, default) = (
        has("all") || has("everything"),
        asked.is_empty() || has("default"),
    );
    let facts = Facts {
        shared,
        totals: shared.recorders.totals(),
        store: shared.keyspace.store().stats(),
        process: Process::now(),
        keys: match has(KEYSPACE) {
            true => shared.keyspace.census().await?,
            false => Vec::new(),
        },
    };
    let mut text = String::new();
    for (name, is_default, lines) in SECTIONS {
        let is_one_of_all = all && *name != KEYSPACE;
        if !(is_one_of_all || has(name) || (default && *is_default)) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut title = (*name).to_owned();
        title.get_mut(..1).map(str::make_ascii_uppercase);
        let _ = write!(text, "# {title}\r\n");
        lines(&facts, &mut text);
    }
    Ok(Reply::Text(text))
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(text, "{name}:{value}\r\n");
}

fn server(facts: &Facts<'_>, text: &mut String) {
    let shared = facts.shared;
    let up_s = shared.since.elapsed().as_secs();
    line(text, "redis_version", REDIS_VERSION);
    line(text, "redis_mode", "standalone");
    line(text, "kreon_version", env!("CARGO_PKG_VERSION"));
    line(text, "os", std::env::consts::OS);
    line(text, "arch_bits", usize::BITS);
    line(text, "process_id", std::process::id());
    line(text, "run_id", &shared.run_id);
    line(text, "tcp_port", shared.port);
    line(text, "server_time_usec", unix_s().saturating_mul(1_000_000));
    line(text, "uptime_in_seconds", up_s);
    line(text, "uptime_in_days", up_s / 86_400);
    line(text, "io_threads_active", shared.settings.threads);
}

fn clients(facts: &Facts<'_>, text: &mut String) {
    let clients = &facts.shared.clients;
    let entries = clients.entries();
    let count = |is: &dyn Fn(&crate::clients::ClientEntry) -> bool| {
        entries.iter().filter(|entry| is(entry)).count()
    };
    line(text, "connected_clients", clients.count());
    line(text, "cluster_connections", 0);
    line(
        text,
        "maxclients",
        facts.shared.config.clients_max.load(Ordering::Relaxed),
    );
    line(
        text,
        "blocked_clients",
        count(&|entry| entry.is_waiting.load(Ordering::Relaxed)),
    );
    line(
        text,
        "pubsub_clients",
        count(&|entry| entry.kind() == ClientKind::PubSub),
    );
    line(
        text,
        "watching_clients",
        count(&|entry| entry.watched.load(Ordering::Relaxed) > 0),
    );
    line(text, "clients_buffers_bytes", clients.budget.taken_bytes());
}

fn memory(facts: &Facts<'_>, text: &mut String) {
    let memory = &facts.store.memory;
    line(text, "used_memory", facts.process.resident_bytes);
    line(text, "used_memory_rss", facts.process.resident_bytes);
    line(text, "maxmemory", 0);
    line(text, "maxmemory_policy", "noeviction");
    line(text, "store_memory_budget", facts.store.memory_bytes);
    line(text, "store_memory_l0", memory.l0_bytes);
    line(text, "store_memory_index", memory.index_bytes);
    line(text, "store_memory_leaves", memory.leaf_bytes);
    line(
        text,
        "store_memory_log",
        memory.log_page_bytes + memory.log_buffer_bytes,
    );
    line(text, "store_memory_records", memory.record_bytes);
    line(text, "store_memory_free", memory.free_frame_bytes);
}

fn persistence(facts: &Facts<'_>, text: &mut String) {
    let saves = &facts.shared.saves;
    let durability = match facts.shared.settings.persistence {
        Persistence::Sync => "sync".to_owned(),
        Persistence::Buffered => "buffered".to_owned(),
        Persistence::Interval(time) => format!("interval:{}", time.as_millis()),
    };
    let (running, failed) = (&saves.is_running, &saves.has_failed);
    line(text, "loading", 0);
    line(
        text,
        "rdb_bgsave_in_progress",
        i32::from(running.load(Ordering::Relaxed)),
    );
    line(
        text,
        "rdb_last_save_time",
        saves.last_s.load(Ordering::Relaxed),
    );
    line(
        text,
        "rdb_last_bgsave_status",
        match failed.load(Ordering::Relaxed) {
            true => "err",
            false => "ok",
        },
    );
    line(text, "aof_enabled", 1);
    line(text, "aof_last_write_status", "ok");
    line(text, "durability", durability);
}

fn stats(facts: &Facts<'_>, text: &mut String) {
    let (shared, totals) = (facts.shared, &facts.totals);
    line(
        text,
        "total_connections_received",
        shared.clients.accepted.load(Ordering::Relaxed),
    );
    line(
        text,
        "rejected_connections",
        shared.clients.refused.load(Ordering::Relaxed),
    );
    line(text, "total_commands_processed", totals.requests);
    line(text, "total_net_input_bytes", totals.received_bytes);
    line(text, "total_net_output_bytes", totals.sent_bytes);
    line(
        text,
        "total_error_replies",
        totals.errors.values().sum::<u64>(),
    );
    line(text, "protocol_errors", totals.violations);
    line(text, "pubsub_channels", shared.channels.names(None).len());
    line(text, "pubsub_patterns", shared.channels.patterns());
    line(text, "evicted_keys", 0);
}

fn replication(_: &Facts<'_>, text: &mut String) {
    line(text, "role", "master");
    line(text, "connected_slaves", 0);
    line(text, "master_repl_offset", 0);
}

fn cpu(facts: &Facts<'_>, text: &mut String) {
    line(
        text,
        "used_cpu_sys",
        format_args!("{:.6}", facts.process.system_s),
    );
    line(
        text,
        "used_cpu_user",
        format_args!("{:.6}", facts.process.user_s),
    );
}

fn commands(facts: &Facts<'_>, text: &mut String) {
    for (command, figures) in &facts.totals.commands {
        let calls = figures.times_ns.len();
        let us = figures.total.as_micros();
        let each_us = us as f64 / calls.max(1) as f64;
        let _ = write!(
            text,
            "cmdstat_{}:calls={calls},usec={us},usec_per_call={each_us:.2},rejected_calls={},failed_calls={}\r\n",
            command.name, figures.refused, figures.failed
        );
    }
}

fn latencies(facts: &Facts<'_>, text: &mut String) {
    for (command, figures) in &facts.totals.commands {
        let us = |share| figures.times_ns.value_at_quantile(share) as f64 / 1000.0;
        let _ = write!(
            text,
            "latency_percentiles_usec_{}:p50={:.3},p99={:.3},p99.9={:.3}\r\n",
            command.name,
            us(0.5),
            us(0.99),
            us(0.999)
        );
    }
}

fn errors(facts: &Facts<'_>, text: &mut String) {
    for (code, count) in &facts.totals.errors {
        let _ = write!(text, "errorstat_{code}:count={count}\r\n");
    }
}

fn keys(facts: &Facts<'_>, text: &mut String) {
    for (db, keys) in &facts.keys {
        line(text, &format!("db{db}"), format_args!("keys={keys}"));
    }
}

fn kreon(facts: &Facts<'_>, text: &mut String) {
    let store = &facts.store;
    line(text, "epoch", store.epoch);
    line(text, "volume_bytes", store.volume_bytes);
    line(text, "free_bytes", store.free_bytes);
    line(text, "log_bytes", store.log_bytes);
    line(text, "replay_bytes", store.replay_bytes);
    line(text, "l0_entries", store.l0_entries);
    line(text, "l0_bytes", store.l0_bytes);
    line(text, "levels", store.levels.len());
    line(text, "spills", store.spills);
    line(text, "device_reads", store.device_reads);
    line(text, "device_read_bytes", store.device_read_bytes);
    line(text, "device_writes", store.device_writes);
    line(text, "device_write_bytes", store.device_write_bytes);
    line(text, "device_flushes", store.device_flushes);
}
