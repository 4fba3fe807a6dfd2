//! Why a packet or question is not acted upon.

use crate::codes::codes;
use crate::fields::Fields;
use crate::frame::BodyFront;
use crate::ids::Term;
use crate::kind::Kind;
use crate::violation::Violation;

codes! {
    /// Why it is refused.
    Reason {
        /// It is of a lower term than the one that the receiver has seen.
        LowerTerm = 1,
        /// It is of a higher term: the receiver reads the configuration anew. Ask again.
        HigherTerm = 2,
        /// The receiver knows no such group.
        UnknownGroup = 3,
        /// The receiver is not the primary of the group.
        NotPrimary = 4,
        /// The sender, or this start of it, is not in the set of the group.
        NotInSet = 5,
        /// The receiver's volume is that of another store.
        OtherStore = 6,
        /// The receiver cannot read this format of volumes: upgrade it first.
        OtherFormat = 7,
        /// The receiver belongs to another cluster.
        OtherCluster = 8,
        /// The proof is wrong, or one side has a key and the other none.
        NotProven = 9,
        /// The receiver is at its limit of connections, primaries or joins. Ask later.
        Busy = 10,
        /// The device of the receiver has no space for the volume.
        NoSpace = 11,
        /// The device of the receiver failed.
        DeviceFailed = 12,
        /// The receiver's state does not allow it yet. Ask again.
        NotReady = 13,
        /// The receiver ends.
        Closing = 14,
    }
}

/// A packet or question is not acted upon. Group, term and number of the header are those of what is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refused {
    /// Why.
    pub reason: Reason,
    /// What is refused: its kind.
    pub kind: Kind,
    /// The highest term of the group that the receiver has seen; 0 if none.
    pub term: Term,
}

impl Refused {
    pub(crate) fn read(mut fields: Fields<'_>) -> Result<Self, Violation> {
        let reason = Reason::of(fields.u8()?)?;
        let kind = Kind::of(fields.u8()?).map_err(|_| Violation::FieldValue)?;
        fields.zeroes::<6>()?;
        let term = Term(fields.u64_upto(Term::MAX.0)?);
        fields.end()?;
        Ok(Self { reason, kind, term })
    }

    pub(crate) fn put(&self, front: &mut BodyFront) {
        front.put_u8(self.reason as u8).put_u8(self.kind as u8);
        front.put_zeroes(6).put_u64(self.term.0);
    }
}
