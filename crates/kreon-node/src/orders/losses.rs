//! An operator gives up what the rest of a set may have.

use std::time::{Duration, Instant};

use kreon_replica::drive::Server;
use kreon_wire::{FailureKind, GroupId, ServerId, Term};

use super::{Outcome, Refusal};

/// How long it is watched for what becomes of it, beyond the patience of a seal.
const PATIENCE: Duration = Duration::from_secs(5);

/// The master looks so often.
const EVERY: Duration = Duration::from_millis(20);

/// The replica of a server goes on alone: waits until it is promoted, or the loss is refused.
pub fn accept(
    server: &Server,
    (group, survivor, vouched): (GroupId, ServerId, Option<Term>),
    mut is_done: impl FnMut() -> Outcome<bool>,
) -> Outcome {
    server
        .accept_loss(group, survivor, vouched)
        .map_err(|error| Refusal::new(FailureKind::Unavailable, error.to_string()))?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if server.loss_is_refused(group) {
            let text = "no loss is accepted: the group does not wait for anybody, or nobody of its set is known to have \
                        ended (vouch for that if it is so)";
            return Err(Refusal::new(FailureKind::InvalidArgument, text));
        }
        if is_done()? {
            return Ok(());
        }
        kreon_sync::sleep(EVERY);
    }
    let text = "the loss was not accepted in time: look at the group, and give the order again";
    Err(Refusal::new(FailureKind::Unavailable, text))
}
