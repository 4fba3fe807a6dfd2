//! Which command on the server.

use bytes::Bytes;

use crate::command::{Command, Id};
use crate::keyspace::Client;
use crate::reply::{CommandError, Reply};
use crate::shared::Shared;

/// The version of Redis that clients are to think of: they choose what they use by it.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// Runs one.
pub(crate) async fn run(
    shared: &Shared,
    client: &Client,
    command: &'static Command,
    args: &[Bytes],
) -> Reply {
    let _ = (shared, client, args);
    match command.id {
        Id::Config => Reply::Array(vec![]),
        _ => Reply::Error(CommandError::new("ERR not yet")),
    }
}

/// The error of Redis for the second word of a command.
pub(crate) fn unknown_subcommand(args: &[Bytes]) -> CommandError {
    let word = |place| args.get(place).map_or_else(String::new, |word: &Bytes| String::from_utf8_lossy(word).into_owned());
    let (command, what) = (word(0).to_uppercase(), word(1));
    CommandError::of(format!("ERR unknown subcommand '{what}'. Try {command} HELP."))
}
