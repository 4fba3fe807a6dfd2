//! What stops the log after a failed write or flush (invariant 4).

use std::sync::OnceLock;

use kreon_base::{Bug, Error, ErrorKind, Result};

/// Set once, by the first failure after which nobody knows what is durable. Never lifted: a flush that
/// failed once may succeed later although the data is gone, so nothing is tried again.
#[derive(Default)]
pub(super) struct Poison(OnceLock<Error>);

impl Poison {
    /// Stops all further writing because of `cause`; returns what the caller tells.
    pub fn set(&self, cause: &Error) -> Error {
        if Bug::NotPoisoned.is_planted() {
            return cause.clone();
        }
        if self.0.set(cause.clone()).is_ok() {
            tracing::error!(%cause, "the log takes no more writes until the store is reopened");
        }
        poisoned(self.0.get().unwrap_or(cause))
    }

    /// Costs one load while nothing failed.
    ///
    /// # Errors
    /// `Poisoned`, telling the cause.
    pub fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(poisoned(cause)),
        }
    }
}

fn poisoned(cause: &Error) -> Error {
    Error::new(
        ErrorKind::Poisoned,
        format!("reopen the store to write again; the log stopped because of: {cause}"),
    )
}

/// What every call on a closed store returns.
pub fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed; open it again")
}
