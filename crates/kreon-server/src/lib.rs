//! A server of one Kreon store that speaks the protocol of Redis (RESP2 and RESP3).
//!
//! `net -> session -> command -> keyspace -> kreon`: sockets, the state of a connection, commands, records in the store.
#![forbid(unsafe_code)]

mod admin;
mod budget;
mod clients;
mod command;
#[doc(hidden)]
pub mod fuzzing;
mod keyspace;
mod metrics;
mod net;
mod page;
#[doc(hidden)]
pub mod parsing;
mod pubsub;
mod reply;
mod resp;
mod server;
mod session;
mod settings;
mod shared;

pub use server::Server;
pub use settings::{Limits, Persistence, Settings, TlsFiles};
