//! Reading the configuration anew, and the lease of a sole member that comes with it.

use std::cmp::Ordering;

use kreon_base::planted;

use super::{Action, Primary};
use crate::machine::{Answer, Ask, Configuration, Known, Moment, Ticket, Timing};

/// When this primary was last known to be in office, and the question that may renew it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// When the last question was sent whose answer showed this primary in office.
    from: Moment,
    /// The question under way, and when it was sent.
    asked: Option<(Ticket, Moment)>,
    /// Something happened since it was sent, which its answer may not show.
    again: bool,
}

impl Lease {
    pub(super) fn new(from: Moment) -> Self {
        Self {
            from,
            asked: None,
            again: false,
        }
    }

    /// Whether nobody else can be in office as yet: counted from *sending*, because the answer may have been long under
    /// way.
    pub(super) fn holds(&self, now: Moment, timing: &Timing) -> bool {
        let holds = self.is_fresh(now, timing);
        planted!(AloneWithoutLease => let holds = true);
        holds
    }

    /// Whether the coordinator showed not long ago what is known of it.
    pub(super) fn is_fresh(&self, now: Moment, timing: &Timing) -> bool {
        now.since_us(self.from) < timing.lease_us
    }

    pub(super) fn renew(&mut self, sent: Moment) {
        self.from = self.from.max(sent);
    }
}

impl Primary {
    /// Reads the configuration anew.
    pub(super) fn look(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.lease.asked.is_some() {
            self.lease.again = true;
            return;
        }
        let ticket = self.tickets.draw();
        self.lease.asked = Some((ticket, now));
        out.push(Action::Ask(ticket, Ask::Read { synced: true }));
    }

    /// A sole member asks three times per lease.
    pub(super) fn look_if_sole(&mut self, now: Moment, out: &mut Vec<Action>) {
        let due = now.since_us(self.lease.from) >= self.timing.lease_us / 3;
        if self.is_sole() && due && self.lease.asked.is_none() {
            self.look(now, out);
        }
    }

    pub(super) fn on_answer(
        &mut self,
        now: Moment,
        ticket: Ticket,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        match self.lease.asked {
            Some((asked, sent)) if asked == ticket => {
                self.lease.asked = None;
                if let Answer::Read(known) = answer {
                    self.on_looked(now, known, sent, out);
                }
                if std::mem::take(&mut self.lease.again) && !self.is_deposed() {
                    self.look(now, out);
                }
            }
            _ => self.on_change_answer(now, ticket, answer, out),
        }
    }

    /// Whether the coordinator was restored from a copy, and nothing it says counts: it knows less than is known here, or
    /// something else at the same version, or names another set in this term, in which nobody but this primary changes
    /// that. Where it has put another one into office, this one goes whatever it knows.
    pub(super) fn is_of_restored(&self, known: &Known) -> bool {
        let config = &known.config;
        if self.is_another_in_office(config) {
            return false;
        }
        let (held, swapping) = (&self.known.config, self.swap().map(|swap| &swap.next));
        let is_own = |own: &Configuration| own.in_sync == config.in_sync;
        match known.version.cmp(&self.known.version) {
            Ordering::Less => true,
            Ordering::Equal => config != held,
            Ordering::Greater => {
                !config.is_led_by(self.me) || !(is_own(held) || swapping.is_some_and(is_own))
            }
        }
    }

    fn is_another_in_office(&self, config: &Configuration) -> bool {
        let another = config.primary.is_some_and(|primary| primary != self.me);
        config.term > self.term || (config.term == self.term && another)
    }

    /// The configuration as a question sent at `sent` found it.
    fn on_looked(&mut self, now: Moment, known: Known, sent: Moment, out: &mut Vec<Action>) {
        if self.is_of_restored(&known) {
            return; // nothing it says counts
        }
        if self.is_another_in_office(&known.config) || known.version > self.known.version {
            self.adopt(now, known, out);
        }
        if !self.is_deposed() {
            self.lease.renew(sent);
            self.say(now, out);
        }
    }
}
