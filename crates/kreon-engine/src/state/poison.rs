//! What stops writing: a failure (invariant 4), or that the store was closed.

use crate::sync::{AtomicBool, Ordering};
use std::sync::OnceLock;

use kreon_base::{Bug, Error, ErrorKind, Result};

pub(crate) use crate::log::closed;

/// Everything that writes to the device asks here first.
#[derive(Default)]
pub struct Poison {
    /// The first failure after which nobody knows what is durable. Reads go on.
    cause: OnceLock<Error>,
    is_closed: AtomicBool,
}

impl Poison {
    /// Stops all further writing because of `cause`.
    pub fn set(&self, cause: &Error) {
        if Bug::NotPoisoned.is_planted() {
            return;
        }
        let is_news = !matches!(cause.kind(), ErrorKind::Closed | ErrorKind::Poisoned);
        if self.cause.set(cause.clone()).is_ok() && is_news {
            tracing::error!(%cause, "the store takes no more writes until it is reopened");
        }
    }

    /// Stops all further writing because the volume's lock is about to be given up.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// # Errors
    /// `Closed`; or `Poisoned`, telling the cause.
    pub fn check(&self) -> Result<()> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        match self.cause.get() {
            None => Ok(()),
            // The log was first to notice, and tells the cause itself.
            Some(cause) if cause.kind() == ErrorKind::Poisoned => Err(cause.clone()),
            Some(cause) => Err(Error::new(
                ErrorKind::Poisoned,
                format!("reopen the store to write again; writing stopped because of: {cause}"),
            )),
        }
    }
}
