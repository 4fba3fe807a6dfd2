//! `MULTI`, `DISCARD`, `WATCH`, `UNWATCH`.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::state::Session;
use super::transaction::Transaction;
use crate::keyspace::Watching;
use crate::reply::{CommandError, Reply};

pub(super) fn multi(session: &mut Session) -> Reply {
    if session.transaction.is_some() {
        return Reply::Error(CommandError::new("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::default());
    Reply::Ok
}

pub(super) fn discard(session: &mut Session) -> Reply {
    if session.transaction.is_none() {
        return Reply::Error(CommandError::new("ERR DISCARD without MULTI"));
    }
    end_transaction(session);
    Reply::Ok
}

/// Forgets the transaction and what is watched.
pub(super) fn end_transaction(session: &mut Session) {
    session.transaction = None;
    end_watching(session);
}

pub(super) fn end_watching(session: &mut Session) {
    if !session.watching.is_empty() {
        session.watching = Watching::default();
        session.entry.watched.store(0, Ordering::Relaxed);
    }
}

pub(super) async fn watch(session: &mut Session, args: &[Bytes]) -> Reply {
    if session.transaction.is_some() {
        return Reply::Error(CommandError::new("ERR WATCH inside MULTI is not allowed"));
    }
    // Copies: a slice would keep the buffer that it was received in.
    let keys = args.iter().skip(1).map(|key| Bytes::copy_from_slice(key));
    let keys: Vec<Bytes> = keys.collect();
    let bytes = session.watching.bytes() + keys.iter().map(Watching::bytes_of).sum::<usize>();
    if bytes > session.shared.settings.limits.request_bytes_max {
        return Reply::Error(CommandError::new("ERR too many watched keys"));
    }
    let keyspace = &session.shared.keyspace;
    let watch = keyspace.watch(&session.client, &mut session.watching, &keys);
    let outcome = watch.await;
    let count = session.watching.keys().len();
    session.entry.watched.store(count, Ordering::Relaxed);
    match outcome {
        Ok(()) => Reply::Ok,
        Err(error) => Reply::Error(error),
    }
}

pub(super) fn unwatch(session: &mut Session) -> Reply {
    end_watching(session);
    Reply::Ok
}
