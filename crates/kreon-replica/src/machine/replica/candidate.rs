//! A candidate: in office by an own read, it brings the other members to one state before it opens its engine.
//!
//! The highest superblock among the members goes to all four slots of each, the candidate included: a slot that reached
//! one member alone points at places that the next checkpoints of another branch reuse.
//!
//! The master chose the highest report, but did not wait for ever. A member that reports to the candidate only, and has a
//! higher superblock, leaves the set: nobody here has that superblock to give to others, nor has anybody to have it, as
//! every member holds all that was acknowledged. Where that is not so (`all_needed`), the master had all reports.

use super::{Action, Replica, State};
use crate::machine::{
    Configuration, Known, Member, Moment, Report, SlotMark, Swap, Term, slots_to_write, top_slot,
};

/// How far a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mate {
    /// It was asked to seal and to report.
    Asked,
    /// It did.
    Told(Report),
    /// It was sent the state.
    Sent(Report),
    /// It has the state.
    Equal,
}

/// The office of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidacy {
    /// The configuration that shows it.
    pub known: Known,
    /// When the read was sent that found it.
    pub since: Moment,
    /// The other members, and whether they are to leave.
    pub mates: Vec<(Member, Mate, bool)>,
    /// What this member reported of itself.
    pub own: Report,
    /// Its own slots are as they should be.
    pub is_repaired: bool,
    /// The state was sent to the members, and is being written here.
    pub is_sent: bool,
    /// When the engine was open on all members.
    pub opened: Option<Moment>,
    /// A change under way: members being removed.
    pub swap: Option<Swap>,
    /// When it began.
    pub begun: Moment,
}

impl Candidacy {
    /// The term of the office.
    pub fn term(&self) -> Term {
        self.known.config.term
    }

    /// Whether one of the members has a superblock that this candidate lacks, and is to leave.
    fn is_below(&self) -> bool {
        let above = |mate: &Mate| matches!(mate, Mate::Told(report) if report.slot > self.own.slot);
        self.mates.iter().any(|(_, mate, _)| above(mate))
    }

    fn highest(&self) -> SlotMark {
        let slots = self.mates.iter().filter_map(|(_, mate, _)| match mate {
            Mate::Told(report) | Mate::Sent(report) => Some(report.slot),
            Mate::Asked | Mate::Equal => None,
        });
        top_slot(self.own.slot, slots)
    }
}

impl Replica {
    /// Begins the office that `known` shows. This member is sealed in that term.
    pub(super) fn begin_candidacy(
        &mut self,
        now: Moment,
        known: &Known,
        since: Moment,
        own: Report,
        out: &mut Vec<Action>,
    ) {
        let others = known.config.in_sync.iter().filter(|m| **m != self.me);
        let candidacy = Candidacy {
            known: known.clone(),
            since,
            mates: others.map(|m| (*m, Mate::Asked, false)).collect(),
            own,
            is_repaired: false,
            is_sent: false,
            opened: None,
            swap: None,
            begun: now,
        };
        let term = candidacy.term();
        self.stream = None;
        for (to, ..) in &candidacy.mates {
            out.push(Action::Seal { to: *to, term });
        }
        self.state = State::Equalising(candidacy);
        self.equalise_if_told(out);
    }

    pub(super) fn on_sealed(
        &mut self,
        now: Moment,
        (from, term): (Member, Term),
        report: Report,
        out: &mut Vec<Action>,
    ) {
        let Some(office) = self.candidacy_in(term) else {
            return;
        };
        let own = office.own.slot;
        for (member, mate, is_failed) in &mut office.mates {
            if *member == from && *mate == Mate::Asked {
                *mate = Mate::Told(report);
                *is_failed |= report.slot > own;
            }
        }
        self.remove_failed(now, out);
        self.equalise_if_told(out);
    }

    /// When all members have reported, all get the highest superblock and the log of this candidate.
    pub(super) fn equalise_if_told(&mut self, out: &mut Vec<Action>) {
        let State::Equalising(office) = &mut self.state else {
            return;
        };
        let untold = office.mates.iter().any(|(_, mate, _)| *mate == Mate::Asked);
        if untold || office.is_below() || std::mem::replace(&mut office.is_sent, true) {
            return;
        }
        let (term, top, log_end) = (office.term(), office.highest(), office.own.log_end);
        for (to, mate, _) in &mut office.mates {
            if let Mate::Told(report) = *mate {
                *mate = Mate::Sent(report);
                let to = *to;
                out.push(Action::Equalise {
                    to,
                    term,
                    top,
                    log_end,
                });
            }
        }
        let slots = self.slots_to_write(top);
        out.push(Action::Repair {
            from: None,
            term,
            slots,
            log_end,
        });
    }

    /// The superblock that goes to all slots here.
    pub(super) fn slots_to_write(&self, top: SlotMark) -> Option<SlotMark> {
        slots_to_write(self.own_slot(), top)
    }

    /// What this replica equalises for, if it does so in `term`.
    fn candidacy_in(&mut self, term: Term) -> Option<&mut Candidacy> {
        match &mut self.state {
            State::Equalising(office) if office.term() == term => Some(office),
            _ => None,
        }
    }

    fn own_slot(&self) -> SlotMark {
        match &self.state {
            State::Sealed { report, .. } => report.slot,
            State::Equalising(office) => office.own.slot,
            _ => SlotMark::default(),
        }
    }

    pub(super) fn on_equal(
        &mut self,
        now: Moment,
        from: Member,
        term: Term,
        out: &mut Vec<Action>,
    ) {
        let Some(office) = self.candidacy_in(term) else {
            return;
        };
        for (member, mate, _) in &mut office.mates {
            if *member == from && matches!(mate, Mate::Sent(_)) {
                *mate = Mate::Equal;
            }
        }
        self.open_if_equal(now, out);
    }

    /// The engine opens when every member has the state, or was removed.
    pub(super) fn open_if_equal(&mut self, now: Moment, out: &mut Vec<Action>) {
        let State::Equalising(office) = &self.state else {
            return;
        };
        let equal = office.mates.iter().all(|(_, mate, _)| *mate == Mate::Equal);
        if !equal || !office.is_repaired {
            return;
        }
        if office.known.config.all_needed {
            // From now on each of them will do.
            return self.change(
                now,
                |config| Configuration {
                    all_needed: false,
                    ..config.clone()
                },
                out,
            );
        }
        out.push(Action::Open(office.term()));
        self.state = State::Opening(office.clone());
    }
}
