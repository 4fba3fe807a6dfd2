//! `EXEC`: commands as one.

use std::sync::Arc;

use bytes::Bytes;
use kreon::{Durability, Isolation, TransactionOptions};

use super::args::{NOT_INTEGER, parse_integer};
use super::bodies::{Body, body};
use super::steps::{Run, aside, stripes, unknown};
use super::{Command, Id, serving};
use crate::keyspace::{
    Access, Client, Effects, Epoch, Failure, Held, Keyspace, Room, Source, Stripes, Watching,
};
use crate::reply::{CommandError, Reply};

/// Keys and values that a transaction may write, in bytes.
const BYTES_MAX: usize = 1 << 30;

type Queued = (&'static Command, Vec<Bytes>);

/// One command, ready to run.
enum Step {
    Run {
        run: Run,
        db: usize,
        args: Vec<Bytes>,
    },
    /// `SELECT`: the commands behind it go to another database.
    Select,
    Refused(CommandError),
}

/// `EXEC`: runs commands on data, and `SELECT`, as one, of which others see all or nothing. The reply is [`Reply::NilArray`] if a key
/// of `watching` was changed; whoever calls ends the watching. A command that fails has no effect, the others have theirs; if the
/// store fails, none has any.
pub(crate) async fn execute_all(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    commands: &[Queued],
    watching: &Watching,
) -> Reply {
    let (plan, db) = plan(keyspace, client.db.get(), commands, watching);
    let held = keyspace.locks().alone(plan.stripes()).await;
    if watching.is_broken(keyspace.now_ms()) {
        client.rests_on(keyspace.epochs().seen(held.stripes()));
        return Reply::NilArray;
    }
    let runner = Arc::clone(keyspace);
    let end_ms = watching.first_end_ms();
    match aside(move || run_all(&runner, plan.steps, &held, end_ms)).await {
        Ok(None) => {
            client.rests_on(keyspace.epochs().all_seen());
            Reply::NilArray
        }
        Ok(Some((replies, epoch, room))) => {
            client.db.set(db);
            client.holds(room);
            client.rests_on(epoch);
            Reply::Array(replies)
        }
        Err(failure) => {
            client.rests_on(keyspace.epochs().all_seen());
            Reply::Error(failure.into_error())
        }
    }
}

/// What is to be run and locked.
struct Plan {
    steps: Vec<Step>,
    stripes: Vec<u16>,
    is_all: bool,
}

impl Plan {
    fn stripes(&self) -> Stripes {
        match self.is_all {
            true => Stripes::All,
            false => Stripes::of(self.stripes.iter().copied()),
        }
    }

    fn lock(&mut self, stripes: &Stripes) {
        match stripes {
            Stripes::All => self.is_all = true,
            some => self.stripes.extend(some.iter()),
        }
    }
}

/// The plan, and the database that is selected at the end.
fn plan(
    keyspace: &Keyspace,
    mut db: usize,
    commands: &[Queued],
    watching: &Watching,
) -> (Plan, usize) {
    let mut plan = Plan {
        steps: Vec::with_capacity(commands.len()),
        stripes: Vec::new(),
        is_all: false,
    };
    for (db, key) in watching.keys() {
        plan.stripes.push(keyspace.locks().stripe(*db, key));
    }
    for (command, args) in commands {
        let step = match (command.id, body(command.id)) {
            _ if !command.takes(args.len()) => Step::Refused(command.wrong_arity()),
            (Id::Select, _) => match selected(keyspace, args) {
                Ok(chosen) => {
                    db = chosen;
                    Step::Select
                }
                Err(failure) => Step::Refused(failure.into_error()),
            },
            (_, Body::Read(run) | Body::Write(run) | Body::Wait(run)) => {
                plan.lock(&stripes(keyspace, db, command, args));
                let args = args.clone();
                Step::Run { run, db, args }
            }
            (_, Body::Session) => Step::Refused(unknown(command)),
        };
        plan.steps.push(step);
    }
    (plan, db)
}

/// The argument of `SELECT`.
fn selected(keyspace: &Keyspace, args: &[Bytes]) -> Result<usize, Failure> {
    let number = args.get(1).and_then(|argument| parse_integer(argument));
    let number = usize::try_from(number.ok_or(NOT_INTEGER)?).unwrap_or(usize::MAX);
    keyspace.database(number)?;
    Ok(number)
}

fn run_all(
    keyspace: &Arc<Keyspace>,
    steps: Vec<Step>,
    held: &Held,
    watched_end_ms: Option<u64>,
) -> Result<Option<(Vec<Reply>, Epoch, Room)>, Failure> {
    let options = TransactionOptions::default()
        .isolation(Isolation::Snapshot)
        .bytes_max(BYTES_MAX);
    let mut transaction = keyspace.store().transaction_with(options);
    // The commands see no watched key as ended that has not ended by now.
    if watched_end_ms.is_some_and(|end| end <= keyspace.now_ms()) {
        return Ok(None);
    }
    let (mut effects, mut is_changed) = (Effects::default(), false);
    let (mut replies, mut room) = (Vec::with_capacity(steps.len()), Room::default());
    for step in steps {
        let (run, db, args) = match step {
            Step::Run { run, db, args } => (run, db, args),
            Step::Select => {
                replies.push(Reply::Ok);
                continue;
            }
            Step::Refused(error) => {
                replies.push(Reply::Error(error));
                continue;
            }
        };
        let access = Access::new(keyspace, db, Source::Within(&mut transaction));
        let mut access = access.in_room(room);
        let outcome = run_counted(&mut access, run, &args);
        room = access.take_room();
        match outcome {
            Ok(reply) => {
                is_changed |= !access.is_unchanged();
                effects.append(&mut access.apply()?);
                replies.push(reply);
            }
            Err(Failure::Refused(error)) => replies.push(Reply::Error(error)),
            Err(failure) => return Err(failure),
        }
    }
    if !is_changed {
        let epoch = keyspace.epochs().seen(held.stripes());
        return Ok(Some((replies, epoch, room)));
    }
    let commit = || transaction.commit(Durability::Buffered);
    let (outcome, epoch) = keyspace.epochs().write(held.stripes(), commit);
    outcome?;
    effects.tell_watchers(keyspace);
    serving::tell(keyspace, held, &effects);
    Ok(Some((replies, epoch, room)))
}

/// Runs a command whose reply waits with those of the others: one of a single value counts, too, and one that fails does not.
fn run_counted(access: &mut Access<'_>, run: Run, args: &[Bytes]) -> Result<Reply, Failure> {
    let before = access.filled();
    let reply = run(access, args).and_then(|reply| {
        if access.filled() == before {
            access.reply_grows(Reply::element_bytes(reply.bytes()))?;
        }
        Ok(reply)
    });
    if reply.is_err() {
        access.back_to(before);
    }
    reply
}
