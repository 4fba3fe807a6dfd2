//! Writes that came together: they run one after the other and are applied as one batch.
//!
//! Each command runs on what is in memory, with what the commands before it have written on top. A command that fails
//! leaves nothing behind; one that must wait for the device, or serves a waiting client, is left to be run alone, with
//! those of its connection behind it. If the store refuses the batch nothing was applied: all of them are run alone then,
//! so that each gets its own reply.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;

use super::Command;
use super::bodies::{Body, body};
use super::serving::is_told_at_once;
use super::steps::{Run, stripes};
use crate::keyspace::{Access, Changes, Epoch, Failure, Keyspace, Source, Stripes};
use crate::reply::Reply;

/// Keys of a pipeline, but for those of its last command: with more, two threads that write random keys would often want the same
/// of the 4,096 locks.
const KEYS_MAX: usize = 32;
/// Bytes of its arguments; longer values are written singly, as a batch copies them.
const BYTES_MAX: usize = 64 << 10;
/// What an argument counts for beside its bytes, so that many short ones are no small command: at most 1,024 are taken.
const ARGUMENT_BYTES: usize = 16;
/// Longest request that is taken, and most that one command may write, in bytes.
const REQUEST_BYTES_MAX: usize = 16 << 10;
const WRITTEN_BYTES_MAX: usize = 64 << 10;
/// No command is begun when the replies of its pipeline, or the writes of all pipelines, have so many bytes.
const REPLY_BYTES_MAX: usize = 64 << 10;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// A command and its arguments, which begin with its name.
pub(crate) type Queued = (&'static Command, Vec<Bytes>);

/// Consecutive writes of one connection, all with keys of their own.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    db: usize,
    commands: Vec<Queued>,
    keys: usize,
    bytes: usize,
    /// Of the first commands; those behind are to be run alone.
    replies: Vec<Reply>,
    epoch: Epoch,
}

/// The function of a command that may be part of a pipeline.
fn run_of(command: &Command) -> Option<Run> {
    match body(command.id) {
        Body::Write(run) if command.keys.first > 0 => Some(run),
        _ => None,
    }
}

fn bytes_of(args: &[Bytes]) -> usize {
    args.iter().map(|arg| arg.len() + ARGUMENT_BYTES).sum()
}

impl Pipeline {
    /// Whether a command may be part of a pipeline.
    pub(crate) fn takes(command: &Command, args: &[Bytes]) -> bool {
        run_of(command).is_some()
            && command.takes(args.len())
            && bytes_of(args) <= REQUEST_BYTES_MAX
    }

    /// Adds a command that is [taken](Self::takes), in database `db`, which is the same for all.
    pub(crate) fn push(&mut self, db: usize, command: &'static Command, args: Vec<Bytes>) {
        self.db = db;
        self.keys += command.keys_of(&args).count();
        self.bytes += bytes_of(&args);
        self.commands.push((command, args));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Whether it is to be run before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.keys >= KEYS_MAX || self.bytes >= BYTES_MAX
    }

    /// Takes the commands that were run, with their replies, and what these rest on.
    pub(crate) fn take_done(
        &mut self,
    ) -> (
        impl ExactSizeIterator<Item = (Queued, Reply)> + use<'_>,
        Epoch,
    ) {
        let count = self.replies.len().min(self.commands.len());
        // More is added only behind the last of them.
        (self.keys, self.bytes) = (0, 0);
        let commands = self.commands.drain(..count);
        (commands.zip(self.replies.drain(..)), self.epoch)
    }

    /// Takes the first command, to be run alone.
    pub(crate) fn take_first(&mut self) -> Option<Queued> {
        match self.commands.is_empty() {
            true => None,
            false => Some(self.commands.remove(0)),
        }
    }

    /// The stripes of all its keys.
    pub(super) fn stripes(&self, keyspace: &Keyspace) -> Stripes {
        let of = |(command, args): &Queued| stripes(keyspace, self.db, command, args);
        if let [one] = &self.commands[..] {
            return of(one);
        }
        let mut all = Vec::with_capacity(self.commands.len());
        for queued in &self.commands {
            all.extend(of(queued).iter());
        }
        Stripes::of(all)
    }

    /// Runs its commands behind `before`, up to one that must be run alone. `own` holds nothing before and afterwards.
    fn run(
        &mut self,
        keyspace: &Arc<Keyspace>,
        now_ms: u64,
        before: &mut Changes,
        own: &mut Changes,
    ) {
        let mut reply_bytes = 0;
        for (command, args) in &self.commands {
            let Some(run) = run_of(command) else { return };
            if reply_bytes >= REPLY_BYTES_MAX || before.bytes() >= BATCH_BYTES_MAX {
                return;
            }
            let access = Access::new(keyspace, self.db, Source::Group(before));
            let mut access = access.of_group(now_ms, mem::take(own));
            let outcome = run(&mut access, args);
            *own = access.into_changes();
            let reply = match outcome {
                Ok(reply) => {
                    let is_long = own.bytes() > WRITTEN_BYTES_MAX;
                    if is_long || !is_told_at_once(keyspace, own.effects()) {
                        return own.clear();
                    }
                    before.append(own);
                    reply
                }
                Err(Failure::Refused(error)) => {
                    own.clear();
                    Reply::Error(error)
                }
                Err(Failure::Misses | Failure::Store(_)) => return own.clear(),
            };
            reply_bytes += reply.bytes();
            self.replies.push(reply);
        }
    }
}

/// Memory for the changes of a group and of one command in it, kept for the next group.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    group: Changes,
    own: Changes,
}

impl Scratch {
    /// Runs pipelines, with the locks of all their keys, which are `stripes`. The locks are free afterwards.
    pub(super) fn run_all<H>(
        &mut self,
        keyspace: &Arc<Keyspace>,
        pipelines: &mut [Pipeline],
        stripes: &Stripes,
        held: H,
    ) {
        let Self { group, own } = self;
        debug_assert!(
            keyspace.locks().are_taken_alone(stripes),
            "a pipeline runs without its locks"
        );
        // A panic may have left some.
        group.clear();
        own.clear();
        let now_ms = keyspace.now_ms();
        for pipeline in &mut *pipelines {
            pipeline.run(keyspace, now_ms, group, own);
        }
        let epoch = match apply(keyspace, group, stripes) {
            Ok(epoch) => epoch,
            Err(epoch) => {
                pipelines.iter_mut().for_each(|it| it.replies.clear());
                epoch
            }
        };
        drop(held);
        group.clear();
        for pipeline in pipelines {
            pipeline.epoch = epoch;
        }
    }
}

/// Applies the changes of a group, and tells those who watch. Returns what the replies rest on.
///
/// # Errors
/// The store refused them: nothing was applied.
fn apply(keyspace: &Keyspace, group: &Changes, stripes: &Stripes) -> Result<Epoch, Epoch> {
    if group.is_empty() {
        return Ok(keyspace.epochs().seen(stripes));
    }
    let write = || group.apply(keyspace);
    let (outcome, epoch) = keyspace.epochs().write(stripes, write);
    outcome.map_err(|_| epoch)?;
    group.effects().tell_watchers(keyspace);
    Ok(epoch)
}
