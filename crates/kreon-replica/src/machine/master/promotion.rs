//! Who is promoted, and when: the next term without a primary, before any seal, so that the old primary can no longer
//! remove the new one; seals; then the highest report.

use kreon_base::planted;

use super::group::{Group, Stage};
use super::{Action, Master};
use crate::machine::{
    Answer, Configuration, Known, Member, Moment, Outcome, Report, Swap, Term, Ticket,
};

/// An attempt may take at most so many times [`Timing::attempt_us`](crate::machine::Timing::attempt_us).
const ATTEMPT_FACTOR_MAX: u64 = 30;

impl Master {
    /// Does what the configuration and the sessions call for. Each step is idempotent.
    pub(super) fn act(&mut self, now: Moment, group: &mut Group, out: &mut Vec<Action>) {
        let Some(known) = group.known.clone() else {
            return;
        };
        if group.swap.is_some() {
            return;
        }
        if group.is_restored(&known) {
            group.stage = Stage::Restored;
            return;
        }
        match known.config.primary {
            Some(primary) if self.counts_as_live(primary) => self.watch(group, &known.config),
            None if self.suffices(&known.config) => self.seal(now, group, &known, out),
            _ => self.fail_over(now, group, known, out),
        }
    }

    /// A primary is gone, or a whole set: the next term, if somebody can be promoted in it.
    fn fail_over(&mut self, now: Moment, group: &mut Group, known: Known, out: &mut Vec<Action>) {
        let next = known.config.in_next_term();
        if self.suffices(&known.config) {
            let next = self.kept(next);
            return self.swap_to(now, group, known, next, out);
        }
        match self.restarted(&known.config) {
            Some(in_sync) => {
                let next = Configuration {
                    all_needed: in_sync.len() > 1,
                    in_sync: in_sync.into(),
                    ..next
                };
                self.swap_to(now, group, known, next, out);
            }
            None => group.stage = Stage::Waiting,
        }
    }

    /// Whether those of the set that have a session suffice for a promotion: one, as each has all that was acknowledged,
    /// or all, where they came back with different ends.
    fn suffices(&self, config: &Configuration) -> bool {
        let live = self.in_sync_live(config).count();
        let needed = match config.all_needed {
            true => config.in_sync.len(),
            false => 1,
        };
        planted!(PartOfSetSuffices => let needed = 1);
        live >= needed
    }

    /// Members of the set with a session of the start that is in the set: others have lost their memory.
    pub(super) fn in_sync_live<'a>(
        &'a self,
        config: &'a Configuration,
    ) -> impl Iterator<Item = Member> + 'a {
        let members = config.in_sync.iter().copied();
        members.filter(|member| self.counts_as_live(*member))
    }

    fn counts_as_live(&self, member: Member) -> bool {
        let live = self.is_live(member);
        planted!(RestartedProcessKept => let live = self.start_of(member.server).is_some());
        live
    }

    /// The set that goes on into the next term: as it is.
    fn kept(&self, config: Configuration) -> Configuration {
        planted!(RestartedProcessKept => return Configuration {
            in_sync: self.present(&config),
            ..config
        });
        config
    }

    /// The set with whatever start its servers have now (the planted bug).
    fn present(&self, config: &Configuration) -> std::sync::Arc<[Member]> {
        let start = |m: &Member| self.start_of(m.server).unwrap_or(*m);
        config.in_sync.iter().map(start).collect()
    }

    /// All servers of a set that does not suffice as it is, in their present starts; none while one is missing.
    fn restarted(&self, config: &Configuration) -> Option<Vec<Member>> {
        let members = config.in_sync.iter();
        members.map(|m| self.start_of(m.server)).collect()
    }

    /// A primary has a session. While it is a candidate, the tick judges how long it takes.
    fn watch(&self, group: &mut Group, config: &Configuration) {
        if !matches!(group.stage, Stage::Promoting { .. }) {
            group.stage = well(config);
        }
    }

    pub(super) fn on_serves(&self, group: &mut Group, term: Term) {
        let Some(known) = &group.known else { return };
        if known.config.term == term && known.config.primary.is_some() {
            group.stage = well(&known.config);
            group.attempts = 0;
        }
    }

    fn seal(&mut self, now: Moment, group: &mut Group, known: &Known, out: &mut Vec<Action>) {
        let term = known.config.term;
        match &group.stage {
            Stage::Sealing { term: begun, .. } if *begun == term => {}
            _ => {
                group.stage = Stage::Sealing {
                    term,
                    reports: Vec::new(),
                    since: now,
                };
                self.ask_for_reports(group, &known.config, out);
            }
        }
        self.decide(now, group, out);
    }

    /// Asks those of the set that have not reported.
    fn ask_for_reports(&self, group: &Group, config: &Configuration, out: &mut Vec<Action>) {
        let Stage::Sealing { term, reports, .. } = &group.stage else {
            return;
        };
        for to in config.in_sync.iter() {
            if !reports.iter().any(|(member, _)| member == to) {
                out.push(Action::Seal {
                    group: group.id,
                    to: *to,
                    term: *term,
                });
            }
        }
    }

    /// A member knows a later term. If the coordinator does not, nobody may be promoted by what it says: it would be by
    /// sets of long ago.
    pub(super) fn on_refused(
        &mut self,
        now: Moment,
        group: &mut Group,
        term: Term,
        out: &mut Vec<Action>,
    ) {
        group.refused_by = group.refused_by.max(term);
        if group
            .known
            .as_ref()
            .is_some_and(|known| group.is_restored(known))
        {
            group.stage = Stage::Restored;
            self.look(now, group, out); // or another master has gone on
        }
    }

    pub(super) fn on_sealed(
        &mut self,
        now: Moment,
        group: &mut Group,
        from: Member,
        term: Term,
        report: Report,
        out: &mut Vec<Action>,
    ) {
        let Stage::Sealing {
            term: begun,
            reports,
            ..
        } = &mut group.stage
        else {
            return;
        };
        if *begun == term && !reports.iter().any(|(member, _)| *member == from) {
            reports.push((from, report));
            reports.sort_unstable();
            self.decide(now, group, out);
        }
    }

    /// Puts the highest report into office: superblock first, then log, then preference. With patience for those that have a session and
    /// did not report.
    fn decide(&mut self, now: Moment, group: &mut Group, out: &mut Vec<Action>) {
        let Some(known) = group.known.clone() else {
            return;
        };
        let Stage::Sealing { reports, since, .. } = &group.stage else {
            return;
        };
        let told = |member: Member| reports.iter().any(|(from, _)| *from == member);
        let all_told = match known.config.all_needed {
            true => known.config.in_sync.iter().copied().all(told),
            false => self.in_sync_live(&known.config).all(told),
        };
        let all_needed = known.config.all_needed;
        planted!(PartOfSetSuffices => let all_needed = false);
        let patient = all_needed || now.since_us(*since) < self.timing.seal_patience_us;
        let Some(winner) = group.winner(&known.config, reports) else {
            return;
        };
        if (!all_told && patient) || group.swap.is_some() || !self.is_grace_over(now, group) {
            return;
        }
        let next = known.config.led_by(winner);
        out.push(Action::Hint {
            group: group.id,
            to: winner,
            config: next.clone(),
        });
        self.swap_to(now, group, known, next, out);
    }

    pub(super) fn swap_to(
        &mut self,
        now: Moment,
        group: &mut Group,
        known: Known,
        next: Configuration,
        out: &mut Vec<Action>,
    ) {
        let id = group.id;
        let ticket = self.tickets.draw();
        let ask = &mut |ticket, ask| out.push(Action::Ask(id, ticket, ask));
        let is_fresh = now.since_us(group.known_at) < self.timing.lease_us;
        let base = (known, is_fresh);
        group.swap = Some(Swap::begin(base, next, self.fence(), now, ticket, ask));
    }

    pub(super) fn on_swap_answer(
        &mut self,
        now: Moment,
        group: &mut Group,
        ticket: Ticket,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        let Some(swap) = group.swap.as_mut().filter(|swap| swap.awaits(ticket)) else {
            return;
        };
        let id = group.id;
        let next_ticket = self.tickets.draw();
        let outcome = swap.on_answer(now, answer, next_ticket, &mut |ticket, ask| {
            out.push(Action::Ask(id, ticket, ask));
        });
        match outcome {
            Outcome::Open => {}
            Outcome::FenceLost => self.stand_down(out),
            Outcome::Done { known, sent } => {
                group.swap = None;
                if let Some(to) = known.config.primary {
                    // It may have looked before this was there.
                    let config = known.config.clone();
                    out.push(Action::Hint {
                        group: id,
                        to,
                        config,
                    });
                    group.stage = Stage::Promoting { since: now };
                    group.attempts = group.attempts.saturating_add(1);
                    group.wish = None;
                }
                group.learn(now, known, sent);
                self.act(now, group, out);
            }
            Outcome::Overtaken(known) => {
                group.swap = None;
                group.learn(now, known, now);
                self.act(now, group, out);
            }
        }
    }

    /// Time passes.
    pub(super) fn tick(&mut self, now: Moment, group: &mut Group, out: &mut Vec<Action>) {
        if let Some(swap) = &mut group.swap {
            let id = group.id;
            swap.on_tick(now, self.tickets.draw(), &mut |ticket, ask| {
                out.push(Action::Ask(id, ticket, ask));
            });
            return;
        }
        let Some(known) = group.known.clone() else {
            return self.look(now, group, out);
        };
        match group.stage {
            Stage::Sealing { .. } => {
                self.ask_for_reports(group, &known.config, out);
                self.decide(now, group, out);
            }
            Stage::Promoting { since } => {
                let factor = (1 << group.attempts.min(10)).min(ATTEMPT_FACTOR_MAX);
                if now.since_us(since) >= self.timing.attempt_us * factor {
                    let next = known.config.in_next_term();
                    self.swap_to(now, group, known, next, out);
                }
            }
            Stage::Waiting | Stage::Unread | Stage::Restored => {
                self.tire_of_loss(now, group, out);
                self.look(now, group, out);
            }
            Stage::Healthy | Stage::UnderReplicated => self.tire_of_primary(now, group, out),
        }
    }
}

/// The stage of a group with a primary.
fn well(config: &Configuration) -> Stage {
    match config.in_sync.len() < config.servers.len() {
        true => Stage::UnderReplicated,
        false => Stage::Healthy,
    }
}
