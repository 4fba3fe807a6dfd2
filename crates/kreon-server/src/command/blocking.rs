//! Commands that wait for other clients: `BLPOP`, `BRPOP`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::time::timeout;

use super::args::wait_time;
use super::steps::{ARGS_AT_ONCE_MAX, Run, apply, aside, stripes};
use super::{Command, Id};
use crate::keyspace::{
    Access, Client, DbKey, End, Epoch, Failure, Held, Keyspace, Room, Source, Waiting,
};
use crate::reply::Reply;

/// Runs the command; if there is nothing to take, waits until somebody gives it or the time is over.
///
/// A future that is dropped while [its client waits](Client::is_waiting) has taken nothing, unless an element was on the way to
/// it. Before that it may be about to take one.
pub(super) async fn wait(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    command: &'static Command,
    run: Run,
    args: &[Bytes],
) -> Result<Reply, Failure> {
    let time = wait_time(args)?;
    let db = client.db.get();
    // Held for as long as it waits.
    let mut room = Room::default();
    let keys = command.keys_of(args);
    room.grows(keyspace.rooms(), keys.map(place_bytes).sum())?;
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
    let at_once = match args.len() {
        ..=ARGS_AT_ONCE_MAX => attempt.make(keyspace, Source::Memory),
        _ => Err(Failure::Misses),
    };
    let taken = match at_once {
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
        Taken::Place(place, epoch) => {
            client.rests_on(epoch);
            place
        }
    };
    let _waits = Waits::begin(client);
    let served = match time {
        None => Some(place.served().await?),
        Some(time) => match timeout(time, place.served()).await {
            Ok(served) => Some(served?),
            Err(_) => place.end().await?,
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

/// As long as it lives, the client is one that waits, and may be told to give up.
struct Waits<'a>(&'a AtomicBool);

impl<'a> Waits<'a> {
    fn begin(client: &'a Client) -> Self {
        client.is_waiting.store(true, Ordering::Relaxed);
        Self(&client.is_waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// What the place in the queue of a key takes in memory, about.
fn place_bytes(key: &Bytes) -> usize {
    const ENTRIES_BYTES: usize = 256;
    key.len() + ENTRIES_BYTES
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
    Place(Waiting, Epoch),
}

impl Attempt {
    fn make(&self, keyspace: &Arc<Keyspace>, source: Source<'_>) -> Result<Taken, Failure> {
        let db = self.keys.first().map_or(0, |(db, _)| *db);
        let mut access = Access::new(keyspace, db, source);
        let reply = (self.run)(&mut access, &self.args)?;
        if reply == Reply::NilArray {
            let place = keyspace.waiters().wait(self.keys.clone(), self.end);
            return Ok(Taken::Place(
                place,
                keyspace.epochs().seen(self.held.stripes()),
            ));
        }
        let (_, epoch) = apply(keyspace, access, &self.held)?;
        Ok(Taken::Reply(reply, epoch))
    }
}
