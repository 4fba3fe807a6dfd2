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

/// The error of Redis for the second word of a command.
pub(crate) fn unknown_subcommand(args: &[Bytes]) -> CommandError {
    let word = |place: usize| {
        let word = args.get(place).map(|word| String::from_utf8_lossy(word));
        word.unwrap_or_default().into_owned()
    };
    let (command, what) = (word(0).to_uppercase(), word(1));
    CommandError::of(format!(
        "ERR unknown subcommand '{what}'. Try {command} HELP."
    ))
}

/// The second word in lower case.
pub(super) fn subcommand(args: &[Bytes]) -> String {
    let word = args.get(1).map(|word| String::from_utf8_lossy(word));
    word.unwrap_or_default().to_ascii_lowercase()
}
