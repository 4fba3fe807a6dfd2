//! A call, and how far it is.

use crate::map::Route;
use crate::moment::Moment;

/// Number of a call, chosen by who makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// How often a call was sent: an answer to an earlier attempt is none to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Attempt(pub u32);

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It may be sent as often as one likes.
    Read,
    /// It may be carried out once.
    Write,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The map is read, and then says where it goes.
    Routing,
    /// Refused: the map is read anew later.
    Resting { until: Moment },
    /// Under way since then; and since when another primary is known, in a later term.
    Sent {
        route: Route,
        at: Moment,
        replaced: Option<Moment>,
    },
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) table: String,
    pub(crate) key: Vec<u8>,
    pub(crate) begun: Moment,
    pub(crate) attempt: Attempt,
    pub(crate) stage: Stage,
}

impl Call {
    /// Whether it may have been carried out although nobody said so.
    pub(crate) fn may_be_done(&self) -> bool {
        self.kind == Kind::Write && matches!(self.stage, Stage::Sent { .. })
    }
}
