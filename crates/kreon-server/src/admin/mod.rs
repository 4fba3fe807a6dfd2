//! Commands on the server.

mod config;
mod debug;
mod info;
mod latency;
mod listing;
mod memory;
mod run;
mod save;
mod slow_log;
mod subcommand;

pub(crate) use info::REDIS_VERSION;
pub(crate) use run::run;
pub(crate) use subcommand::unknown_subcommand;
