//! What a synced read of the configuration means for the replica here.

use kreon_base::planted;

use super::{Action, Replica, State};
use crate::machine::{Answer, Configuration, Known, Moment, Term, Ticket, Version};

impl Replica {
    pub(super) fn on_answer(
        &mut self,
        now: Moment,
        ticket: Ticket,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        match self.asked {
            Some((asked, sent)) if asked == ticket => {
                self.asked = None;
                if let Answer::Read(known) = answer {
                    self.learn(now, &known, sent, out);
                }
                if std::mem::take(&mut self.again) {
                    self.look(now, out);
                }
            }
            _ => self.on_office_answer(now, ticket, answer, out),
        }
    }

    /// A message names a configuration. It is a reason to look, and no more.
    pub(super) fn on_hint(&mut self, now: Moment, config: Configuration, out: &mut Vec<Action>) {
        planted!(OfficeByMessage => return self.believe(now, config, out));
        if config.term >= self.promised {
            self.look(now, out);
        }
    }

    fn believe(&mut self, now: Moment, config: Configuration, out: &mut Vec<Action>) {
        let version = Version(self.seen.version.0 + 1);
        self.learn(now, &Known { version, config }, now, out);
    }

    /// `known` is what a read found that was sent at `sent`.
    pub(super) fn learn(
        &mut self,
        now: Moment,
        known: &Known,
        sent: Moment,
        out: &mut Vec<Action>,
    ) {
        let stamp = known.stamp();
        if stamp < self.seen {
            return; // a coordinator that was restored from a copy: it may name sets of long ago
        }
        if stamp > self.seen {
            self.seen = stamp;
            out.push(Action::Persist(stamp));
        }
        let config = &known.config;
        if !config.has(self.me) {
            self.leave_set(now, config, out);
        } else if config.is_led_by(self.me) {
            self.on_office(now, known, sent, out);
        } else {
            self.leave_office(config.term, out);
        }
    }

    /// This start of the server is not in the set: whatever the file holds, others may have been acknowledged without
    /// it.
    fn leave_set(&mut self, now: Moment, config: &Configuration, out: &mut Vec<Action>) {
        let joins = |s: super::Stream| config.is_led_by(s.primary) && config.term == s.term;
        match self.state {
            // Complete, and about to be added. (A member that was removed finds its stream closed.)
            State::Joining(stream) | State::InSync(stream)
                if joins(stream) && self.stream.is_some() =>
            {
                return;
            }
            _ => self.become_stale(out),
        }
        let Some(to) = config.primary else { return };
        if to.server != self.me.server && config.servers.contains(&self.me.server) {
            self.attach_at = Some(now);
            out.push(Action::AskAttach {
                to,
                term: config.term,
            });
        }
    }

    /// In the set, but not in office in `term`.
    fn leave_office(&mut self, term: Term, out: &mut Vec<Action>) {
        let over = match &self.state {
            State::Equalising(office) | State::Opening(office) => office.term() < term,
            State::Serving(office) => *office < term,
            _ => false,
        };
        if over {
            self.seal(term, Vec::new(), out);
        }
    }
}
