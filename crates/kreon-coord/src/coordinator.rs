//! The trait.

use std::time::Duration;

use kreon_base::Result;

use crate::command::{Command, Reply};

/// Number of a call of one session, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What a session tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The answer to a call. Each call gets exactly one, [`Reply::Unknown`] at the latest when its time is over.
    Replied(CallId, Reply),
    /// A node or the children of a path that are watched changed, some time ago. The watch is over.
    Changed(String),
    /// The session is over. No call is answered by anything but [`Reply::Expired`] from here on.
    Expired,
}

/// A session with the coordinator. Calls of one session are carried out in their order.
pub trait Coordinator: Send + Sync {
    /// Sends a command, and does not wait for what becomes of it.
    ///
    /// # Errors
    /// `Closed` after the session ended.
    fn send(&self, call: CallId, command: Command) -> Result<()>;

    /// Appends what happened, waiting for at most `patience` if nothing did.
    ///
    /// # Errors
    /// `Io` if the coordinator cannot be reached any more.
    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()>;

    /// Milliseconds without contact after which the coordinator ends the session, as granted.
    fn session_ms(&self) -> u32;
}
