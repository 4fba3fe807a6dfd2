//! The one error type. The kind tells a program what to do; the text tells a person what happened and where.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Result of all fallible calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure, which decides what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system or the device failed an operation. After a failed write, later writes fail with
    /// [`Poisoned`](Self::Poisoned): reopen the store.
    Io,
    /// Bytes from the device do not verify; the message names what and where. Other data stays readable. Restore the
    /// damaged part from a backup, or repair the store.
    Corruption,
    /// The volume, the file system or a limit is full; nothing was written. Delete data or add space, then go on.
    OutOfSpace,
    /// An argument is outside its documented range; nothing was done.
    InvalidArgument,
    /// The named store or region does not exist.
    NotFound,
    /// The store was closed, or the region was dropped, before the call; or this process was forked from the one that
    /// opened the store, and can neither use inherited handles nor open a store.
    Closed,
    /// An earlier write or flush failed, so it is unknown what is durable. Reads go on; reopen the store to write
    /// again.
    Poisoned,
    /// Another process has the store open, or another load into the region is in progress. Try again later.
    Busy,
    /// The store is open for reading only; nothing was done. Open it for writing.
    ReadOnly,
    /// Something that a transaction has read or written was changed by another writer before its commit; nothing of the
    /// transaction was applied. Run the whole transaction again, from its reads on.
    Conflict,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io => "i/o error",
            Self::Corruption => "corruption",
            Self::OutOfSpace => "out of space",
            Self::InvalidArgument => "invalid argument",
            Self::NotFound => "not found",
            Self::Closed => "closed",
            Self::Poisoned => "poisoned",
            Self::Busy => "busy",
            Self::ReadOnly => "read-only",
            Self::Conflict => "conflict",
        })
    }
}

/// An error: a [kind](ErrorKind), a message, and the error of the operating system if there is one. Cheap to clone, so
/// that all waiters for one failed flush get it.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
}

impl Error {
    /// An error of `kind`; `message` says what happened and where, without the name of the kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            source: None,
        }))
    }

    /// An error of the operating system during `action` ("read 4096 bytes at 8192"). A full disk or quota becomes
    /// [`ErrorKind::OutOfSpace`].
    pub fn io(action: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => ErrorKind::OutOfSpace,
            _ => ErrorKind::Io,
        };
        Self(Arc::new(Inner {
            kind,
            message: action.into(),
            source: Some(source),
        }))
    }

    /// Bytes that do not verify.
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message)
    }

    /// An argument outside its documented range.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The same error with `context: ` before its message.
    #[must_use]
    pub fn within(&self, context: impl fmt::Display) -> Self {
        let source = self.0.source.as_ref().map(|e| match e.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(e.kind(), e.to_string()),
        });
        Self(Arc::new(Inner {
            kind: self.0.kind,
            message: format!("{context}: {}", self.0.message),
            source,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_out_of_space() {
        let full = Error::io("write", io::Error::from_raw_os_error(28));
        assert_eq!(full.kind(), ErrorKind::OutOfSpace);
    }

    #[test]
    fn context_keeps_kind_and_source() {
        let error = Error::io("read 1 byte", io::Error::from_raw_os_error(5)).within("open x");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(
            error
                .to_string()
                .starts_with("i/o error: open x: read 1 byte: "),
            "{error}"
        );
        assert!(std::error::Error::source(&error).is_some());
    }
}
