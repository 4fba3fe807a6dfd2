//! Opens WiredTiger for the bench: its calls as safe types.
//!
//! The library and its header come from the system (Debian: `libwiredtiger-dev`). What this crate declares of it are plain C
//! functions of `shim.c`, which the build compiles against the header: no layout of a struct is repeated here.
//!
//! A `Connection` is an open database, which threads share. Each thread needs a `Session` for itself while it calls, and in
//! it a `Cursor` over a table. Settings are WiredTiger's own configuration strings.
#![cfg(feature = "wiredtiger")]

mod connection;
mod cursor;
mod error;
mod ffi;
mod session;

#[cfg(test)]
mod tests;

pub use connection::{Connection, version};
pub use cursor::Cursor;
pub use error::{Error, Result};
pub use session::Session;
