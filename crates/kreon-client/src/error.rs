//! What can go wrong with a call, as its caller sees it.

use std::fmt;
use std::sync::Arc;

use kreon_wire::{Failure, FailureKind, Violation};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, as far as a program may care. But for [`Unknown`](Self::Unknown), nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call was not carried out within its time and never will be: there is no primary, no majority, no way to it.
    /// Calling again is safe.
    Unavailable,
    /// The write may have been carried out, may still be, or never will: its primary or the way to it was lost, or another
    /// primary is in office and the old one has not answered a quarter of the patience later. The client does not send it
    /// again: it could land above a later write of somebody else.
    Unknown,
    /// The keys of the batch lie in several groups, and it may not be split.
    CrossGroup,
    /// The snapshot or the scan ended: its primary did. Or the cluster was closed.
    Closed,
    /// There is no such table, server or group.
    NotFound,
    /// An argument is not allowed.
    InvalidArgument,
    /// Key, value, batch or answer is too large.
    TooLarge,
    /// A member of the group has no space.
    OutOfSpace,
    /// Too much is under way.
    Busy,
    /// Data does not verify, or a message makes no sense.
    Corruption,
    /// There is one already, otherwise than ordered.
    Exists,
    /// A device or the system failed.
    Io,
}

/// What went wrong, and a text for people.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    text: Arc<str>,
}

impl Error {
    /// An error of this kind; the text says what happened, in lower case.
    pub fn new(kind: ErrorKind, text: impl AsRef<str>) -> Self {
        Self {
            kind,
            text: text.as_ref().into(),
        }
    }

    /// What went wrong.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, without the kind; may be empty.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn refused(violation: Violation, what: &str) -> Self {
        let kind = match violation {
            Violation::TooLong => ErrorKind::TooLarge,
            _ => ErrorKind::InvalidArgument,
        };
        let why = match violation {
            Violation::Count => "too long or too many",
            Violation::TooLong => "more than a request may have",
            Violation::FieldValue => "empty or with control characters",
            Violation::Order => "out of order",
            _ => violation.told(),
        };
        Self::new(kind, format!("{what}: {why}"))
    }

    pub(crate) fn corrupt(violation: Violation) -> Self {
        Self::new(
            ErrorKind::Corruption,
            format!("answer refused, {violation}"),
        )
    }

    /// An answer that answers something else.
    pub(crate) fn strange() -> Self {
        Self::new(ErrorKind::Corruption, "the server answers another question")
    }
}

/// `InvalidArgument` for a key that is too long.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    match key.len() <= kreon_base::KEY_BYTES_MAX {
        true => Ok(()),
        false => {
            let text = format!("a key of {} bytes: at most 64 KiB", key.len());
            Err(Error::new(ErrorKind::InvalidArgument, text))
        }
    }
}

impl From<&Failure<'_>> for Error {
    fn from(failure: &Failure<'_>) -> Self {
        let kind = match failure.kind {
            FailureKind::Moved | FailureKind::Unavailable | FailureKind::NotMaster => {
                ErrorKind::Unavailable
            }
            FailureKind::Unknown => ErrorKind::Unknown,
            FailureKind::Closed => ErrorKind::Closed,
            FailureKind::NoTable => ErrorKind::NotFound,
            FailureKind::TooLarge => ErrorKind::TooLarge,
            FailureKind::CrossGroup => ErrorKind::CrossGroup,
            FailureKind::InvalidArgument => ErrorKind::InvalidArgument,
            FailureKind::OutOfSpace => ErrorKind::OutOfSpace,
            FailureKind::Busy => ErrorKind::Busy,
            FailureKind::Corruption => ErrorKind::Corruption,
            FailureKind::Exists => ErrorKind::Exists,
            FailureKind::Io => ErrorKind::Io,
        };
        Self::new(kind, failure.text)
    }
}

impl From<kreon_base::Error> for Error {
    fn from(error: kreon_base::Error) -> Self {
        use kreon_base::ErrorKind as Base;
        let kind = match error.kind() {
            Base::Corruption => ErrorKind::Corruption,
            Base::OutOfSpace => ErrorKind::OutOfSpace,
            Base::InvalidArgument => ErrorKind::InvalidArgument,
            Base::NotFound => ErrorKind::NotFound,
            Base::Closed => ErrorKind::Closed,
            Base::Busy => ErrorKind::Busy,
            _ => ErrorKind::Io,
        };
        Self::new(kind, error.to_string())
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "unavailable",
            Self::Unknown => "outcome unknown",
            Self::CrossGroup => "several groups",
            Self::Closed => "closed",
            Self::NotFound => "not found",
            Self::InvalidArgument => "invalid argument",
            Self::TooLarge => "too large",
            Self::OutOfSpace => "out of space",
            Self::Busy => "busy",
            Self::Corruption => "corruption",
            Self::Exists => "exists",
            Self::Io => "i/o error",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text.is_empty() {
            true => write!(f, "{}", self.kind),
            false => write!(f, "{}: {}", self.kind, self.text),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {}
