//! What a master is told, and what it wants done.

use crate::machine::{Answer, Ask, Configuration, Member, Report, ServerId, Term, Ticket, Version};

/// Number of a group.
pub use kreon_wire::GroupId;

/// What happens to a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This server won the election and raised the version of the node of the office to this.
    Elected(Version),
    /// Its session ended, or another server was elected.
    Unseated,
    /// These are the servers, each in its latest start, that have a session.
    Live(Vec<Member>),
    /// The configuration of a group may have changed.
    Look(GroupId),
    /// A member was sealed, and reports.
    Sealed {
        /// The group.
        group: GroupId,
        /// The member.
        from: Member,
        /// The term of the seal.
        term: Term,
        /// What it has.
        report: Report,
    },
    /// A primary serves in this term.
    Serves(GroupId, Term),
    /// An answer of the coordinator.
    Answer(GroupId, Ticket, Answer),
    /// A member refuses a seal: it knows this term.
    Refused(GroupId, Term),
    /// An operator gives up what the rest of the set may have.
    AcceptLoss {
        /// The group.
        group: GroupId,
        /// The replica of this server is to go on alone.
        server: ServerId,
        /// The operator vouches that a process of the set has ended, as its machine is off, and names the highest term
        /// that any replica has.
        vouched: Option<Term>,
    },
    /// The member of this server is to be promoted, if no other has a higher superblock then. The primary is asked to hand
    /// over; if it does not, the next term begins all the same.
    Promote {
        /// The group.
        group: GroupId,
        /// The server.
        to: ServerId,
    },
    /// What [`Action::Probe`] found: the server of this member runs another start, so this one has ended.
    Ended(GroupId, Member),
    /// Time passed.
    Tick,
}

/// What is to be done for a master, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the coordinator about a group.
    Ask(GroupId, Ticket, Ask),
    /// Seal this member.
    Seal {
        /// The group.
        group: GroupId,
        /// The member.
        to: Member,
        /// The term.
        term: Term,
    },
    /// Tell the member that the configuration becomes this, so that it looks.
    Hint {
        /// The group.
        group: GroupId,
        /// The member.
        to: Member,
        /// What the configuration is to become.
        config: Configuration,
    },
    /// Ask the server of this member which start of it runs. If it is another one: [`Event::Ended`].
    Probe {
        /// The group.
        group: GroupId,
        /// The member.
        of: Member,
    },
    /// Ask the primary to hand over, as another member is to be promoted.
    HandOver {
        /// The group.
        group: GroupId,
        /// The primary.
        to: Member,
        /// Its term.
        term: Term,
    },
    /// Tell the operator that nobody is promoted: the group is not well, or that server is not in its set, or its primary.
    RefusePromotion(GroupId),
    /// Tell the operator that no loss is accepted: the group does not wait, or nobody of its set is known to have ended.
    RefuseLoss(GroupId),
    /// The office is over: stand for election anew.
    StandDown,
}
