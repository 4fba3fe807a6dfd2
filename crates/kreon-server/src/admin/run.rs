//! Which command on the server.

use std::sync::Arc;

use bytes::Bytes;

use super::{config, debug, info, latency, listing, memory, save, slow_log};
use crate::command::{Command, Id};
use crate::keyspace::Client;
use crate::reply::{CommandError, Reply};
use crate::shared::Shared;

/// Runs one. `args` begin with its name.
pub(crate) async fn run(
    shared: &Arc<Shared>,
    client: &Client,
    command: &'static Command,
    args: &[Bytes],
) -> Reply {
    let outcome = match command.id {
        Id::Info => info::info(shared, args).await,
        Id::Config => config::config(shared, args),
        Id::Command => listing::command(args),
        Id::Slowlog => slow_log::slow_log(shared, args),
        Id::Latency => latency::latency(shared, args),
        Id::Memory => memory::memory(shared, client, args).await,
        Id::Debug => debug::debug(shared, args).await,
        Id::Save => save::save(shared).await,
        Id::Bgsave => save::begin(shared),
        Id::Lastsave => Ok(Reply::Int(save::last_s(shared))),
        Id::Shutdown => save::shutdown(shared, args),
        _ => Err(CommandError::of(format!(
            "ERR unknown command '{}', with args beginning with: ",
            command.name
        ))),
    };
    outcome.unwrap_or_else(Reply::Error)
}
