//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::run::{Answer, is_on_data};
use super::state::Session;
use crate::command::{Command, Flags, Id, execute_all};
use crate::keyspace::Watching;
use crate::reply::{CommandError, Reply};

type Queued = (&'static Command, Vec<Bytes>);

/// The commands since `MULTI`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    queued: Vec<Queued>,
    bytes: usize,
    is_spoilt: bool,
}

impl Transaction {
    /// `EXEC` will refuse it.
    pub(super) fn spoil(&mut self) {
        self.is_spoilt = true;
    }

    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    /// What its commands take in memory, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A copy of a short argument: as a slice it would keep the whole buffer that it was received in.
fn unpinned(arg: Bytes) -> Bytes {
    const COPIED_BYTES_MAX: usize = 16 << 10;
    match arg.len() <= COPIED_BYTES_MAX {
        true => Bytes::copy_from_slice(&arg),
        false => arg,
    }
}

impl Session {
    pub(super) fn multi(&mut self) -> Reply {
        if self.transaction.is_some() {
            return Reply::Error(CommandError::new("ERR MULTI calls can not be nested"));
        }
        self.transaction = Some(Transaction::default());
        Reply::Ok
    }

    /// Takes a command into the transaction, with its arguments.
    pub(super) fn queue(&mut self, command: &'static Command, args: &mut Vec<Bytes>) -> Reply {
        /// Of an argument in memory, beside its bytes.
        const ARG_BYTES: usize = size_of::<Bytes>();
        let bytes_max = self.shared.settings.limits.request_bytes_max;
        let Some(transaction) = &mut self.transaction else {
            return Reply::Error(CommandError::new("ERR no transaction"));
        };
        if command.flags.has(Flags::NO_MULTI) {
            transaction.spoil();
            return Reply::Error(CommandError::new(
                "ERR Command not allowed inside a transaction",
            ));
        }
        let bytes: usize = args.iter().map(|arg| arg.len() + ARG_BYTES).sum();
        if transaction.bytes + bytes > bytes_max {
            // Nothing of it can be executed any more.
            transaction.queued = Vec::new();
            transaction.bytes = 0;
            transaction.spoil();
            return Reply::Error(CommandError::new("ERR the transaction is too large"));
        }
        transaction.bytes += bytes;
        let kept = args.drain(..).map(unpinned).collect();
        transaction.queued.push((command, kept));
        Reply::Simple("QUEUED")
    }

    pub(super) fn discard(&mut self) -> Reply {
        if self.transaction.is_none() {
            return Reply::Error(CommandError::new("ERR DISCARD without MULTI"));
        }
        self.end_transaction();
        Reply::Ok
    }

    /// Forgets the transaction and what is watched.
    pub(super) fn end_transaction(&mut self) {
        self.transaction = None;
        self.end_watching();
    }

    fn end_watching(&mut self) {
        if !self.watching.is_empty() {
            self.watching = Watching::default();
            self.entry.watched.store(0, Ordering::Relaxed);
        }
    }

    pub(super) async fn watch(&mut self, args: &[Bytes]) -> Reply {
        if self.transaction.is_some() {
            return Reply::Error(CommandError::new("ERR WATCH inside MULTI is not allowed"));
        }
        // Copies: a slice would keep the buffer that it was received in.
        let keys = args.iter().skip(1).map(|key| Bytes::copy_from_slice(key));
        let keys: Vec<Bytes> = keys.collect();
        let keyspace = &self.shared.keyspace;
        match keyspace
            .watch(&self.client, &mut self.watching, &keys)
            .await
        {
            Ok(()) => {
                self.entry.watched.fetch_add(keys.len(), Ordering::Relaxed);
                Reply::Ok
            }
            Err(error) => Reply::Error(error),
        }
    }

    pub(super) fn unwatch(&mut self) -> Reply {
        self.end_watching();
        Reply::Ok
    }

    pub(super) async fn exec(&mut self) -> Reply {
        let Some(transaction) = self.transaction.take() else {
            return Reply::Error(CommandError::new("ERR EXEC without MULTI"));
        };
        if transaction.is_spoilt {
            self.end_watching();
            return Reply::Error(CommandError::new(
                "EXECABORT Transaction discarded because of previous errors.",
            ));
        }
        let reply = self.run_all(transaction.queued).await;
        self.end_watching();
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
        for is_first in order {
            if is_first {
                replies.push(of_first.next().unwrap_or(Reply::Nil));
            } else if let Some((command, args)) = others.next() {
                match Box::pin(self.run_own(command, &args)).await {
                    Answer::One(reply) => replies.push(reply),
                    Answer::Many(more) => replies.extend(more),
                }
            }
        }
        Reply::Array(replies)
    }
}
