//! A backup or joiner, as its primary sees it.

use kreon_base::{Lsn, planted};

use crate::machine::{BeatNumber, Member, Moment};

/// How far a peer is on its way into the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// A joiner: what lay in the volume is being copied to it. It is not counted.
    Copying,
    /// A joiner that has everything and gets the checkpoint that completes its volume. Counted from here on.
    Completing,
    /// A joiner whose volume is complete.
    Complete,
    /// A joiner that is being added: the coordinator may have it in the set, or not.
    Adding,
    /// In the set.
    Member,
}

impl Standing {
    /// Whether acknowledgements, reads and claims wait for a peer of this standing: in the coordinator's set, or possibly
    /// in it. A joiner counts from before its addition is sent.
    pub fn is_counted(self) -> bool {
        let counted = self >= Self::Completing;
        planted!(JoinerUncounted => let counted = self == Self::Member);
        counted
    }
}

/// A backup or joiner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who it is.
    pub member: Member,
    /// How far it is on its way into the set.
    pub standing: Standing,
    /// It is silent, its link closed or its device failed: it is to leave.
    pub is_failed: bool,
    /// End of what it holds in memory, without gaps.
    pub landed: Lsn,
    /// End of what is durable there.
    pub durable: Lsn,
    /// The last beat that it answered.
    pub answered: BeatNumber,
    /// When it last answered a beat, or was given a new start.
    pub answered_at: Moment,
    /// When `landed` or anything else of its stream last moved, or it began to lag.
    pub moved_at: Moment,
}

impl Peer {
    /// A peer that holds everything up to `end`.
    pub fn new(member: Member, standing: Standing, end: Lsn, now: Moment) -> Self {
        Self {
            member,
            standing,
            is_failed: false,
            landed: end,
            durable: end,
            answered: BeatNumber(0),
            answered_at: now,
            moved_at: now,
        }
    }

    /// Whether it is silent: a beat has gone without an answer for `silence_us`, or log has.
    pub fn is_silent(&self, beat: BeatNumber, tail: Lsn, now: Moment, silence_us: u64) -> bool {
        let beat_missing = self.answered < beat && now.since_us(self.answered_at) >= silence_us;
        let log_missing = self.landed < tail && now.since_us(self.moved_at) >= silence_us;
        beat_missing || log_missing
    }

    /// Its silence begins anew.
    pub fn forgive(&mut self, now: Moment) {
        self.answered_at = now;
        self.moved_at = now;
    }
}
