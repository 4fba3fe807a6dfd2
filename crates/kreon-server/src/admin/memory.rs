//! `MEMORY USAGE`.

use std::sync::Arc;

use bytes::Bytes;

use super::subcommand::{subcommand, unknown_subcommand};
use crate::command::{execute, find};
use crate::keyspace::Client;
use crate::reply::{CommandError, Reply};
use crate::shared::Shared;

/// `MEMORY USAGE key [SAMPLES count]`: the bytes of the key and its value, without what the index of the store takes for
/// them. Of a collection the elements are not looked at: each counts as a short one.
pub(super) async fn memory(
    shared: &Arc<Shared>,
    client: &Client,
    args: &[Bytes],
) -> Result<Reply, CommandError> {
    match (subcommand(args).as_str(), args.get(2..).unwrap_or_default()) {
        ("usage", [key] | [key, _, _]) => usage(shared, client, key).await,
        ("doctor", []) => Ok(Reply::Text(
            "The memory of the store is a fixed budget: see INFO memory.".to_owned(),
        )),
        ("purge", []) => Ok(Reply::Ok),
        _ => Err(unknown_subcommand(args)),
    }
}

async fn usage(shared: &Arc<Shared>, client: &Client, key: &Bytes) -> Result<Reply, CommandError> {
    /// Of a record beside key and value: header of the log and entry of the index.
    const RECORD_BYTES: i64 = 48;
    /// Of an element in a collection: its record, with a field of this order.
    const ELEMENT_BYTES: i64 = 80;
    let ask = async |name: &'static str| {
        let command = find(name.as_bytes())?;
        let args = [Bytes::from_static(name.as_bytes()), key.clone()];
        Some(execute(&shared.keyspace, client, command, &args).await)
    };
    let kind = match ask("type").await {
        Some(Reply::Simple(kind)) => kind,
        Some(Reply::Error(error)) => return Err(error),
        _ => "none",
    };
    let (length, each) = match kind {
        "string" => ("strlen", 1),
        "hash" => ("hlen", ELEMENT_BYTES),
        "set" => ("scard", ELEMENT_BYTES),
        "zset" => ("zcard", 2 * ELEMENT_BYTES),
        "list" => ("llen", ELEMENT_BYTES),
        _ => return Ok(Reply::Nil),
    };
    match ask(length).await {
        Some(Reply::Int(count)) => Ok(Reply::Int(
            RECORD_BYTES + key.len() as i64 + count.saturating_mul(each),
        )),
        Some(Reply::Error(error)) => Err(error),
        _ => Ok(Reply::Nil),
    }
}
