//! `SAVE`, `BGSAVE`, `LASTSAVE`, `SHUTDOWN`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use kreon::Backup;

use crate::reply::{CommandError, Reply};
use crate::shared::{Shared, unix_s};

const UNDER_WAY: CommandError = CommandError::new("ERR Background save already in progress");

/// Makes everything durable, and a backup if there is a folder for it. The connection waits.
pub(super) async fn save(shared: &Arc<Shared>) -> Result<Reply, CommandError> {
    if shared.saves.is_running.swap(true, Ordering::AcqRel) {
        return Err(UNDER_WAY);
    }
    let work = Arc::clone(shared);
    let saved = tokio::task::spawn_blocking(move || run(&work)).await;
    match saved {
        Ok(Ok(())) => Ok(Reply::Ok),
        Ok(Err(error)) => Err(CommandError::of(format!("ERR {error}"))),
        Err(_) => Err(CommandError::new("ERR the save was cut off")),
    }
}

/// The same, and the connection goes on.
pub(super) fn begin(shared: &Arc<Shared>) -> Result<Reply, CommandError> {
    if shared.saves.is_running.swap(true, Ordering::AcqRel) {
        return Err(UNDER_WAY);
    }
    let work = Arc::clone(shared);
    drop(tokio::task::spawn_blocking(move || run(&work)));
    Ok(Reply::Simple("Background saving started"))
}

/// Blocks for as long as it takes.
fn run(shared: &Shared) -> kreon::Result<()> {
    let store = shared.keyspace.store();
    let saved = match &shared.settings.backups {
        Some(folder) => Backup::at(folder).make(store).map(drop),
        None => store.sync(),
    };
    match &saved {
        Ok(()) => shared.saves.last_s.store(unix_s(), Ordering::Relaxed),
        Err(error) => tracing::error!(%error, "no backup was made"),
    }
    shared
        .saves
        .has_failed
        .store(saved.is_err(), Ordering::Relaxed);
    shared.saves.is_running.store(false, Ordering::Release);
    saved
}

/// Makes everything durable.
pub(super) async fn sync(shared: &Arc<Shared>) -> Result<(), CommandError> {
    let synced = shared.keyspace.store().sync_async().await;
    synced.map_err(|error| CommandError::of(format!("ERR {error}")))
}

/// Seconds since 1970 of the last save that ended well.
pub(super) fn last_s(shared: &Shared) -> i64 {
    shared.saves.last_s.load(Ordering::Relaxed)
}

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE]`: everything is durable afterwards in any case. There is no reply.
pub(super) fn shutdown(shared: &Shared, args: &[Bytes]) -> Result<Reply, CommandError> {
    let options = args
        .iter()
        .skip(1)
        .map(|option| option.to_ascii_lowercase());
    for option in options {
        match option.as_slice() {
            b"save" | b"nosave" | b"now" | b"force" => {}
            b"abort" => return Err(CommandError::new("ERR No shutdown in progress.")),
            _ => return Err(CommandError::new("ERR syntax error")),
        }
    }
    shared.ending.ask();
    Ok(Reply::Ok)
}
