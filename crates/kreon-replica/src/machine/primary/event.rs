//! What a primary is told, and what it wants done.

use kreon_base::Lsn;

use crate::machine::{Answer, Ask, BeatNumber, Member, ServerId, Term, Ticket};

/// Number of a read that waits to be shown, chosen by who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// What a read met in L0, the level that backups may not have yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// Where the newest record that it met, deletions included, starts in the log.
    pub start: Lsn,
    /// Where that record ends.
    pub end: Lsn,
    /// Start of the oldest unit that had not wholly landed when the value was taken.
    pub unlanded_from: Lsn,
    /// Tail of the log, sampled after the value was taken.
    pub tail: Lsn,
}

/// What happens to a primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The committed prefix of the log ends here now: a whole unit.
    Appended(Lsn),
    /// The log is durable here up to this.
    Durable(Lsn),
    /// A peer holds the log up to `landed`, and `durable` of it durably.
    Progress {
        /// The peer.
        from: Member,
        /// End of what it holds.
        landed: Lsn,
        /// End of what is durable there.
        durable: Lsn,
    },
    /// A peer applied more of its stream, whether that was log or not: it lags behind, but it does not hang.
    Moved(Member),
    /// A peer answered a beat of this term.
    Beaten {
        /// The peer.
        from: Member,
        /// The number of the beat.
        beat: BeatNumber,
    },
    /// A peer knows a higher term.
    Refused(Term),
    /// The link to a peer closed, or the peer's device failed.
    Failed(Member),
    /// A server wants to join.
    AttachAsked(Member),
    /// A joiner holds all pages, and the log up to `landed`.
    Copied {
        /// The joiner.
        peer: Member,
        /// End of what it holds.
        landed: Lsn,
    },
    /// The checkpoint that completes the joiner's volume is durable, there, too.
    Completed(Member),
    /// A read took its value, and asks when it may be shown.
    Read {
        /// The read.
        read: ReadId,
        /// What it met in L0; none if the value came from a level.
        met: Option<Met>,
    },
    /// An answer of the coordinator.
    Answer(Ticket, Answer),
    /// The configuration may have changed.
    Look,
    /// The device of this server failed or hangs.
    DeviceFailed,
    /// Another member is to be promoted: take no more writes, and leave office once all that were taken are answered, or
    /// after a while. Nothing happens if nobody else is in the set.
    HandOver,
    /// The members and joiners of this server are to leave, and are taken in no more as long as this primary is in office.
    /// Not for its own server.
    Remove(ServerId),
    /// Time passed.
    Tick,
}

/// What is to be done for a primary, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make the log durable here, up to this at least; then [`Event::Durable`].
    Flush(Lsn),
    /// All counted members hold the log up to this: buffers may be used again, the engine goes on.
    Landed(Lsn),
    /// All counted members have the log durably up to this.
    DurableEverywhere(Lsn),
    /// Replies to writes that end up to here may leave.
    Acknowledge(Lsn),
    /// The reply of a read may leave.
    Show(ReadId),
    /// The read is not answered here.
    Drop(ReadId),
    /// Whether new writes are taken: not while fewer than `min_in_sync` members are in the set.
    TakeWrites(bool),
    /// Send a beat.
    Beat {
        /// To this peer.
        to: Member,
        /// With this number.
        beat: BeatNumber,
    },
    /// Mirror to this joiner and copy the volume to it; then [`Event::Copied`].
    Attach(Member),
    /// Tell the joiner that it has everything, and make a checkpoint; then [`Event::Completed`].
    Complete(Member),
    /// Close the stream to this peer. Its file stays as it is.
    Close(Member),
    /// Ask the coordinator.
    Ask(Ticket, Ask),
    /// The office is over: stop the engine without settling anything, answer nobody.
    Abandon,
}
