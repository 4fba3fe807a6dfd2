//! `CONFIG`.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::subcommand::{subcommand, unknown_subcommand};
use crate::command::glob_matches;
use crate::reply::{CommandError, Reply};
use crate::settings::Persistence;
use crate::shared::Shared;

/// A parameter: its name, its value, and how it is changed if it can be. False: not to this value.
struct Parameter {
    name: &'static str,
    get: fn(&Shared) -> String,
    set: Option<fn(&Shared, &str) -> bool>,
}

const fn fixed(name: &'static str, get: fn(&Shared) -> String) -> Parameter {
    Parameter {
        name,
        get,
        set: None,
    }
}

const fn changeable(
    name: &'static str,
    get: fn(&Shared) -> String,
    set: fn(&Shared, &str) -> bool,
) -> Parameter {
    Parameter {
        name,
        get,
        set: Some(set),
    }
}

/// Those of Redis that mean something here, and those that clients look at before they begin.
const PARAMETERS: &[Parameter] = &[
    fixed("appendfsync", |shared| {
        let name = match shared.settings.persistence {
            Persistence::Sync => "always",
            Persistence::Interval(_) => "everysec",
            Persistence::Buffered => "no",
        };
        name.to_owned()
    }),
    fixed("appendonly", |_| "yes".to_owned()),
    fixed("bind", |shared| shared.settings.listen.join(" ")),
    fixed("client-output-buffer-limit", |shared| {
        let bytes = shared.settings.limits.output_bytes_max;
        format!("normal {bytes} 0 0 slave 0 0 0 pubsub {bytes} 0 0")
    }),
    fixed("client-query-buffer-limit", |shared| {
        shared.settings.limits.request_bytes_max.to_string()
    }),
    fixed("cluster-enabled", |_| "no".to_owned()),
    fixed("databases", |shared| {
        shared.keyspace.databases().to_string()
    }),
    fixed("dir", |shared| {
        let folder = shared.settings.backups.as_ref();
        folder.map_or_else(String::new, |folder| folder.display().to_string())
    }),
    fixed("io-threads", |shared| shared.settings.threads.to_string()),
    fixed("latency-monitor-threshold", |_| "0".to_owned()),
    changeable(
        "maxclients",
        |shared| {
            shared
                .config
                .clients_max
                .load(Ordering::Relaxed)
                .to_string()
        },
        |shared, text| match text.parse() {
            Ok(number) if number > 0 => {
                shared.config.clients_max.store(number, Ordering::Relaxed);
                true
            }
            _ => false,
        },
    ),
    // The memory of the store is a budget that no key is thrown out for.
    fixed("maxmemory", |_| "0".to_owned()),
    fixed("maxmemory-clients", |shared| {
        shared.settings.limits.buffers_bytes_max.to_string()
    }),
    fixed("maxmemory-policy", |_| "noeviction".to_owned()),
    fixed("port", |shared| shared.port.to_string()),
    fixed("proto-max-bulk-len", |shared| {
        shared.settings.limits.bulk_bytes_max.to_string()
    }),
    fixed("protected-mode", |shared| {
        if shared.settings.is_protected {
            "yes"
        } else {
            "no"
        }
        .to_owned()
    }),
    fixed("save", |_| String::new()),
    changeable(
        "slowlog-log-slower-than",
        |shared| {
            shared
                .slow_log
                .slower_us
                .load(Ordering::Relaxed)
                .to_string()
        },
        |shared, text| match text.parse() {
            Ok(us) if us >= -1 => {
                shared.slow_log.slower_us.store(us, Ordering::Relaxed);
                true
            }
            _ => false,
        },
    ),
    changeable(
        "slowlog-max-len",
        |shared| shared.slow_log.len_max.load(Ordering::Relaxed).to_string(),
        |shared, text| {
            /// Each may take some KiB.
            const LEN_MAX: usize = 1 << 20;
            let len = text.parse().ok().filter(|len| *len <= LEN_MAX);
            len.inspect(|len| shared.slow_log.set_len_max(*len))
                .is_some()
        },
    ),
    changeable(
        "timeout",
        |shared| shared.config.idle_s.load(Ordering::Relaxed).to_string(),
        |shared, text| match text.parse::<u32>() {
            Ok(seconds) => {
                shared
                    .config
                    .idle_s
                    .store(seconds.into(), Ordering::Relaxed);
                true
            }
            Err(_) => false,
        },
    ),
    fixed("tls-port", |shared| match shared.settings.tls {
        Some(_) => shared.port.to_string(),
        None => "0".to_owned(),
    }),
    fixed("unixsocket", |shared| {
        let path = shared.settings.unix.as_ref();
        path.map_or_else(String::new, |path| path.display().to_string())
    }),
];

/// `CONFIG GET pattern ... | SET name value ... | RESETSTAT`. Nothing is written to the file of settings.
pub(super) fn config(shared: &Shared, args: &[Bytes]) -> Result<Reply, CommandError> {
    match (subcommand(args).as_str(), args.get(2..).unwrap_or_default()) {
        ("get", patterns @ [_, ..]) => Ok(get(shared, patterns)),
        ("set", pairs @ [_, _, ..]) => set(shared, pairs),
        ("resetstat", []) => {
            shared.recorders.reset();
            Ok(Reply::Ok)
        }
        ("rewrite", []) => Err(CommandError::new(
            "ERR The server is running without a config file that it could rewrite",
        )),
        _ => Err(unknown_subcommand(args)),
    }
}

fn get(shared: &Shared, patterns: &[Bytes]) -> Reply {
    let patterns: Vec<_> = patterns
        .iter()
        .map(|pattern| pattern.to_ascii_lowercase())
        .collect();
    let is_asked = |parameter: &&Parameter| {
        let name = parameter.name.as_bytes();
        patterns.iter().any(|pattern| glob_matches(pattern, name))
    };
    let asked = PARAMETERS.iter().filter(is_asked);
    let pairs = asked.map(|parameter| {
        let value = Bytes::from((parameter.get)(shared));
        (Reply::constant(parameter.name), Reply::Bulk(value))
    });
    Reply::Map(pairs.collect())
}

/// All of them, or none if the name or the value of one is wrong.
fn set(shared: &Shared, pairs: &[Bytes]) -> Result<Reply, CommandError> {
    let (pairs, rest) = pairs.as_chunks::<2>();
    let mut changes = Vec::with_capacity(pairs.len());
    for [name, value] in pairs {
        let shown = String::from_utf8_lossy(name).into_owned();
        let known = PARAMETERS
            .iter()
            .find(|parameter| name.eq_ignore_ascii_case(parameter.name.as_bytes()));
        let Some(parameter) = known.filter(|_| rest.is_empty()) else {
            return Err(CommandError::of(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"
            )));
        };
        let Some(change) = parameter.set else {
            return Err(CommandError::of(format!(
                "ERR CONFIG SET failed (possibly related to argument '{shown}') - can't set immutable config"
            )));
        };
        changes.push((change, parameter.get, value, shown));
    }
    let mut undo = Vec::with_capacity(changes.len());
    for (change, get, value, shown) in changes {
        undo.push((change, get(shared)));
        let is_set = str::from_utf8(value).is_ok_and(|value| change(shared, value));
        if !is_set {
            for (change, before) in undo.iter().rev() {
                change(shared, before);
            }
            return Err(CommandError::of(format!(
                "ERR CONFIG SET failed (possibly related to argument '{shown}') - argument couldn't be parsed or is out of range"
            )));
        }
    }
    Ok(Reply::Ok)
}
