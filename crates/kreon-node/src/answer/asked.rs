//! A request for the primary of a group.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind};
use kreon_wire::FailureKind;

use crate::client::Due;
use crate::hosted::{Hosted, Office};

/// A request for a group that this server is the primary of.
pub struct Asked {
    pub hosted: Arc<Hosted>,
    pub office: Arc<Office>,
    pub due: Due,
}

impl Asked {
    /// It fails, and nothing was changed.
    pub fn fail(self, error: &Error) {
        let kind = match error.kind() {
            ErrorKind::OutOfSpace => FailureKind::OutOfSpace,
            ErrorKind::InvalidArgument => FailureKind::InvalidArgument,
            ErrorKind::Corruption => FailureKind::Corruption,
            ErrorKind::Busy => FailureKind::Busy,
            ErrorKind::Io | ErrorKind::Poisoned => FailureKind::Io,
            // The office ends, or the table was dropped meanwhile.
            _ => FailureKind::Unavailable,
        };
        self.hosted.refuse(self.due, kind, &error.to_string());
    }

    pub fn refuse(self, kind: FailureKind, text: &str) {
        self.hosted.refuse(self.due, kind, text);
    }

    /// The group has not all of these keys.
    pub fn misplaced(self) {
        self.hosted.misplaced(&self.office, self.due);
    }
}
