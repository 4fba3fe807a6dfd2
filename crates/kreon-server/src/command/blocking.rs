//! Commands that wait for other clients: `BLPOP`, `BRPOP`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::args::parse_float;
use super::execute::{Run, apply, aside, stripes};
use super::{Command, Id};
use crate::keyspace::{
    Access, Client, DbKey, End, Epoch, Failure, Held, Keyspace, Source, Waiting,
};
use crate::reply::{CommandError, Reply};

/// Longest wait, in seconds; longer ones are for ever.
const WAIT_SECONDS_MAX: f64 = 1e9;

/// Runs the command; if there is nothing to take, waits until somebody gives it or the time is over.
///
/// A future that is dropped while it waits has taken nothing, unless an element was on the way to it.
pub(super) async fn wait(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    command: &'static Command,
    run: Run,
    args: &[Bytes],
) -> Result<Reply, Failure> {
    let time = wait_time(args)?;
    let db = client.db.get();
    let held = keyspace.locks().alone(stripes(keyspace, db, command, args));
    let attempt = Attempt {
        run,
        end: if command.id == Id::Blpop {
            End::Left
        } else {
            End::Right
        },
        // Copies: slices would keep all that was received with them.
        keys: command
            .keys_of(args)
            .map(|key| (db, Bytes::copy_from_slice(key)))
            .collect(),
        args: args.to_vec(),
        held: held.await,
    };
    let taken = match attempt.make(keyspace, Source::Memory) {
        Err(Failure::Misses) => {
            let waiter = Arc::clone(keyspace);
            aside(move || attempt.make(&waiter, Source::Device)).await
        }
        taken => {
            drop(attempt);
            taken
        }
    };
    let mut place = match taken? {
        Taken::Reply(reply, epoch) => {
            client.rests_on(epoch);
            return Ok(reply);
        }
        Taken::Place(place) => place,
    };
    let served = match time {
        None => place.served().await,
        Some(time) => match timeout(time, place.served()).await {
            Ok(served) => served,
            Err(_) => place.end().await,
        },
    };
    Ok(match served {
        None => Reply::NilArray,
        Some(served) => {
            client.rests_on(served.epoch);
            let key = Reply::Bulk(served.key.1);
            Reply::Array(vec![key, Reply::Bulk(served.element.into())])
        }
    })
}

/// One look at the lists, with the locks of their keys.
struct Attempt {
    run: Run,
    end: End,
    keys: Vec<DbKey>,
    args: Vec<Bytes>,
    held: Held,
}

enum Taken {
    Reply(Reply, Epoch),
    /// All lists were empty.
    Place(Waiting),
}

impl Attempt {
    fn make(&self, keyspace: &Arc<Keyspace>, source: Source<'_>) -> Result<Taken, Failure> {
        let db = self.keys.first().map_or(0, |(db, _)| *db);
        let mut access = Access::new(keyspace, db, source);
        let reply = (self.run)(&mut access, &self.args)?;
        if reply == Reply::NilArray {
            let place = keyspace.waiters().wait(self.keys.clone(), self.end);
            return Ok(Taken::Place(place));
        }
        let (_, epoch) = apply(keyspace, access, &self.held)?;
        Ok(Taken::Reply(reply, epoch))
    }
}

/// The last argument, in seconds; 0 is for ever.
fn wait_time(args: &[Bytes]) -> Result<Option<Duration>, CommandError> {
    let not_float = CommandError::new("ERR timeout is not a float or out of range");
    let seconds = args.last().and_then(|argument| parse_float(argument));
    match seconds {
        None => Err(not_float),
        Some(seconds) if seconds.is_infinite() => Err(not_float),
        Some(..0.0) => Err(CommandError::new("ERR timeout is negative")),
        Some(0.0) => Ok(None),
        Some(seconds) if seconds > WAIT_SECONDS_MAX => Ok(None),
        // Never nothing at all: that would be for ever.
        Some(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
    }
}
