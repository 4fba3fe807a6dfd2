//! The configuration of a group, as the coordinator holds it, and where in time it stands.

use std::sync::Arc;

use super::{Member, ServerId, Term};

/// Version of a node of the coordinator; each successful write adds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

/// Who a group consists of. Written by compare-and-set only: by its primary (set, ranges it gives up) and by the master
/// (next term, servers, new ranges).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The term; it only grows.
    pub term: Term,
    /// The primary; none between a seal and a promotion.
    pub primary: Option<Member>,
    /// Who has all that was acknowledged, in ascending order.
    pub in_sync: Arc<[Member]>,
    /// The servers that are to have a replica.
    pub servers: Arc<[ServerId]>,
    /// Writes are acknowledged by at least so many members, the primary among them.
    pub min_in_sync: u8,
    /// The set was chosen by an operator who gave up others: nobody takes office in this term before a grace period is
    /// over.
    pub after_loss: bool,
    /// The last term that an operator began by giving up others; 0 before the first. Only this is his word: what
    /// [`after_loss`](Self::after_loss) says may be inherited, or stand in an old copy of the coordinator.
    pub loss_term: Term,
    /// The set came back after all of it had failed: its members have different ends, so nobody can be promoted without
    /// the reports of all, until a candidate has made them equal.
    pub all_needed: bool,
    /// Key ranges, which no machine looks at.
    pub ranges: Arc<[u8]>,
}

impl Configuration {
    /// Whether this start of a server is in the set.
    pub fn has(&self, member: Member) -> bool {
        self.in_sync.contains(&member)
    }

    /// Whether `member` is the primary.
    pub fn is_led_by(&self, member: Member) -> bool {
        self.primary == Some(member)
    }

    /// The same without members for which `gone` holds.
    #[must_use]
    pub fn without(&self, gone: impl Fn(Member) -> bool) -> Self {
        let stay = self.in_sync.iter().copied().filter(|m| !gone(*m));
        Self {
            in_sync: stay.collect(),
            ..self.clone()
        }
    }

    /// The same with one member more.
    #[must_use]
    pub fn with(&self, member: Member) -> Self {
        let mut in_sync = self.in_sync.to_vec();
        in_sync.push(member);
        in_sync.sort_unstable();
        in_sync.dedup();
        Self {
            in_sync: in_sync.into(),
            ..self.clone()
        }
    }

    /// The next term, without a primary as yet.
    #[must_use]
    pub fn in_next_term(&self) -> Self {
        Self {
            term: self.term.next(),
            primary: None,
            // Whoever was in office since has waited.
            after_loss: self.after_loss && self.primary.is_none(),
            ..self.clone()
        }
    }

    /// The same with this primary.
    #[must_use]
    pub fn led_by(&self, member: Member) -> Self {
        Self {
            primary: Some(member),
            ..self.clone()
        }
    }
}

/// A configuration with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The version.
    pub version: Version,
    /// What it says.
    pub config: Configuration,
}

impl Known {
    /// Its place in time.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            term: self.config.term,
            version: self.version,
        }
    }
}

/// Place of a configuration in time. A replica persists the highest it saw, and refuses what is lower in either: both only
/// grow, and a coordinator that was restored from a copy names stale sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp {
    /// The term, which counts first.
    pub term: Term,
    /// The version.
    pub version: Version,
}
