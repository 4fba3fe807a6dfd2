//! From a command to its reply.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::state::Session;
use crate::admin;
use crate::command::{Command, Flags, Group, Id, execute};
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

impl Session {
    /// Runs a command that [`command`](Self::command) let pass. `args` begin with its name, and are empty afterwards if they
    /// were kept.
    pub(crate) async fn run(&mut self, command: &'static Command, args: &mut Vec<Bytes>) -> Answer {
        if self.transaction.is_some() && !is_run_within(command.id) {
            return self.queue(command, args).into();
        }
        match is_on_data(command) {
            true => execute(&self.shared.keyspace, &self.client, command, args)
                .await
                .into(),
            false => self.run_own(command, args).await,
        }
    }

    /// A command that is none on data.
    pub(super) async fn run_own(&mut self, command: &'static Command, args: &[Bytes]) -> Answer {
        match command.id {
            Id::Subscribe => self.subscribe(args),
            Id::Psubscribe => self.subscribe_patterns(args),
            Id::Unsubscribe => self.unsubscribe(args),
            Id::Punsubscribe => self.unsubscribe_patterns(args),
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
            Id::Auth => self.auth(args),
            Id::Hello => self.hello(args),
            Id::Quit => {
                self.is_over = true;
                Reply::Ok
            }
            Id::Reset => self.reset(),
            Id::Client => self.client_command(args),
            Id::Multi => self.multi(),
            Id::Exec => self.exec().await,
            Id::Discard => self.discard(),
            Id::Watch => self.watch(args).await,
            Id::Unwatch => self.unwatch(),
            Id::Publish => self.publish(args),
            Id::Pubsub => self.pubsub(args),
            Id::Time => time(),
            // There are no replicas; writes are as durable as the server makes them.
            Id::Wait => Reply::Int(0),
            _ => admin::run(&self.shared, &self.client, command, args).await,
        }
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
        let index = args.get(1).and_then(|arg| str::from_utf8(arg).ok());
        match index.and_then(|index| index.parse::<i64>().ok()) {
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

/// Whether `command` is run by [`execute`].
pub(super) fn is_on_data(command: &Command) -> bool {
    match command.group {
        Group::Connection | Group::PubSub | Group::Transactions => false,
        // DBSIZE, FLUSHDB, FLUSHALL.
        Group::Server => {
            command.id != Id::Memory
                && (command.flags.has(Flags::READONLY) || command.flags.has(Flags::WRITE))
        }
        _ => true,
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
