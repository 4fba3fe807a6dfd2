//! What stops writing: a failed write or flush (invariant 4), or that the store was closed.

use std::sync::OnceLock;

use kreon_base::{Error, ErrorKind, Result, planted};
use kreon_sync::{AtomicBool, Ordering};

/// Everything that writes to the device asks here first. Set once, by the first failure after which it is unknown what
/// is durable, and never lifted: a flush that failed may succeed when tried again although the data is gone. Reads go on.
#[derive(Default)]
pub struct Poison {
    /// The first failure, `Closed` or `ReadOnly`.
    cause: OnceLock<Error>,
    is_closed: AtomicBool,
    tell: Option<Box<Tell>>,
}

/// Told the first failure.
type Tell = dyn Fn(&Error) + Send + Sync;

impl Poison {
    /// `tell` is told the first failure, once.
    pub fn telling(tell: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self {
            tell: Some(Box::new(tell)),
            ..Self::default()
        }
    }

    /// Of a store that is open for reading only: nothing is ever written.
    pub fn of_reader() -> Self {
        let poison = Self::default();
        _ = poison.cause.set(read_only());
        poison
    }

    /// Stops all further writing because of `cause`.
    pub fn set(&self, cause: &Error) {
        planted!(NotPoisoned => return);
        // A reader's has its cause from the beginning.
        if self.cause.set(cause.clone()).is_err() || cause.kind() == ErrorKind::Closed {
            return;
        }
        if cause.kind() != ErrorKind::Poisoned {
            tracing::error!(%cause, "the store takes no more writes until it is reopened");
        }
        if let Some(tell) = &self.tell {
            tell(cause);
        }
    }

    /// Stops all further writing because the volume's lock is about to be given up.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // `check` looks at the flag only where there is a cause.
        _ = self.cause.set(closed());
    }

    /// Costs one load while nothing has failed.
    ///
    /// # Errors
    /// `Closed`; `ReadOnly`; or `Poisoned`, telling the cause.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.cause.get() {
            None => Ok(()),
            Some(cause) => Err(self.refusal(cause)),
        }
    }

    #[cold]
    fn refusal(&self, cause: &Error) -> Error {
        if self.is_closed.load(Ordering::SeqCst) {
            return closed();
        }
        match cause.kind() {
            // Another poison was set first, and tells the cause itself.
            ErrorKind::Poisoned | ErrorKind::ReadOnly => cause.clone(),
            _ => Error::new(
                ErrorKind::Poisoned,
                format!("reopen the store to write again; writing stopped because of: {cause}"),
            ),
        }
    }
}

/// What every call on a closed store returns.
pub fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed; open it again")
}

/// What every call that would write gets of a store that is open for reading only.
pub fn read_only() -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        "the store is open for reading only; open it for writing",
    )
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn kind(poison: &Poison) -> Option<ErrorKind> {
        poison.check().err().map(|error| error.kind())
    }

    #[test]
    fn a_failure_is_told_until_the_store_is_closed() {
        let poison = Poison::default();
        assert_eq!(kind(&poison), None);
        poison.set(&Error::new(ErrorKind::Io, "first"));
        poison.set(&Error::new(ErrorKind::Io, "second"));
        let told = poison.check().map_err(|error| error.to_string());
        assert!(told.is_err_and(|told| told.contains("first")));
        assert_eq!(kind(&poison), Some(ErrorKind::Poisoned));
        poison.close();
        assert_eq!(kind(&poison), Some(ErrorKind::Closed));
    }

    #[test]
    fn a_reader_refuses_to_write_until_it_is_closed() {
        let poison = Poison::of_reader();
        poison.set(&Error::new(ErrorKind::Io, "late"));
        assert_eq!(kind(&poison), Some(ErrorKind::ReadOnly));
        poison.close();
        assert_eq!(kind(&poison), Some(ErrorKind::Closed));
    }

    #[test]
    fn a_closed_store_says_so_whatever_fails_later() {
        let poison = Poison::default();
        poison.close();
        poison.set(&Error::new(ErrorKind::Io, "late"));
        assert_eq!(kind(&poison), Some(ErrorKind::Closed));
    }
}
