//! Why a request was not carried out, or may not have been.

use crate::codes::codes;
use crate::fields::Fields;
use crate::ids::{ServerId, Term};
use crate::limits::FAILURE_TEXT_BYTES_MAX;
use crate::violation::Violation;

codes! {
    /// Why. Nothing was changed but for `Unknown`.
    FailureKind {
        /// The server is not the primary in the term that was named, or does not hold the keys. It knows the term that it tells, if any.
        Moved = 1,
        /// The group takes no such request at present, or the server ends.
        Unavailable = 2,
        /// It was appended, and may have been done or not.
        Unknown = 3,
        /// There is no such snapshot, any more.
        Closed = 4,
        /// The group has no such table.
        NoTable = 5,
        /// The request or its answer is too large.
        TooLarge = 6,
        /// Not all keys lie in this group.
        CrossGroup = 7,
        /// It asks for what is not allowed.
        InvalidArgument = 8,
        /// A member of the group has no space.
        OutOfSpace = 9,
        /// Too much is under way, of this client or of all.
        Busy = 10,
        /// What is needed does not verify.
        Corruption = 11,
        /// The server is not the master; the one that it tells may be.
        NotMaster = 12,
        /// It exists already, otherwise than ordered.
        Exists = 13,
        /// A device failed.
        Io = 14,
    }
}

/// Why a request was not carried out, or may not have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure<'a> {
    /// Why.
    pub kind: FailureKind,
    /// Of `Moved`, the highest term that the server knows of the group, 0 if none; otherwise 0.
    pub term: Term,
    /// Of `NotMaster`, who may be the master, 0 if nobody is known; otherwise 0.
    pub server: ServerId,
    /// What people are to know, up to [`FAILURE_TEXT_BYTES_MAX`] bytes without control characters. A longer one is cut when
    /// it is encoded, and control characters become question marks.
    pub text: &'a str,
}

impl<'a> Failure<'a> {
    /// A failure that is neither `Moved` nor `NotMaster`, or tells nothing more.
    pub const fn new(kind: FailureKind, text: &'a str) -> Self {
        Self {
            kind,
            term: Term(0),
            server: ServerId(0),
            text,
        }
    }

    /// The primary is another one, in this term at least.
    pub const fn moved(term: Term, text: &'a str) -> Self {
        Self {
            term,
            ..Self::new(FailureKind::Moved, text)
        }
    }

    /// The master is another server; 0 if nobody is known.
    pub const fn not_master(server: ServerId, text: &'a str) -> Self {
        Self {
            server,
            ..Self::new(FailureKind::NotMaster, text)
        }
    }

    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        let kind = FailureKind::of(fields.u8()?)?;
        fields.zeroes::<2>()?;
        let server = ServerId(fields.u32()?);
        let term = Term(fields.u64_upto(Term::MAX.0)?);
        if (term.0 != 0 && kind != FailureKind::Moved)
            || (server.0 != 0 && kind != FailureKind::NotMaster)
        {
            return Err(Violation::FieldValue);
        }
        if fields.left() > FAILURE_TEXT_BYTES_MAX {
            return Err(Violation::Count);
        }
        Ok(Self {
            kind,
            term,
            server,
            text: fields.text(fields.left())?,
        })
    }

    /// Everything behind the code of the reply.
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&[self.kind as u8, 0, 0]);
        to.extend_from_slice(&self.server.0.to_le_bytes());
        to.extend_from_slice(&self.term.0.to_le_bytes());
        let (start, mut utf8) = (to.len(), [0; 4]);
        for character in self.text.chars() {
            let shown = if character.is_control() {
                '?'
            } else {
                character
            };
            let bytes = shown.encode_utf8(&mut utf8).as_bytes();
            if to.len() - start + bytes.len() > FAILURE_TEXT_BYTES_MAX {
                break;
            }
            to.extend_from_slice(bytes);
        }
    }
}
