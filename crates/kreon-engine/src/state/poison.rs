//! What stops writing after a failure (invariant 4).

use std::sync::OnceLock;

use kreon_base::{Error, ErrorKind, Result};

/// Set once, by the first failure after which nobody knows what is durable. Reads go on.
#[derive(Default)]
pub struct Poison(OnceLock<Error>);

impl Poison {
    /// Stops all further writing because of `cause`.
    pub fn set(&self, cause: &Error) {
        if self.0.set(cause.clone()).is_ok() {
            tracing::error!(%cause, "the store takes no more writes until it is reopened");
        }
    }

    /// # Errors
    /// `Poisoned`, telling the cause.
    pub fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(Error::new(
                ErrorKind::Poisoned,
                format!("reopen the store to write again; writing stopped because of: {cause}"),
            )),
        }
    }
}
