//! What a connection is in.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::subscriptions::Subscriptions;
use super::transaction::Transaction;
use crate::clients::ClientEntry;
use crate::command::{Command, Flags, Id, find};
use crate::keyspace::{Client, Watching};
use crate::reply::{CommandError, Reply};
use crate::resp::{RequestLimits, Version};
use crate::shared::Shared;

/// One connection, without its socket.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) entry: Arc<ClientEntry>,
    /// What commands on data are told.
    pub(crate) client: Client,
    /// How replies are written.
    pub(crate) version: Version,
    pub(super) is_authenticated: bool,
    pub(super) transaction: Option<Transaction>,
    pub(super) watching: Watching,
    pub(super) subscriptions: Subscriptions,
    /// The last reply was the last.
    pub(crate) is_over: bool,
}

impl Session {
    pub(crate) fn new(shared: &Arc<Shared>, entry: &Arc<ClientEntry>) -> Self {
        Self {
            shared: Arc::clone(shared),
            entry: Arc::clone(entry),
            client: Client::shown_in(&entry.is_waiting),
            version: Version::Resp2,
            is_authenticated: shared.settings.password.is_none(),
            transaction: None,
            watching: Watching::default(),
            subscriptions: Subscriptions::new(shared, entry),
            is_over: false,
        }
    }

    /// What its requests may be now.
    pub(crate) fn limits(&self) -> RequestLimits {
        let limits = &self.shared.settings.limits;
        match self.is_authenticated {
            true => RequestLimits {
                args_max: limits.args_max,
                bulk_bytes_max: limits.bulk_bytes_max,
                request_bytes_max: limits.request_bytes_max,
            },
            false => RequestLimits::UNAUTHENTICATED,
        }
    }

    /// Whether commands are queued.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Bytes that it keeps beyond a turn: the commands of its transaction, what it watches and what it subscribed to.
    pub(crate) fn kept_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, Transaction::bytes);
        queued + self.watching.bytes() + self.subscriptions.bytes()
    }

    /// The command that a request means, if it may be run now.
    ///
    /// # Errors
    /// The reply, and the command if there is such.
    pub(crate) fn command(
        &mut self,
        args: &[Bytes],
    ) -> Result<&'static Command, (Option<&'static Command>, Reply)> {
        let Some(command) = args.first().and_then(|name| find(name)) else {
            // Nothing is told to one who gave no password.
            let error = match self.is_authenticated {
                true => unknown(args),
                false => NO_AUTH,
            };
            return Err((None, self.refused(error)));
        };
        if !self.is_authenticated && !command.flags.has(Flags::NO_AUTH) {
            return Err((Some(command), self.refused(NO_AUTH)));
        }
        if !command.takes(args.len()) {
            let error = command.wrong_arity();
            return Err((Some(command), self.refused(error)));
        }
        let only_subscribes = self.version == Version::Resp2 && !self.subscriptions.is_empty();
        if only_subscribes && !is_of_subscribers(command.id) {
            let error = CommandError::of(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
                command.name
            ));
            return Err((Some(command), self.refused(error)));
        }
        Ok(command)
    }

    /// A request that is wrong in itself spoils an open transaction.
    fn refused(&mut self, error: CommandError) -> Reply {
        if let Some(transaction) = &mut self.transaction {
            transaction.spoil();
        }
        Reply::Error(error)
    }

    /// Tells others how it stands.
    pub(crate) fn show(&self, command: Option<&'static Command>) {
        let entry = &self.entry;
        entry.db.store(self.client.db.get(), Ordering::Relaxed);
        entry
            .resp
            .store(self.version.number() as u32, Ordering::Relaxed);
        let queued = self
            .transaction
            .as_ref()
            .map_or(-1, |open| open.len() as i64);
        entry.queued.store(queued, Ordering::Relaxed);
        if let Some(command) = command {
            *entry.command.lock() = command.name;
        }
    }
}

const NO_AUTH: CommandError = CommandError::new("NOAUTH Authentication required.");

fn is_of_subscribers(id: Id) -> bool {
    matches!(
        id,
        Id::Subscribe
            | Id::Unsubscribe
            | Id::Psubscribe
            | Id::Punsubscribe
            | Id::Ping
            | Id::Quit
            | Id::Reset
    )
}

/// The error of Redis, with the begin of what was sent.
fn unknown(args: &[Bytes]) -> CommandError {
    const NAME_BYTES_MAX: usize = 128;
    let shown = |bytes: &[u8]| {
        let head = bytes.get(..NAME_BYTES_MAX).unwrap_or(bytes);
        String::from_utf8_lossy(head).into_owned()
    };
    let name = args.first().map(|name| shown(name)).unwrap_or_default();
    let mut text = format!("ERR unknown command '{name}', with args beginning with: ");
    for arg in args.iter().skip(1) {
        if text.len() > 2 * NAME_BYTES_MAX {
            break;
        }
        text.push_str(&format!("'{}' ", shown(arg)));
    }
    CommandError::of(text)
}
