//! Taking office, removing members that do not answer, and serving after a last look.

use kreon_base::planted;

use super::candidate::Candidacy;
use super::{Action, Mate, Replica, State};
use crate::machine::{Answer, Configuration, Known, Member, Moment, Outcome, Swap, Term, Ticket};

impl Replica {
    fn office(&mut self) -> Option<&mut Candidacy> {
        match &mut self.state {
            State::Equalising(office) | State::Opening(office) => Some(office),
            _ => None,
        }
    }

    /// `known` shows this member in office.
    pub(super) fn on_office(
        &mut self,
        now: Moment,
        known: &Known,
        sent: Moment,
        out: &mut Vec<Action>,
    ) {
        let term = known.config.term;
        match &mut self.state {
            State::Serving(held) if *held == term => {}
            State::Equalising(office) | State::Opening(office) if office.term() == term => {
                office.since = office.since.max(sent);
                self.serve_if_confirmed(known, sent, out);
            }
            State::Sealed {
                term: sealed,
                report,
            } if *sealed == term => {
                let report = *report;
                self.begin_candidacy(now, known, sent, report, out);
            }
            State::Sealing { term: begun, .. } if *begun == term => {}
            State::Absent | State::Joining(_) => {} // nothing here that could be opened
            _ => self.seal(now, term, Vec::new(), out),
        }
    }

    pub(super) fn on_opened(&mut self, now: Moment, term: Term, out: &mut Vec<Action>) {
        let State::Opening(office) = &mut self.state else {
            return;
        };
        if office.term() != term {
            return;
        }
        office.opened = Some(now);
        let known = office.known.clone();
        planted!(OfficeByMessage => return self.serve_if_confirmed(&known, now, out));
        drop(known);
        self.confirm(now, out);
    }

    /// Reads the configuration once more, if nothing else is missing.
    fn confirm(&mut self, now: Moment, out: &mut Vec<Action>) {
        let ready = |office: &Candidacy| office.opened.is_some() && office.swap.is_none();
        if matches!(&self.state, State::Opening(office) if ready(office)) {
            self.look(now, out);
        }
    }

    /// A read found this member in office. If it was sent after the engine was open on all members of the set, the
    /// office begins.
    fn serve_if_confirmed(&mut self, known: &Known, since: Moment, out: &mut Vec<Action>) {
        let State::Opening(office) = &self.state else {
            return;
        };
        let of_set = |(member, ..): &(Member, _, _)| known.config.has(*member);
        let same =
            office.mates.len() + 1 == known.config.in_sync.len() && office.mates.iter().all(of_set);
        let late_enough = office.opened.is_some_and(|opened| opened <= since);
        if late_enough && office.swap.is_none() && same {
            self.state = State::Serving(office.term());
            let known = known.clone();
            out.push(Action::Serve { known, since });
        }
    }

    /// A member does not answer: it is removed by compare-and-set before anything is opened without it.
    pub(super) fn on_failed(&mut self, now: Moment, member: Member, out: &mut Vec<Action>) {
        let Some(office) = self.office() else {
            return;
        };
        let mut mates = office.mates.iter_mut();
        if let Some((_, _, is_failed)) = mates.find(|(mate, ..)| *mate == member) {
            *is_failed = true;
            self.remove_failed(now, out);
        }
    }

    pub(super) fn remove_failed(&mut self, now: Moment, out: &mut Vec<Action>) {
        let Some(office) = self.office() else { return };
        let failed: Vec<_> = office.mates.iter().filter(|m| m.2).map(|m| m.0).collect();
        if !failed.is_empty() {
            self.change(now, |config| config.without(|m| failed.contains(&m)), out);
        }
    }

    /// Begins a change of the configuration, unless one is under way.
    pub(super) fn change(
        &mut self,
        now: Moment,
        to: impl Fn(&Configuration) -> Configuration,
        out: &mut Vec<Action>,
    ) {
        let (lease_us, mut tickets) = (self.timing.lease_us, self.tickets);
        let Some(office) = self.office() else { return };
        if office.swap.is_some() {
            return;
        }
        let next = to(&office.known.config);
        let ask = &mut |ticket, ask| out.push(Action::Ask(ticket, ask));
        let is_fresh = now.since_us(office.since) < lease_us;
        let base = (office.known.clone(), is_fresh);
        let swap = Swap::begin(base, next, None, now, tickets.draw(), ask);
        office.swap = Some(swap);
        self.tickets = tickets;
    }

    pub(super) fn on_office_answer(
        &mut self,
        now: Moment,
        ticket: Ticket,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        let mut tickets = self.tickets;
        let Some(office) = self.office() else { return };
        let Some(swap) = &mut office.swap else {
            return;
        };
        if !swap.awaits(ticket) {
            return;
        }
        let outcome = swap.on_answer(now, answer, tickets.draw(), &mut |ticket, ask| {
            out.push(Action::Ask(ticket, ask));
        });
        self.tickets = tickets;
        let known = match outcome {
            Outcome::Open => return,
            Outcome::Done { known, sent } => {
                if let Some(office) = self.office() {
                    office.since = office.since.max(sent);
                }
                known
            }
            Outcome::Overtaken(known) => known,
            Outcome::FenceLost => return, // its swaps have no fence
        };
        self.settle(now, known, out);
    }

    /// The outcome of a removal is known.
    fn settle(&mut self, now: Moment, known: Known, out: &mut Vec<Action>) {
        let me = self.me;
        let Some(office) = self.office() else { return };
        office.swap = None;
        if known.config.term != office.term() || !known.config.is_led_by(me) {
            return self.learn(now, &known, now, out);
        }
        let gone = office.mates.iter().filter(|m| !known.config.has(m.0));
        out.extend(gone.map(|m| Action::Close(m.0)));
        office.mates.retain(|m| known.config.has(m.0));
        office.known = known.clone();
        if known.stamp() > self.seen {
            self.see(now, known.stamp(), out);
        }
        self.remove_failed(now, out);
        self.equalise_if_told(out);
        self.open_if_equal(now, out);
        self.confirm(now, out);
    }

    /// The office of the primary's machine ended, for a reason that it found out itself.
    pub(super) fn on_deposed(&mut self, now: Moment, out: &mut Vec<Action>) {
        if let State::Serving(term) = self.state {
            self.seal(now, term, Vec::new(), out);
        }
        self.look(now, out);
    }

    /// Members that did not report in time are taken for failed.
    pub(super) fn tick_candidacy(&mut self, now: Moment, out: &mut Vec<Action>) {
        let (silence_us, mut tickets) = (self.timing.silence_us, self.tickets);
        let Some(office) = self.office() else { return };
        if let Some(swap) = &mut office.swap {
            swap.on_tick(now, tickets.draw(), &mut |ticket, ask| {
                out.push(Action::Ask(ticket, ask));
            });
        }
        let late = now.since_us(office.begun) >= silence_us;
        for (_, mate, is_failed) in &mut office.mates {
            *is_failed |= late && *mate == Mate::Asked;
        }
        self.tickets = tickets;
        self.remove_failed(now, out);
        self.confirm(now, out);
    }
}
