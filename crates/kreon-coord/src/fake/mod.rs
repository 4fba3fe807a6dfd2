//! A coordinator in the process, for tests: everything that the real one may do late or not at all, it does when told.
//!
//! Writes are carried out in one order. Each session reads from a server of its own that may lag behind until it is
//! told to catch up or the session says `sync`; watches wait until they are taken; a reply can be lost, before or after
//! the command was carried out; a session ends when told.

mod session;
mod state;
mod tree;

pub use session::FakeSession;
pub use state::{Fake, Fate, SessionId};
