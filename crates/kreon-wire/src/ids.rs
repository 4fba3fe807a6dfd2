//! A newtype for each kind of number that servers exchange, so that two kinds never mix.

use std::fmt;

use kreon_base::{Incarnation, id};
use kreon_format::INCARNATION_MAX;

id!(
    /// Number of a replica group, from 1 on; 0 names no group.
    GroupId(u32), "group"
);
id!(
    /// Number of a period with one primary at most, 1 to [`Term::MAX`]; 0 is before all. It is also the incarnation under
    /// which that primary opens the store. Terms only grow.
    Term(u64), "term"
);
id!(
    /// Place of a packet in the one stream of a group, backup and term, from 1 on; 0 is before the first.
    StreamNumber(u64), "packet"
);
id!(
    /// Number of a flush of a primary's volume in its term, from 1 on; 0 is before the first. All backups are sent the
    /// same number for the same flush.
    FlushNumber(u64), "flush"
);
id!(
    /// Number of a beat in its term, from 1 on.
    BeatNumber(u64), "beat"
);
id!(
    /// Number of a question on a control or client connection, chosen by who asks, from 1 on. The answer repeats it.
    QuestionNumber(u64), "question"
);
id!(
    /// Number of a server of the cluster, from 1 on; 0 names none (a client).
    ServerId(u32), "server"
);
id!(
    /// Number of a snapshot of a group at its primary, which chooses it, from 1 on; 0 is the present. It means nothing to
    /// another server or in another term.
    SnapshotId(u64), "snapshot"
);
id!(
    /// Bytes of a class that the receiver has granted since its stream began, all told: the sender may have sent that
    /// many, never more. Cumulative, so that a lost or late answer grants nothing twice.
    GrantBytes(u64), "granted bytes"
);

impl Term {
    /// The last term: that of the largest incarnation.
    pub const MAX: Self = Self(INCARNATION_MAX);

    /// The term behind this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The incarnation under which the primary of this term opens its store.
    pub const fn incarnation(self) -> Incarnation {
        Incarnation(self.0)
    }
}

impl StreamNumber {
    /// The number of the next packet; [`u64::MAX`] is its own successor and no packet has it twice.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl FlushNumber {
    /// The number of the next flush.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl BeatNumber {
    /// The number of the next beat.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl QuestionNumber {
    /// The number of the next question.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// One start of a server: 128 random bits, so that a restarted server is never taken for what it was, whose memory is
/// gone. Shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub [u8; 16]);

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {self}")
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A server in one of its starts: what the set of a group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The server.
    pub server: ServerId,
    /// Its start.
    pub process: ProcessId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_shows_all_its_bits() {
        let mut bytes = [0; 16];
        (bytes[0], bytes[15]) = (0xab, 7);
        let shown = ProcessId(bytes).to_string();
        assert_eq!(shown, "ab000000000000000000000000000007");
    }

    #[test]
    fn numbers_never_wrap_around() {
        assert_eq!(StreamNumber(u64::MAX).next(), StreamNumber(u64::MAX));
        assert_eq!(Term::MAX.next().0, INCARNATION_MAX + 1);
    }
}
