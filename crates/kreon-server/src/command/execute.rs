//! How commands run: locks, reads, one batch, and what others are told.
//!
//! A command is a plain function that reads through an [`Access`]. It first runs in the thread of its connection, on what is in
//! memory. Where that does not suffice, or it scans, it runs anew on a thread that may wait for the device: a read at a snapshot,
//! a write with its locks in hand. So nothing blocks the other connections of a thread, and commands know nothing of it.

use std::sync::Arc;

use bytes::Bytes;

use super::bodies::{Body, body};
use super::steps::{ARGS_AT_ONCE_MAX, Run, apply, aside, stripes, unknown};
use super::{Command, Id, blocking, plain, serving};
use crate::keyspace::{Access, Client, Failure, Held, Keyspace, Source, Stripes};
use crate::reply::Reply;

/// Runs a command on data: takes the locks of its keys, runs it, writes its batch, wakes who waits for it. `args` begin
/// with the name. What the reply must wait for is noted in `client`: see [`Keyspace::durable`].
///
/// A future that is dropped has applied the command wholly or not at all.
pub(crate) async fn execute(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    command: &'static Command,
    args: &[Bytes],
) -> Reply {
    if !command.takes(args.len()) {
        return Reply::Error(command.wrong_arity());
    }
    let outcome = match body(command.id) {
        Body::Read(run) => {
            if let (Id::Get, [_, key]) = (command.id, args)
                && let Some(found) = plain::get(keyspace, client, key).await
            {
                return found;
            }
            read(keyspace, client, command, run, args).await
        }
        Body::Write(run) => {
            let stripes = stripes(keyspace, client.db.get(), command, args);
            let held = keyspace.locks().alone(stripes).await;
            write(keyspace, client, run, args, held).await
        }
        Body::Wait(run) => blocking::wait(keyspace, client, command, run, args).await,
        Body::Session => Err(unknown(command).into()),
    };
    outcome.unwrap_or_else(|failure| Reply::Error(failure.into_error()))
}

async fn read(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    command: &Command,
    run: Run,
    args: &[Bytes],
) -> Result<Reply, Failure> {
    let db = client.db.get();
    let stripes = stripes(keyspace, db, command, args);
    let is_tried_at_once = stripes != Stripes::All && args.len() <= ARGS_AT_ONCE_MAX;
    if is_tried_at_once && let Some(shared) = keyspace.locks().try_shared(stripes.clone()) {
        let mut access = Access::new(keyspace, db, Source::Memory);
        let outcome = run(&mut access, args);
        drop(shared);
        if !matches!(outcome, Err(Failure::Misses)) {
            client.holds(access.take_room());
            client.rests_on(keyspace.epochs().seen(&stripes));
            return outcome;
        }
    } else if is_tried_at_once {
        let snapshot = keyspace.store().snapshot();
        let mut access = Access::new(keyspace, db, Source::MemoryAt(&snapshot));
        let outcome = run(&mut access, args);
        if !matches!(outcome, Err(Failure::Misses)) {
            client.holds(access.take_room());
            client.rests_on(keyspace.epochs().seen(&stripes));
            return outcome;
        }
    }
    let (reader, args) = (Arc::clone(keyspace), args.to_vec());
    let outcome = aside(move || {
        let snapshot = reader.store().snapshot();
        let mut access = Access::new(&reader, db, Source::At(&snapshot));
        Ok((run(&mut access, &args)?, access.take_room()))
    });
    let outcome = outcome.await;
    let outcome = outcome.map(|(reply, room)| {
        client.holds(room);
        reply
    });
    client.rests_on(match stripes {
        Stripes::All => keyspace.epochs().all_seen(),
        _ => keyspace.epochs().seen(&stripes),
    });
    outcome
}

/// Runs a write whose locks are held.
pub(super) async fn write(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    run: Run,
    args: &[Bytes],
    held: Held,
) -> Result<Reply, Failure> {
    let db = client.db.get();
    let mut access = Access::new(keyspace, db, Source::Memory);
    let at_once = match args.len() {
        ..=ARGS_AT_ONCE_MAX => run(&mut access, args),
        _ => Err(Failure::Misses),
    };
    let outcome = match at_once {
        Err(Failure::Misses) => {
            let (writer, args) = (Arc::clone(keyspace), args.to_vec());
            aside(move || {
                let mut access = Access::new(&writer, db, Source::Device);
                let reply = run(&mut access, &args)?;
                let room = access.take_room();
                let (effects, epoch) = apply(&writer, access, &held)?;
                serving::tell(&writer, &held, &effects);
                Ok((reply, epoch, room))
            })
            .await
        }
        Err(failure) => {
            // The reply tells of what was read.
            client.rests_on(keyspace.epochs().seen(held.stripes()));
            return Err(failure);
        }
        Ok(reply) => {
            let room = access.take_room();
            let (effects, epoch) = apply(keyspace, access, &held)?;
            match serving::is_told_at_once(keyspace, &effects) {
                true => Ok((reply, epoch, room)),
                false => {
                    let writer = Arc::clone(keyspace);
                    aside(move || {
                        serving::tell(&writer, &held, &effects);
                        Ok((reply, epoch, room))
                    })
                    .await
                }
            }
        }
    };
    let (reply, epoch, room) =
        outcome.inspect_err(|_| client.rests_on(keyspace.epochs().all_seen()))?;
    client.holds(room);
    client.rests_on(epoch);
    Ok(reply)
}
