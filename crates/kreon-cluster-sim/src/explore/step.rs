//! What can happen next.

use std::fmt;

use crate::toy::Place;

/// One step. Whatever follows from it without delay is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A client writes at a primary.
    Put(Place),
    /// A primary's log becomes durable.
    Flush(Place),
    /// The next record of a primary's log arrives at a backup.
    Land(Place, Place),
    /// A primary learns how far a backup is.
    Progress(Place, Place),
    /// A primary or candidate takes a member for dead.
    Fail(Place, Place),
    /// The coordinator carries out what a primary asked for, and answers.
    Swap(Place),
    /// A server asks a primary to take it in, and gets everything.
    Join(Place, Place),
    /// The checkpoint that completes a joiner is on all who count.
    Complete(Place),
    /// The power fails; so many records survive.
    Crash(Place, usize),
    /// The server comes back.
    Restart(Place),
    /// The session of the primary ends, whether the primary lives or not.
    Expire,
    /// A member gets a seal.
    Seal(Place),
    /// The master waits no longer for reports.
    Decide,
    /// A member gets the state of a candidate.
    Equalise(Place, Place),
    /// A candidate's engine is open, its first checkpoint durable on all members.
    Opened(Place),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |place: &Place| (b'A' + *place as u8) as char;
        match self {
            Self::Put(p) => write!(f, "a client writes at {}", name(p)),
            Self::Flush(p) => write!(f, "the log of {} becomes durable", name(p)),
            Self::Land(p, b) => write!(f, "a record of {} lands at {}", name(p), name(b)),
            Self::Progress(p, b) => write!(f, "{} learns how far {} is", name(p), name(b)),
            Self::Fail(p, b) => write!(f, "{} takes {} for dead", name(p), name(b)),
            Self::Swap(p) => write!(f, "the coordinator carries out the swap of {}", name(p)),
            Self::Join(p, b) => write!(f, "{} copies everything to {}", name(p), name(b)),
            Self::Complete(p) => write!(f, "the checkpoint of {} for its joiner ends", name(p)),
            Self::Crash(p, kept) => write!(f, "{} loses power and keeps {kept} records", name(p)),
            Self::Restart(p) => write!(f, "{} starts again", name(p)),
            Self::Expire => write!(f, "the session of the primary ends; the next term"),
            Self::Seal(p) => write!(f, "{} is sealed and reports", name(p)),
            Self::Decide => write!(f, "the master waits no longer, and promotes"),
            Self::Equalise(c, b) => write!(f, "{} brings {} to its state", name(c), name(b)),
            Self::Opened(p) => write!(f, "{} has opened its engine and serves", name(p)),
        }
    }
}
