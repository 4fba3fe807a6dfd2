//! From a command to its reply: the only file that knows all commands of a connection.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::auth::auth;
use super::client::client;
use super::hello::hello;
use super::multi::{discard, end_transaction, end_watching, multi, unwatch, watch};
use super::publish::{publish, pubsub};
use super::state::Session;
use crate::admin;
use crate::command::{Command, Flags, Group, Id, Queued, execute, execute_all};
use crate::keyspace::Room;
use crate::reply::{CommandError, Reply};
use crate::resp::Version;

/// What a request is answered with.
#[derive(Debug)]
pub(crate) enum Answer {
    One(Reply),
    /// `SUBSCRIBE` and its like answer for each channel, `SHUTDOWN` not at all.
    Many(Vec<Reply>),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::One(reply)
    }
}

impl From<CommandError> for Answer {
    fn from(error: CommandError) -> Self {
        Self::One(Reply::Error(error))
    }
}

impl From<Result<Vec<Reply>, CommandError>> for Answer {
    fn from(replies: Result<Vec<Reply>, CommandError>) -> Self {
        replies.map_or_else(Self::from, Self::Many)
    }
}

impl Session {
    /// Runs a command that [`command`](Self::command) let pass. `args` begin with its name, and are empty afterwards if they
    /// were kept.
    pub(crate) async fn run(&mut self, command: &'static Command, args: &mut Vec<Bytes>) -> Answer {
        if let Some(transaction) = &mut self.transaction
            && !is_run_within(command.id)
        {
            let bytes_max = self.shared.settings.limits.request_bytes_max;
            return transaction.queue(command, args, bytes_max).into();
        }
        match is_on_data(command) {
            true => execute(&self.shared.keyspace, &self.client, command, args)
                .await
                .into(),
            false => self.run_own(command, args).await,
        }
    }

    /// A command that is none on data.
    async fn run_own(&mut self, command: &'static Command, args: &[Bytes]) -> Answer {
        let mut room = Room::default();
        let bytes = args.len() * bytes_for_each(command.id);
        if let Err(error) = room.reply_grows(self.shared.keyspace.rooms(), bytes) {
            return error.into();
        }
        self.client.holds(room);
        match command.id {
            Id::Subscribe => self.subscriptions.subscribe(args).into(),
            Id::Psubscribe => self.subscriptions.subscribe_patterns(args).into(),
            Id::Unsubscribe => Answer::Many(self.subscriptions.unsubscribe(args)),
            Id::Punsubscribe => Answer::Many(self.subscriptions.unsubscribe_patterns(args)),
            Id::Shutdown => match admin::run(&self.shared, &self.client, command, args).await {
                // Clients take the end of the connection for the success.
                Reply::Ok => Answer::Many(Vec::new()),
                error => error.into(),
            },
            _ => self.run_single(command, args).await.into(),
        }
    }

    async fn run_single(&mut self, command: &'static Command, args: &[Bytes]) -> Reply {
        match command.id {
            Id::Ping => self.ping(args),
            Id::Echo => args
                .get(1)
                .map_or(Reply::Nil, |text| Reply::Bulk(text.clone())),
            Id::Select => self.select(args),
            Id::Auth => auth(self, args),
            Id::Hello => hello(self, args),
            Id::Quit => {
                self.is_over = true;
                Reply::Ok
            }
            Id::Reset => self.reset(),
            Id::Client => client(self, args),
            Id::Multi => multi(self),
            Id::Exec => self.exec().await,
            Id::Discard => discard(self),
            Id::Watch => watch(self, args).await,
            Id::Unwatch => unwatch(self),
            Id::Publish => publish(&self.shared.channels, args),
            Id::Pubsub => pubsub(&self.shared.channels, args),
            Id::Time => time(),
            // There are no replicas; writes are as durable as the server makes them.
            Id::Wait => Reply::Int(0),
            _ => admin::run(&self.shared, &self.client, command, args).await,
        }
    }

    async fn exec(&mut self) -> Reply {
        let Some(transaction) = self.transaction.take() else {
            return Reply::Error(CommandError::new("ERR EXEC without MULTI"));
        };
        let reply = match transaction.into_queued() {
            Ok(queued) => self.run_all(queued).await,
            Err(error) => Reply::Error(error),
        };
        end_watching(self);
        reply
    }

    /// Commands on data run as one, and `SELECT` among them; then the others in their order, so that a message is published
    /// after what it tells of has happened.
    async fn run_all(&mut self, queued: Vec<Queued>) -> Reply {
        let is_first = |command: &Command| is_on_data(command) || command.id == Id::Select;
        let order: Vec<bool> = queued
            .iter()
            .map(|(command, _)| is_first(command))
            .collect();
        let (first, others): (Vec<Queued>, Vec<Queued>) = queued
            .into_iter()
            .partition(|(command, _)| is_first(command));
        let keyspace = &self.shared.keyspace;
        let reply = execute_all(keyspace, &self.client, &first, &self.watching).await;
        let Reply::Array(of_first) = reply else {
            return reply;
        };
        if others.is_empty() {
            return Reply::Array(of_first);
        }
        let (mut of_first, mut others) = (of_first.into_iter(), others.into_iter());
        let mut replies = Vec::with_capacity(order.len());
        let mut room = Room::default();
        for is_first in order {
            if is_first {
                replies.push(of_first.next().unwrap_or(Reply::Nil));
            } else if let Some((command, args)) = others.next() {
                match Box::pin(self.run_in_room(command, &args, &mut room)).await {
                    Answer::One(reply) => replies.push(reply),
                    Answer::Many(more) => replies.extend(more),
                }
            }
        }
        self.client.holds(room);
        Reply::Array(replies)
    }

    /// A command of a transaction that is none on data. Its reply waits with those of the others, and counts: where there is no
    /// room for any reply the command is not run, and where there is none for its own that is an error.
    async fn run_in_room(
        &mut self,
        command: &'static Command,
        args: &[Bytes],
        room: &mut Room,
    ) -> Answer {
        let rooms = self.shared.keyspace.rooms().clone();
        if let Err(error) = room.reply_grows(&rooms, Reply::element_bytes(0)) {
            return error.into();
        }
        let before = room.filled();
        let answer = self.run_own(command, args).await;
        let bytes = match &answer {
            Answer::One(reply) => reply.bytes(),
            Answer::Many(replies) => replies.iter().map(Reply::bytes).sum(),
        };
        match room.reply_grows(&rooms, bytes) {
            Ok(()) => answer,
            Err(error) => {
                room.back_to(before);
                error.into()
            }
        }
    }

    /// `RESET`: as it was at the begin.
    fn reset(&mut self) -> Reply {
        self.subscriptions.end();
        end_transaction(self);
        self.client.db.set(0);
        self.version = Version::Resp2;
        self.is_authenticated = self.shared.settings.password.is_none();
        self.entry.name.lock().clear();
        self.entry.is_evictable.store(true, Ordering::Relaxed);
        Reply::Simple("RESET")
    }

    fn ping(&self, args: &[Bytes]) -> Reply {
        if args.len() > 2 {
            return Reply::Error(CommandError::new(
                "ERR wrong number of arguments for 'ping' command",
            ));
        }
        let text = args.get(1).cloned();
        // In RESP2 a subscriber tells replies and messages apart by their form.
        if self.version == Version::Resp2 && !self.subscriptions.is_empty() {
            let text = text.unwrap_or_default();
            return Reply::Array(vec![Reply::constant("pong"), Reply::Bulk(text)]);
        }
        text.map_or(Reply::Simple("PONG"), Reply::Bulk)
    }

    fn select(&self, args: &[Bytes]) -> Reply {
        let text = args.get(1).and_then(|arg| str::from_utf8(arg).ok());
        let index = text.and_then(|text| text.parse::<i64>().ok());
        // Numbers have one spelling: no `+`, no zeros in front.
        match index.filter(|index| text == Some(index.to_string().as_str())) {
            None => Reply::Error(CommandError::new(
                "ERR value is not an integer or out of range",
            )),
            Some(index) => match usize::try_from(index) {
                Ok(index) if index < self.shared.keyspace.databases() => {
                    self.client.db.set(index);
                    Reply::Ok
                }
                _ => Reply::Error(CommandError::new("ERR DB index is out of range")),
            },
        }
    }
}

/// What the reply has for each argument, in bytes of memory, about.
fn bytes_for_each(id: Id) -> usize {
    match id {
        Id::Unsubscribe | Id::Punsubscribe | Id::Pubsub => 256,
        Id::Command => 1024,
        _ => 0,
    }
}

/// Whether `command` is run by [`execute`].
fn is_on_data(command: &Command) -> bool {
    match command.group {
        Group::Connection | Group::PubSub | Group::Transactions => false,
        // DBSIZE, FLUSHDB, FLUSHALL.
        Group::Server => {
            command.id != Id::Memory
                && (command.flags.has(Flags::READONLY) || command.flags.has(Flags::WRITE))
        }
        _ => command.id != Id::Wait,
    }
}

/// Whether `id` is run at once within a transaction, not queued.
fn is_run_within(id: Id) -> bool {
    matches!(
        id,
        Id::Exec | Id::Discard | Id::Multi | Id::Watch | Id::Quit | Id::Reset
    )
}

/// `TIME`: seconds and microseconds.
fn time() -> Reply {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let text = |number: u64| Reply::Bulk(number.to_string().into());
    Reply::Array(vec![text(now.as_secs()), text(now.subsec_micros().into())])
}
