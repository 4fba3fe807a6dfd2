//! Databases of keys in a store: how their records look, and how commands read and change them together.

mod access;
mod census;
mod collections;
mod cursors;
mod durable;
mod expiry;
mod failure;
mod ids;
mod key_hash;
mod locks;
mod random;
mod records;
mod room;
mod span;
mod state;
mod target;
mod waiters;
mod watch;
mod writes;

pub(crate) use access::{Access, Changes, Effects, Source};
pub(crate) use collections::{Collection, Item, WRONG_TYPE};
pub(crate) use durable::{Epoch, SyncGroup};
pub(crate) use failure::Failure;
pub(crate) use locks::{Held, Stripes};
#[cfg(test)]
pub(crate) use records::EXPIRY;
pub(crate) use records::{
    COLLECTION, ELEMENT_PREFIX_BYTES, Head, Kind, NAME_BYTES_MAX, STRING, Text, element_key,
    index_bytes, prefix_end, record_key, score_bytes, score_of,
};
pub(crate) use room::{Room, Rooms};
pub(crate) use span::Span;
pub(crate) use state::{Client, Keyspace, KeyspaceOptions};
pub(crate) use waiters::{End, Served, Waiting};
pub(crate) use watch::{DbKey, Watching};
