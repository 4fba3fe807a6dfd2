//! `GET key` and `SET key value`: what most requests are, without what other commands need.

use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use kreon::Durability;

use crate::keyspace::{
    COLLECTION, Client, Epoch, Failure, Held, Keyspace, NAME_BYTES_MAX, STRING, Stripes, Text,
    begin_text, record_key,
};
use crate::reply::Reply;

/// Capacity of a buffer that a thread keeps, in bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// Buffers for the key and the value of a record.
    static BUFFERS: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// `GET` of a string: one record, so it needs no lock, and waits for the device without a thread. `None` if there is no string:
/// then another look decides whether there is a collection.
pub(super) async fn get(keyspace: &Keyspace, client: &Client, key: &Bytes) -> Option<Reply> {
    let db = client.db.get();
    let database = keyspace.database(db).ok()?;
    if key.len() > NAME_BYTES_MAX {
        return None;
    }
    let found = database.region.get_async(record_key(STRING, key)).await;
    let reply = match found {
        Err(error) => return Some(Reply::Error(Failure::from(error).into_error())),
        Ok(None) if database.has_collections() => return None,
        Ok(None) => Reply::Nil,
        Ok(Some(record)) => {
            let (value, skip) = Text::decode(record)?.into_parts();
            Reply::Value { value, skip }
        }
    };
    let stripe = keyspace.locks().stripe(db, key);
    client.rests_on(keyspace.epochs().seen(&Stripes::One(stripe)));
    Some(reply)
}

/// `SET` without options, with the lock of the key. `None` if a collection stands there, or if that cannot be told from what is in
/// memory: then nothing was done.
pub(super) fn set(
    keyspace: &Keyspace,
    db: usize,
    [key, value]: [&Bytes; 2],
    held: &Held,
) -> Option<Result<Epoch, Failure>> {
    if key.len() > NAME_BYTES_MAX {
        return None;
    }
    let database = keyspace.database(db).ok()?;
    BUFFERS.with_borrow_mut(|(record, text)| {
        if database.has_collections() {
            fill(record, COLLECTION, key);
            let head = pin!(database.region.get_async(record.as_slice()));
            match head.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(None)) => (),
                _ => return None,
            }
        }
        fill(record, STRING, key);
        text.clear();
        begin_text(text, None);
        text.extend_from_slice(value);
        let put = || {
            database
                .region
                .put_with(&record, &text, Durability::Buffered)
        };
        let (outcome, epoch) = keyspace.epochs().write(held.stripes(), put);
        if text.capacity() > KEPT_BYTES_MAX {
            *text = Vec::new();
        }
        if let Err(error) = outcome {
            return Some(Err(error.into()));
        }
        if !keyspace.watched().is_empty() {
            keyspace.watched().touch(&(db, key.clone()));
        }
        Some(Ok(epoch))
    })
}

fn fill(record: &mut Vec<u8>, kind: u8, key: &[u8]) {
    record.clear();
    record.push(kind);
    record.extend_from_slice(key);
}
