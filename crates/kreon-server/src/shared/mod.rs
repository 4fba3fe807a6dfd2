//! What all connections of a server share.

mod config;
mod ending;
mod slow_log;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Instant, SystemTime};

use crate::clients::Clients;
use crate::keyspace::Keyspace;
use crate::metrics::{History, Recorders};
use crate::pubsub::Channels;
use crate::settings::Settings;

pub(crate) use config::Config;
pub(crate) use ending::Ending;
pub(crate) use slow_log::{SlowCommand, SlowLog};

/// One server. All of it may be used from any thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub settings: Settings,
    /// What `CONFIG SET` changes.
    pub config: Config,
    pub keyspace: Arc<Keyspace>,
    pub clients: Arc<Clients>,
    pub channels: Channels,
    pub recorders: Recorders,
    pub history: History,
    pub slow_log: SlowLog,
    pub ending: Ending,
    pub since: Instant,
    /// Chance, for `INFO`: another one for each start.
    pub run_id: String,
    /// The port of the first TCP address; 0: there is none.
    pub port: u16,
    pub saves: Saves,
}

/// Backups that clients asked for.
#[derive(Debug)]
pub(crate) struct Saves {
    /// Seconds since 1970 of the last one that ended well, or of the start.
    pub last_s: AtomicI64,
    pub is_running: std::sync::atomic::AtomicBool,
    pub has_failed: std::sync::atomic::AtomicBool,
}

impl Saves {
    pub(crate) fn new() -> Self {
        Self {
            last_s: unix_s().into(),
            is_running: false.into(),
            has_failed: false.into(),
        }
    }
}

/// Seconds since 1970.
pub(crate) fn unix_s() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs() as i64)
}
