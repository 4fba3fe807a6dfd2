//! Calls under way whose callers do something else meanwhile.

use std::fmt;
use std::sync::Arc;

use kreon_wire::Reply;

use crate::error::{Error, Result};
use crate::slot::{Answer, Slot, Value};

/// A write under way. It goes on if the ticket is dropped.
#[must_use = "a write may fail"]
pub struct Ticket(pub(crate) Arc<Slot>);

impl Ticket {
    /// Whether it has ended, so that [`wait`](Self::wait) returns at once.
    pub fn is_done(&self) -> bool {
        self.0.is_filled()
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// As [`Region::put`](crate::Region::put).
    pub fn wait(self) -> Result<()> {
        done(&self.0.wait()?)
    }
}

/// A read under way.
#[must_use = "a read is for its value"]
pub struct GetTicket(pub(crate) Arc<Slot>);

impl GetTicket {
    /// Whether it has ended, so that [`wait`](Self::wait) returns at once.
    pub fn is_done(&self) -> bool {
        self.0.is_filled()
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn wait(self) -> Result<Option<Value>> {
        value(&self.0.wait()?)
    }
}

/// What an answer to a write says.
pub(crate) fn done(answer: &Answer) -> Result<()> {
    match answer.reply()? {
        Reply::Done => Ok(()),
        _ => Err(Error::strange()),
    }
}

/// What an answer to a get says.
pub(crate) fn value(answer: &Answer) -> Result<Option<Value>> {
    match answer.reply()? {
        Reply::Value(value) => Ok(value.map(<[u8]>::to_vec)),
        _ => Err(Error::strange()),
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket(done: {})", self.is_done())
    }
}

impl fmt::Debug for GetTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GetTicket(done: {})", self.is_done())
    }
}
