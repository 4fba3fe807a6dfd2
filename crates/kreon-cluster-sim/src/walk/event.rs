//! What is on its way, and to whom.

use std::sync::Arc;

use kreon_base::Lsn;
use kreon_coord::fake::SessionId;
use kreon_replica::machine::{
    Answer, Ask, BeatNumber, Configuration, Member, Report, ServerId, SlotMark, Term, Ticket,
};

use super::clients::Request;
use crate::toy::{Entry, Place, Write};

/// A message between servers.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Seal(Term),
    Sealed(Term, Report),
    Equalise {
        term: Term,
        top: SlotMark,
        end: Lsn,
        log: Arc<[Entry]>,
    },
    Equal(Term),
    Hint(Configuration),
    Refused(Term),
    Beat(Term, BeatNumber),
    Beaten(Term, BeatNumber),
    AskAttach,
    Attached(Term, Arc<[Entry]>),
    Copied(Lsn),
    Log(Term, usize, Entry),
    Progress(Term, Lsn, Lsn),
    /// Everything before it is to be durable; then this superblock, if there is one.
    Barrier(Term, u64, usize, Option<SlotMark>),
    Passed(Term, u64),
    Closed(Term),
    Serves(Term),
    /// The primary of this term is to hand over.
    HandOver(Term),
    /// Which start of the server runs?
    Probe(Member),
    /// Another one than this.
    Ended(Member),
}

impl Message {
    /// Whether it has a link of its own, so that it does not queue behind records and pages.
    pub(super) fn is_control(&self) -> bool {
        !matches!(
            self,
            Self::Attached(..)
                | Self::Copied(_)
                | Self::Log(..)
                | Self::Progress(..)
                | Self::Barrier(..)
                | Self::Passed(..)
                | Self::Closed(_)
        )
    }
}

/// Which machine of a server asked the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Replica,
    Primary(Term),
    Master,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// A message arrives, for this start of its receiver only if it names one.
    Arrives {
        from: Member,
        to: ServerId,
        start: Option<u8>,
        message: Message,
    },
    /// A question reaches the coordinator, if this session lasts.
    Asked(Place, u8, Option<SessionId>, Asker, Ticket, Ask),
    /// An order that was believed lost reaches the coordinator, if its session lasts.
    Stray(Place, SessionId, Ask),
    /// An answer of the coordinator arrives.
    Answered(Place, u8, Asker, Ticket, Answer),
    /// The clock of a server.
    Ticks(Place, u8),
    /// A flush of a primary ended.
    Flushed(Place, u8, Term, usize),
    /// A seal or repair is carried out.
    Ended(Place, u8, Term, Report),
    Repaired(Place, u8, Term),
    /// A server talks to the coordinator: session, elections, watches.
    Contacts(Place, u8),
    /// The coordinator looks for sessions that are over.
    Sweeps,
    /// Time of the clients passes, and one makes a call.
    Client,
    /// A client reads the map.
    MapAsked(usize, bool),
    /// Something happens to a client.
    Told(usize, kreon_client::Event),
    /// A server's answer arrives at a client.
    Replied(Request, kreon_client::Reply, Option<Write>),
    /// Something goes wrong, or well again.
    Fault,
    /// A client's request arrives.
    Requested(Place, Request),
    /// The power fails.
    Fails(Place),
    Restarts(Place),
    Heals,
    CoordinatorHeals(Place),
    CoordinatorReturns,
    /// The coordinator is restored from a copy.
    Restored,
    /// An operator gives up the rest of a set.
    Operator,
    /// An operator or the master's office wants a change while all is well.
    Wish,
}
