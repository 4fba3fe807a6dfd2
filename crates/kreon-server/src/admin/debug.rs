//! `DEBUG`, for tests of clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::save::sync;
use super::subcommand::{subcommand, unknown_subcommand};
use crate::reply::{CommandError, Reply};
use crate::shared::Shared;

/// `DEBUG SLEEP seconds | RELOAD | SET-ACTIVE-EXPIRE 0|1`. A sleep holds up its own connection only.
pub(super) async fn debug(shared: &Arc<Shared>, args: &[Bytes]) -> Result<Reply, CommandError> {
    const SLEEP_S_MAX: f64 = 3600.0;
    if !shared.settings.has_debug {
        return Err(CommandError::new(
            "ERR DEBUG command not allowed. Start the server with --debug to allow it.",
        ));
    }
    match (subcommand(args).as_str(), args.get(2..).unwrap_or_default()) {
        ("sleep", [seconds]) => {
            let seconds = str::from_utf8(seconds)
                .ok()
                .and_then(|text| text.parse().ok());
            let seconds: f64 = seconds.unwrap_or(0.0);
            let time = Duration::try_from_secs_f64(seconds.min(SLEEP_S_MAX)).unwrap_or_default();
            tokio::time::sleep(time).await;
            Ok(Reply::Ok)
        }
        ("reload", _) => sync(shared).await.map(|()| Reply::Ok),
        // Expired keys are gone for everybody whether they are removed or not.
        ("set-active-expire", [_]) => Ok(Reply::Ok),
        _ => Err(unknown_subcommand(args)),
    }
}
