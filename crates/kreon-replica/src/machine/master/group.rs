//! What a master knows of one group.

use crate::machine::{Known, Member, Moment, Report, ServerId, Swap, Term, Ticket};

use super::GroupId;

/// What a master does for a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not read yet.
    Unread,
    /// There is a primary, and as many members as there should be.
    Healthy,
    /// There is a primary, and servers are to join.
    UnderReplicated,
    /// The members of the set are asked to refuse lower terms.
    Sealing {
        /// The term of the seal.
        term: Term,
        /// What they reported.
        reports: Vec<(Member, Report)>,
        /// When it began.
        since: Moment,
    },
    /// A candidate was put into office and has not been seen to serve.
    Promoting {
        /// When it began.
        since: Moment,
    },
    /// Nobody of the set can be promoted: all of it must come back, or an operator decides.
    Waiting,
    /// A member knows a later term than the coordinator, which was restored from a copy: an operator decides.
    Restored,
}

/// That a member is promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) to: ServerId,
    /// In the term after this one.
    pub(super) after: Term,
    pub(super) since: Moment,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) id: GroupId,
    pub(super) known: Option<Known>,
    /// When a question was sent last whose answer showed it.
    pub(super) known_at: Moment,
    pub(super) stage: Stage,
    pub(super) swap: Option<Swap>,
    pub(super) asked: Option<(Ticket, Moment)>,
    pub(super) again: bool,
    /// Promotions since a primary was last seen well: the patience with candidates doubles with each.
    pub(super) attempts: u32,
    /// When the loss of others was first seen to be accepted in the term that is known.
    pub(super) loss_seen: Option<(Term, Moment)>,
    /// Whom an operator wants to go on alone, and since when, while nobody of the set is known to have ended.
    pub(super) loss_wanted: Option<(ServerId, Moment)>,
    /// Who is to be promoted at the end of this term, and since when.
    pub(super) wish: Option<Wish>,
    /// The highest term by which a member refused.
    pub(super) refused_by: Term,
}

impl Group {
    pub(super) fn new(id: GroupId) -> Self {
        Self {
            id,
            known: None,
            known_at: Moment::default(),
            stage: Stage::Unread,
            swap: None,
            asked: None,
            again: false,
            attempts: 0,
            loss_seen: None,
            loss_wanted: None,
            wish: None,
            refused_by: Term(0),
        }
    }

    /// Whether a member has seen more than the coordinator knows.
    pub(super) fn is_restored(&self, known: &Known) -> bool {
        known.config.term < self.refused_by
    }

    /// Goes by `known`, which a question sent at `sent` found, unless something later is known.
    pub(super) fn learn(&mut self, now: Moment, known: Known, sent: Moment) {
        let newer = |held: &Known| held.version <= known.version;
        if !self.known.as_ref().is_none_or(newer) {
            return;
        }
        let term = known.config.term;
        if known.config.after_loss && self.loss_seen.is_none_or(|(seen, _)| seen != term) {
            self.loss_seen = Some((term, now));
        }
        self.known = Some(known);
        self.known_at = sent;
    }
}
