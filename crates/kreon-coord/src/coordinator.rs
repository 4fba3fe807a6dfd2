//! The trait.

use std::time::Duration;

use kreon_base::Result;

use crate::command::{Command, Reply};

/// Calls of one session that wait for their answers, and answers that wait to be polled.
pub const CALLS_MAX: usize = 1024;

/// Bytes of data and paths in one command. A ZooKeeper drops the connection of who sends a mebibyte.
pub const DATA_BYTES_MAX: usize = 512 * 1024;

/// Number of a call of one session, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What a session tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The answer to a call. Each call gets exactly one, [`Reply::Unknown`] at the latest when its time is over.
    Replied(CallId, Reply),
    /// A node or the children of a path that are watched changed, some time ago, or may have. The watch is over.
    Changed(String),
    /// The session is over; told once, as the last event. What was not answered got [`Reply::Unknown`] before.
    Expired,
}

/// A session with the coordinator. Calls of one session are carried out in their order.
pub trait Coordinator: Send + Sync {
    /// Sends a command, and does not wait for what becomes of it.
    ///
    /// # Errors
    /// `Closed` after the session ended; `InvalidArgument` for a path that is none, and for more than [`DATA_BYTES_MAX`]
    /// of data in one command; `Busy` if [`CALLS_MAX`] calls are not answered or their answers not polled. Nothing was
    /// sent then.
    fn send(&self, call: CallId, command: Command) -> Result<()>;

    /// Appends what happened, waiting for at most `patience` if nothing did.
    ///
    /// # Errors
    /// `Closed` after [`Event::Expired`] was told.
    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()>;

    /// Milliseconds without contact after which the coordinator ends the session, as granted.
    fn session_ms(&self) -> u32;
}
