//! What a replica is told, and what it wants done.

use kreon_base::Lsn;

use crate::machine::{
    Answer, Ask, BeatNumber, Configuration, Known, Member, Moment, Report, ServerId, SlotMark,
    Stamp, Term, Ticket,
};

/// What happens to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The configuration may have changed: a watch, or a start.
    Look,
    /// A message says that this is the configuration. Only a reason to look.
    Hint(Configuration),
    /// An answer of the coordinator.
    Answer(Ticket, Answer),
    /// A server, as master or candidate, wants lower terms refused and a report.
    Seal {
        /// Who asks.
        from: ServerId,
        /// The term from which on packets count.
        term: Term,
    },
    /// What [`Action::ComputeEnd`] found.
    Ended {
        /// The term of the seal.
        term: Term,
        /// What is durable here.
        report: Report,
    },
    /// A member was sealed, and reports to this candidate.
    Sealed {
        /// The member.
        from: Member,
        /// The term of the seal.
        term: Term,
        /// What it has.
        report: Report,
    },
    /// A candidate of this term wants its state here.
    Equalise {
        /// The candidate.
        from: Member,
        /// Its term.
        term: Term,
        /// The superblock that is to stand in all slots.
        top: SlotMark,
        /// Where the log is to end.
        log_end: Lsn,
    },
    /// [`Action::Repair`] is done, durably.
    Repaired(Term),
    /// A member has this candidate's state.
    Equal {
        /// The member.
        from: Member,
        /// The term.
        term: Term,
    },
    /// The link to a member closed, or it did not answer in time.
    Failed(Member),
    /// A message was refused: the other side knows this term.
    Refused(Term),
    /// The engine is open, and its first checkpoint durable on all members.
    Opened(Term),
    /// The primary takes this server in: its stream and the copy begin.
    Attached {
        /// The primary.
        from: Member,
        /// Its term.
        term: Term,
    },
    /// The volume that was copied is complete, and durable.
    Completed(Term),
    /// The stream from the primary closed.
    StreamClosed,
    /// The office of this server's primary is over.
    Deposed,
    /// A beat of a primary.
    Beat {
        /// The primary.
        from: Member,
        /// Its term.
        term: Term,
        /// The number of the beat.
        beat: BeatNumber,
    },
    /// Time passed.
    Tick,
}

/// What is to be done for a replica, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the coordinator.
    Ask(Ticket, Ask),
    /// Persist this before anything that follows.
    Persist(Stamp),
    /// Stop the engine without settling anything, and wait for its I/O.
    Abandon,
    /// Write everything that was received, the last block filled with zeroes, and flush.
    Drain,
    /// Find out what is durable here; then [`Event::Ended`].
    ComputeEnd(Term),
    /// Tell a master or candidate what this sealed member has.
    Report {
        /// The server that asked.
        to: ServerId,
        /// The term of the seal.
        term: Term,
        /// What this member has.
        report: Report,
    },
    /// As a candidate: seal this member.
    Seal {
        /// The member.
        to: Member,
        /// The term.
        term: Term,
    },
    /// As a candidate: send the member this superblock, and the log up to this end.
    Equalise {
        /// The member.
        to: Member,
        /// The term.
        term: Term,
        /// The superblock that is to stand in all slots.
        top: SlotMark,
        /// Where the log is to end.
        log_end: Lsn,
    },
    /// Take over log and superblock, from `from` or, for a candidate, from what was reported; then
    /// [`Event::Repaired`].
    Repair {
        /// The candidate; none if this is it.
        from: Option<Member>,
        /// The term.
        term: Term,
        /// The superblock: slot E mod 4, flush, the other three, flush. None: the slots stay as they are.
        slots: Option<SlotMark>,
        /// Where the log is to end.
        log_end: Lsn,
    },
    /// Tell the candidate that its state is here.
    Equal {
        /// The candidate.
        to: Member,
        /// The term.
        term: Term,
    },
    /// Open the engine with this incarnation, mirrored to the other members; make a checkpoint; then
    /// [`Event::Opened`].
    Open(Term),
    /// Start the machine of the primary.
    Serve {
        /// The configuration that shows it.
        known: Known,
        /// When the read was sent that found it.
        since: Moment,
    },
    /// Ask the primary to take this server in.
    AskAttach {
        /// The primary.
        to: Member,
        /// Its term.
        term: Term,
    },
    /// Close the stream to this member, which left the set.
    Close(Member),
    /// Whatever stream comes in here ends.
    StopFollowing,
    /// The beat counts.
    Beaten {
        /// The primary.
        to: Member,
        /// Its term.
        term: Term,
        /// The number of the beat.
        beat: BeatNumber,
    },
    /// Something of a lower term came in.
    Refuse {
        /// From this server.
        to: ServerId,
        /// What counts here.
        promised: Term,
    },
}
