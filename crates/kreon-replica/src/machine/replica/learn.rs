//! What a synced read of the configuration means for the replica here.

use kreon_base::planted;

use super::{Action, Replica, State, Stream};
use crate::machine::{Answer, Configuration, Known, Moment, Stamp, Term, Ticket, Version};

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
        if self.is_of_restored(known) {
            // It may name sets of long ago. But an answer that was under way meanwhile is only late.
            if sent > self.seen_at {
                self.estranged_by = Some(known.config.term);
            }
            return;
        }
        if known.config.loss_term > self.seen.term {
            self.estranged_by = None;
        }
        if stamp > self.seen {
            self.see(now, stamp, out);
        }
        self.joins_at = None;
        let config = &known.config;
        if !config.has(self.me) {
            self.leave_set(now, config, out);
        } else if config.is_led_by(self.me) {
            self.on_office(now, known, sent, out);
        } else {
            self.leave_office(now, config.term, out);
        }
    }

    /// Persists what is the latest now.
    pub(super) fn see(&mut self, now: Moment, stamp: Stamp, out: &mut Vec<Action>) {
        self.seen = stamp;
        self.seen_at = now;
        out.push(Action::Persist(stamp));
    }

    /// Whether the coordinator was restored from a copy: terms and versions only grow, and a term has one primary. An
    /// operator who accepts loss goes on from where it stands, in a term that is higher than all that were seen.
    fn is_of_restored(&self, known: &Known) -> bool {
        let (stamp, config) = (known.stamp(), &known.config);
        let is_accepted = config.loss_term > self.seen.term;
        let is_older = stamp.version < self.seen.version && !is_accepted;
        let follows_another = match self.state {
            State::InSync(s) | State::Repairing(s) if s.term == config.term => {
                config.primary.is_some_and(|primary| primary != s.primary)
            }
            _ => false,
        };
        stamp < self.seen || is_older || follows_another
    }

    /// This start of the server is not in the set: whatever the file holds, others may have been acknowledged without
    /// it.
    fn leave_set(&mut self, now: Moment, config: &Configuration, out: &mut Vec<Action>) {
        let joins = |s: Stream| config.is_led_by(s.primary) && config.term == s.term;
        match self.state {
            // Complete, and about to be added. (A member that was removed finds its stream closed.)
            State::Joining(stream) | State::InSync(stream)
                if joins(stream) && self.stream.is_some() =>
            {
                return;
            }
            _ => self.become_stale(out),
        }
        let Some(primary) = config.primary else {
            return;
        };
        if primary.server != self.me.server && config.servers.contains(&self.me.server) {
            let term = config.term;
            self.looked_at = Some(now);
            self.ask_attach(now, Stream { term, primary }, out);
        }
    }

    /// Asks a primary to take this server in.
    pub(super) fn ask_attach(&mut self, now: Moment, stream: Stream, out: &mut Vec<Action>) {
        self.joins_at = Some((stream, now));
        out.push(Action::AskAttach {
            to: stream.primary,
            term: stream.term,
        });
    }

    /// In the set, but not in office in `term`.
    fn leave_office(&mut self, now: Moment, term: Term, out: &mut Vec<Action>) {
        let over = match &self.state {
            State::Equalising(office) | State::Opening(office) => office.term() < term,
            State::Serving(office) => *office < term,
            _ => false,
        };
        if over {
            self.seal(now, term, Vec::new(), out);
        }
    }
}
