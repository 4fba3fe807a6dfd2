//! What a failure looks like from outside: the exit code, what happened, and what to do.

use std::error::Error as _;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use kreon::{Error, ErrorKind};
use kreon_client::ErrorKind as ClusterErrorKind;

use crate::sink::OutputError;

/// Result of everything that the command does.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The exit codes. Scripts rely on them: a number never gets another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    KeyNotFound = 1,
    Usage = 2,
    Damage = 3,
    Busy = 4,
    StoreFull = 5,
    Other = 6,
    StoreNotFound = 7,
    RegionNotFound = 8,
    FileNotFound = 9,
    OutputFailed = 10,
    Unavailable = 11,
    Unknown = 12,
    Interrupted = 130,
    Terminated = 143,
}

/// What `kreon --help` says of them.
pub const EXIT_CODES: &str = "\
Exit codes:
    0  done (also where the reader of a pipe went away)
    1  no such key
    2  wrong use or bad input
    3  damage found
    4  the store is open elsewhere
    5  no space left in the store
    6  any other failure, such as one of the operating system
    7  no such store
    8  no such region
    9  no such folder, no backup in it, or no such input file
   10  the output could not be written
   11  the cluster does not carry it out at present; nothing was changed
   12  the cluster may have carried it out, or not
  130  interrupted by SIGINT (Ctrl-C), 143 by SIGTERM";

/// A failure of the command.
#[derive(Debug)]
pub struct Failure {
    code: Code,
    message: String,
    advice: String,
    is_closed_pipe: bool,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            advice: advice.into(),
            is_closed_pipe: false,
        }
    }

    /// Wrong use, told by the command itself.
    pub fn usage(message: impl Into<String>) -> Self {
        Error::invalid(message).into()
    }

    /// The end that `signal` asked for.
    pub fn interrupted(signal: i32) -> Self {
        let (code, name) = match signal {
            signal_hook::consts::SIGINT => (Code::Interrupted, "SIGINT"),
            _ => (Code::Terminated, "SIGTERM"),
        };
        Self::new(code, format!("interrupted by {name}"), "")
    }

    /// Why the store at `path` could not be opened.
    pub fn opening(error: Error, path: &Path) -> Self {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let (path, named) = (path.display(), folder.display());
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::InvalidArgument if !folder.is_dir() => {
                let what = match folder.exists() {
                    true => "is not a folder",
                    false => "does not exist",
                };
                Self::new(
                    Code::FileNotFound,
                    format!("not found: the folder {named} of the store {path} {what}"),
                    "check the path, or make the folder",
                )
            }
            ErrorKind::NotFound => Self::new(
                Code::StoreNotFound,
                format!("not found: there is no store {path}"),
                "check the path; put, import, `regions create` and shell make a store",
            ),
            ErrorKind::InvalidArgument if error.to_string().contains("--format-store") => {
                Self::from(error).with_advice(
                    "check the path; only put, import, `regions create` and shell take --format-store",
                )
            }
            ErrorKind::Io if is_not_permitted(&error) => Self::from(error).with_advice(
                "a store must be readable, and writable for commands that write: check the permissions of the \
                 path and its folder",
            ),
            _ => error.into(),
        }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn exit_code(&self) -> u8 {
        self.code as u8
    }

    pub fn is_interruption(&self) -> bool {
        matches!(self.code, Code::Interrupted | Code::Terminated)
    }

    /// Whether the reader of our output went away (`kreon scan | head`).
    pub fn is_closed_pipe(&self) -> bool {
        self.is_closed_pipe
    }

    /// The same failure with other advice.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// The same failure with more to say.
    #[must_use]
    pub fn with_more(mut self, more: &str, advice: impl Into<String>) -> Self {
        self.message = format!("{}: {more}", self.message);
        self.with_advice(advice)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if let Some(output) = output_error(&error) {
            let is_closed_pipe = output.is_closed_pipe();
            let advice = "the store is not concerned; check where the output goes";
            return Self {
                is_closed_pipe,
                ..Self::new(Code::OutputFailed, output.to_string(), advice)
            };
        }
        let (code, advice) = match error.kind() {
            // In an open store the library looks for nothing else by name.
            ErrorKind::NotFound => (
                Code::RegionNotFound,
                "check --region; `kreon regions` lists them",
            ),
            ErrorKind::InvalidArgument => (Code::Usage, "see `kreon help`"),
            ErrorKind::Corruption => (
                Code::Damage,
                "other data stays readable: see `kreon verify`, restore the damaged part from a backup, or \
                 salvage the rest with `kreon repair`",
            ),
            ErrorKind::Busy => (Code::Busy, "close the store there, or try again later"),
            ErrorKind::OutOfSpace => (
                Code::StoreFull,
                "delete something or add space, then try again",
            ),
            ErrorKind::Io if is_missing_file(&error) => (Code::FileNotFound, "check the path"),
            ErrorKind::Io => (
                Code::Other,
                "check the path, its permissions and the device, then try again",
            ),
            ErrorKind::ReadOnly => (Code::Usage, "see `kreon help`"),
            ErrorKind::Poisoned | ErrorKind::Closed => (Code::Other, "run the command again"),
            _ => (Code::Other, ""),
        };
        Self::new(code, error.to_string(), advice)
    }
}

impl From<kreon_client::Error> for Failure {
    fn from(error: kreon_client::Error) -> Self {
        let (code, advice) = match error.kind() {
            ClusterErrorKind::Unavailable => (
                Code::Unavailable,
                "nothing was changed: try again, and see `kreon cluster status`",
            ),
            ClusterErrorKind::Unknown => (
                Code::Unknown,
                "it may have been carried out, or may be yet: read before you write it again",
            ),
            ClusterErrorKind::NotFound => (
                Code::RegionNotFound,
                "check the name of the cluster and --region; `kreon regions` lists them",
            ),
            ClusterErrorKind::InvalidArgument
            | ClusterErrorKind::TooLarge
            | ClusterErrorKind::CrossGroup
            | ClusterErrorKind::Exists => (Code::Usage, "see `kreon help`"),
            ClusterErrorKind::Corruption => (
                Code::Damage,
                "see `kreon cluster verify`; the copies of other servers may be whole",
            ),
            ClusterErrorKind::OutOfSpace => (
                Code::StoreFull,
                "delete something or add space to the servers, then try again",
            ),
            ClusterErrorKind::Busy => (Code::Unavailable, "try again later"),
            ClusterErrorKind::Closed => (
                Code::Unavailable,
                "the primary of a group changed meanwhile: run the command again",
            ),
            _ => (Code::Other, "see `kreon cluster status`"),
        };
        Self::new(code, error.to_string(), advice)
    }
}

/// One line: what happened, then what to do about it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message.replace(['\n', '\r'], " "))?;
        match self.advice.as_str() {
            "" => Ok(()),
            advice => write!(f, "; {advice}"),
        }
    }
}

fn io_source(error: &Error) -> Option<&io::Error> {
    error.source()?.downcast_ref()
}

fn output_error(error: &Error) -> Option<&OutputError> {
    io_source(error)?.get_ref()?.downcast_ref()
}

fn is_missing_file(error: &Error) -> bool {
    io_source(error).is_some_and(|source| {
        matches!(
            source.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    })
}

fn is_not_permitted(error: &Error) -> bool {
    io_source(error).is_some_and(|source| {
        matches!(
            source.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        )
    })
}

/// Writes a line to standard error. Unlike `eprintln!` it does not panic where nobody listens
/// (`kreon scan 2>&1 | head`).
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        for (kind, code) in [
            (ErrorKind::NotFound, 8),
            (ErrorKind::InvalidArgument, 2),
            (ErrorKind::Corruption, 3),
            (ErrorKind::Busy, 4),
            (ErrorKind::OutOfSpace, 5),
            (ErrorKind::Io, 6),
            (ErrorKind::Closed, 6),
            (ErrorKind::Poisoned, 6),
        ] {
            let failure = Failure::from(Error::new(kind, "x"));
            assert_eq!(failure.exit_code(), code, "{kind}");
        }
    }

    #[test]
    fn what_may_have_been_done_is_told_from_what_was_not() {
        for (kind, code) in [
            (ClusterErrorKind::Unavailable, 11),
            (ClusterErrorKind::Busy, 11),
            (ClusterErrorKind::Closed, 11),
            (ClusterErrorKind::Unknown, 12),
            (ClusterErrorKind::NotFound, 8),
            (ClusterErrorKind::OutOfSpace, 5),
        ] {
            let failure = Failure::from(kreon_client::Error::new(kind, "x"));
            assert_eq!(failure.exit_code(), code, "{kind}");
        }
    }

    #[test]
    fn every_exit_code_is_in_the_help() {
        for code in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 130] {
            assert!(EXIT_CODES.contains(&format!("\n{code:>5}  ")), "{code}");
        }
    }

    #[test]
    fn a_message_of_several_lines_becomes_one() {
        let failure = Failure::from(Error::new(ErrorKind::Busy, "first\nsecond"));
        assert_eq!(
            failure.to_string(),
            "busy: first second; close the store there, or try again later"
        );
    }

    #[test]
    fn a_store_that_cannot_be_written_is_told_with_what_it_needs() {
        for kind in [
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem,
        ] {
            let error = Error::io("open x", io::Error::from(kind));
            let failure = Failure::opening(error, Path::new("x"));
            assert_eq!(failure.code(), Code::Other);
            let told = failure.to_string();
            assert!(told.contains("readable, and writable"), "{told}");
        }
    }

    #[test]
    fn a_full_disk_of_the_store_is_not_taken_for_one_of_the_output() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let store = Failure::from(Error::io("reserve", full()));
        assert_eq!(store.code(), Code::StoreFull);
        let output = Failure::from(OutputError::told("standard output", full()));
        assert_eq!(output.code(), Code::OutputFailed);
        assert!(!output.to_string().contains("delete"), "{output}");
    }

    #[test]
    fn only_a_broken_pipe_of_the_output_is_a_closed_pipe() {
        let output = |kind| Failure::from(OutputError::told("x", io::Error::from(kind)));
        assert!(output(io::ErrorKind::BrokenPipe).is_closed_pipe());
        assert!(!output(io::ErrorKind::StorageFull).is_closed_pipe());
        let store = Error::io("write", io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(!Failure::from(store).is_closed_pipe());
    }
}
