//! What all ways to run a command share.

use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::{Command, Id};
use crate::keyspace::{Access, Effects, Epoch, Failure, Held, Keyspace, Stripes};
use crate::reply::{CommandError, Reply};

/// Commands with more arguments do not run in the thread of their connection, whatever they find in memory: they would hold up
/// its other connections for milliseconds.
pub(super) const ARGS_AT_ONCE_MAX: usize = 4096;

/// The function of a command. `args` begin with the name; their number was checked.
pub(super) type Run = fn(&mut Access<'_>, &[Bytes]) -> Result<Reply, Failure>;

pub(super) fn unknown(command: &Command) -> CommandError {
    CommandError::of(format!("ERR '{}' is no command on data", command.name))
}

/// The stripes of the keys of a command; all for one that may write any key.
pub(super) fn stripes(
    keyspace: &Keyspace,
    db: usize,
    command: &Command,
    args: &[Bytes],
) -> Stripes {
    let stripe = |key: &Bytes| keyspace.locks().stripe(db, key);
    match command.id {
        Id::Copy => {
            // The second key may lie in another database.
            let keys = args.get(1).map(stripe).into_iter();
            let other = args
                .get(2)
                .map(|key| (0..keyspace.databases()).map(|db| keyspace.locks().stripe(db, key)));
            match args.len() {
                3 => Stripes::of(command.keys_of(args).map(stripe)),
                _ => Stripes::of(keys.chain(other.into_iter().flatten())),
            }
        }
        _ if command.keys.first == 0 => Stripes::All,
        _ => {
            let mut keys = command.keys_of(args);
            match (keys.next(), keys.next()) {
                (Some(one), None) => Stripes::One(stripe(one)),
                _ => Stripes::of(command.keys_of(args).map(stripe)),
            }
        }
    }
}

/// Applies the writes of a command, and tells those who watch. What the reply rests on comes back, too.
pub(super) fn apply(
    keyspace: &Keyspace,
    access: Access<'_>,
    held: &Held,
) -> Result<(Effects, Epoch), Failure> {
    if access.is_unchanged() {
        return Ok((Effects::default(), keyspace.epochs().seen(held.stripes())));
    }
    let (effects, epoch) = keyspace.epochs().write(held.stripes(), || access.apply());
    let effects = effects?;
    effects.tell_watchers(keyspace);
    Ok((effects, epoch))
}

/// Runs `work` on a thread that may wait for the device.
pub(super) async fn aside<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a command failed");
        Err(CommandError::new("ERR internal error, see the log of the server").into())
    })
}
