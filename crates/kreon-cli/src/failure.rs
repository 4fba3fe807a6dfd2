//! What a failure looks like from outside: the exit code, and one line that says what happened and
//! what to do.

use std::error::Error as _;
use std::io::{self, Write};

use kreon::{Error, ErrorKind};

/// The exit code of the process for a failure of `kind`.
pub fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::NotFound => 1,
        ErrorKind::InvalidArgument => 2,
        ErrorKind::Corruption => 3,
        ErrorKind::Busy => 4,
        ErrorKind::OutOfSpace => 5,
        _ => 6,
    }
}

/// One line for a person: what happened, then what to do about it.
pub fn line(error: &Error) -> String {
    let mut line = error.to_string().replace(['\n', '\r'], " ");
    let advice = advice(error.kind());
    if !advice.is_empty() {
        line.push_str("; ");
        line.push_str(advice);
    }
    line
}

fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "check --store, --region and the name",
        ErrorKind::InvalidArgument => "see `kreon help`",
        ErrorKind::Corruption => {
            "other data stays readable: see `kreon verify`, restore the damaged part from a backup, or \
             salvage the rest with `kreon repair`"
        }
        ErrorKind::Busy => "close the store there, or try again later",
        ErrorKind::OutOfSpace => "delete something or add space, then try again",
        ErrorKind::Io => "check the path, its permissions and the device, then try again",
        ErrorKind::Poisoned | ErrorKind::Closed => "run the command again",
        _ => "",
    }
}

/// Writes a line to standard error. Unlike `eprintln!` it does not panic where nobody listens
/// (`kreon scan 2>&1 | head`).
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether the failure is that the reader of our output went away (`kreon scan | head`).
pub fn is_closed_pipe(error: &Error) -> bool {
    error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        for (kind, code) in [
            (ErrorKind::NotFound, 1),
            (ErrorKind::InvalidArgument, 2),
            (ErrorKind::Corruption, 3),
            (ErrorKind::Busy, 4),
            (ErrorKind::OutOfSpace, 5),
            (ErrorKind::Io, 6),
            (ErrorKind::Closed, 6),
            (ErrorKind::Poisoned, 6),
        ] {
            assert_eq!(exit_code(kind), code, "{kind}");
        }
    }

    #[test]
    fn a_message_of_several_lines_becomes_one() {
        let line = line(&Error::new(ErrorKind::Busy, "first\nsecond"));
        assert_eq!(
            line,
            "busy: first second; close the store there, or try again later"
        );
    }

    #[test]
    fn only_a_broken_pipe_is_a_closed_pipe() {
        let failed = |kind| Error::io("write", io::Error::from(kind));
        assert!(is_closed_pipe(&failed(io::ErrorKind::BrokenPipe)));
        assert!(!is_closed_pipe(&failed(io::ErrorKind::StorageFull)));
        assert!(!is_closed_pipe(&Error::invalid("pipe")));
    }
}
