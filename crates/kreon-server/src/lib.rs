//! A server of one Kreon store that speaks the protocol of Redis (RESP2 and RESP3).
//!
//! `net -> session -> command -> keyspace -> kreon`: sockets, the state of a connection, commands, records in the store.
#![forbid(unsafe_code)]

#[allow(dead_code, unused_imports, reason = "sessions are yet to come")]
mod command;
#[allow(dead_code, unused_imports, reason = "sessions are yet to come")]
mod keyspace;
#[allow(dead_code, unused_imports, reason = "sessions are yet to come")]
mod reply;
