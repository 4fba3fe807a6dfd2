//! Settings that change while the server runs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::settings::Settings;

/// What `CONFIG SET` may change.
#[derive(Debug)]
pub(crate) struct Config {
    pub clients_max: AtomicUsize,
    /// Seconds; 0: never.
    pub idle_s: AtomicU64,
}

impl Config {
    pub(crate) fn new(settings: &Settings) -> Self {
        let idle_s = settings
            .limits
            .idle_max
            .map_or(0, |time| time.as_secs().max(1));
        Self {
            clients_max: settings.limits.clients_max.into(),
            idle_s: idle_s.into(),
        }
    }

    /// After how long an idle connection is closed.
    pub(crate) fn idle_max(&self) -> Option<Duration> {
        match self.idle_s.load(Ordering::Relaxed) {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        }
    }
}
