//! `GET key`: what many requests are, without what other commands need.

use bytes::Bytes;

use crate::keyspace::{
    Client, Failure, Keyspace, NAME_BYTES_MAX, STRING, Stripes, Text, record_key,
};
use crate::reply::Reply;

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
