//! What a client is told, and what it wants done.

use kreon_coord::Version;
use kreon_wire::{GroupConfig, GroupId, Member, Term};

use crate::call::{Attempt, CallId, Kind};

/// What a server answers to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done.
    Ok,
    /// It was not done here: the server is not the primary in the term that was named, or does not hold the key. It
    /// knows this term.
    Moved(Term),
    /// It was not done: the group takes no writes at present.
    Unavailable,
    /// It may have been done: the server's office ended.
    Unknown,
}

/// What happens to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody makes a call.
    Call {
        /// Its number, which no call under way has.
        call: CallId,
        /// Whether it changes anything.
        kind: Kind,
        /// The table.
        table: String,
        /// The key.
        key: Vec<u8>,
    },
    /// What [`Action::ReadMap`] found: configurations of groups, any of which may be old.
    Map(Vec<(Version, GroupConfig)>),
    /// The map could not be read.
    MapFailed,
    /// A server answered.
    Replied {
        /// The call.
        call: CallId,
        /// The attempt that it answers.
        attempt: Attempt,
        /// The answer.
        reply: Reply,
    },
    /// This attempt never left: there is no link to the server, or it runs another start by now.
    NotSent {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: Attempt,
    },
    /// The link to a server closed: what was under way may have been carried out.
    Closed(Member),
    /// Time passed.
    Tick,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Ok,
    /// It was not carried out, and never will be.
    Unavailable,
    /// It was carried out, or will be, or never.
    Unknown,
}

/// What is to be done for a client, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the configurations of all groups, after a `sync` if that says so: then [`Event::Map`] or
    /// [`Event::MapFailed`].
    ReadMap {
        /// The answer is to be no older than the question.
        synced: bool,
    },
    /// Send a call to a server.
    Send {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: Attempt,
        /// The group that holds the key.
        group: GroupId,
        /// Its term, as far as the map knows.
        term: Term,
        /// Its primary.
        to: Member,
    },
    /// Tell who made the call.
    Done {
        /// The call.
        call: CallId,
        /// How it ended.
        outcome: Outcome,
    },
}
