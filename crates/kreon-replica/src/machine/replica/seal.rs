//! Seals: refuse lower terms, write what was received, flush, and only then compute the end. Bytes that land behind the
//! report could still be acknowledged.

use kreon_base::planted;

use super::{Action, Replica, State};
use crate::machine::{Moment, Report, ServerId, Stamp, Term};

impl Replica {
    pub(super) fn on_seal(
        &mut self,
        now: Moment,
        from: ServerId,
        term: Term,
        out: &mut Vec<Action>,
    ) {
        if term < self.promised || matches!(self.state, State::Absent | State::Joining(_)) {
            let promised = self.promised;
            return out.push(Action::Refuse { to: from, promised });
        }
        if let Some(named) = self.estranged_by {
            if term > named {
                self.look(now, out); // an operator may have spoken since
            }
            // What was seen here is of a later term than whatever the coordinator can name.
            let promised = self.promised.max(term.next());
            return out.push(Action::Refuse { to: from, promised });
        }
        match &mut self.state {
            State::Sealed { term: done, report } if *done == term => {
                let report = *report;
                out.push(Action::Report {
                    to: from,
                    term,
                    report,
                });
            }
            State::Sealing {
                term: begun,
                askers,
            } if *begun == term => {
                if !askers.contains(&from) {
                    askers.push(from);
                }
            }
            // Somebody is in office in this term: the seal came late.
            State::InSync(stream) | State::Repairing(stream) if stream.term == term => {}
            State::Equalising(office) | State::Opening(office) if office.term() == term => {}
            State::Serving(office) if *office == term => {}
            _ => self.seal(now, term, vec![from], out),
        }
    }

    /// Nothing of a lower term counts from here on.
    pub(super) fn seal(
        &mut self,
        now: Moment,
        term: Term,
        askers: Vec<ServerId>,
        out: &mut Vec<Action>,
    ) {
        self.promised = term;
        let term_seen = self.seen.term.max(term);
        self.see(
            now,
            Stamp {
                term: term_seen,
                ..self.seen
            },
            out,
        );
        if matches!(self.state, State::Opening(_) | State::Serving(_)) {
            out.push(Action::Abandon);
        }
        self.state = State::Sealing { term, askers };
        let end = [Action::Drain, Action::ComputeEnd(term)];
        planted!(EndBeforeDrain => let end = [Action::ComputeEnd(term), Action::Drain]);
        out.extend(end);
    }

    pub(super) fn on_ended(
        &mut self,
        now: Moment,
        term: Term,
        report: Report,
        out: &mut Vec<Action>,
    ) {
        let State::Sealing {
            term: begun,
            askers,
        } = &mut self.state
        else {
            return;
        };
        if *begun != term {
            return; // an earlier seal, which a higher one replaced
        }
        for to in std::mem::take(askers) {
            out.push(Action::Report { to, term, report });
        }
        self.state = State::Sealed { term, report };
        // It may have been put into office meanwhile.
        self.look(now, out);
    }
}
