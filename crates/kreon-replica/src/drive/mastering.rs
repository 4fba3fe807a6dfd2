//! The master of a cluster, if this server is it.

use std::collections::HashSet;
use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_coord::Version as NodeVersion;
use kreon_sync::Mutex;
use kreon_wire::{Address, Control, GroupId, Member, ServerId, Term};

use super::asking::{Asker, Asking};
use super::clock::Clock;
use super::links::Links;
use crate::machine::master::{Action, Event, Master, Office, Stage};
use crate::machine::{Answer, Ask, Moment, Ticket, Timing, Version};

/// Numbers of a master's questions. Those of groups are lower, so no answer to one of them is taken for one to a master.
const FIRST_NUMBER: u64 = 1 << 63;

/// A question is repeated so often.
const PROBE_EVERY_US: u64 = 200_000;

/// The machine of a master, and what it stands for.
pub(super) struct Mastering {
    groups: Vec<GroupId>,
    links: Arc<Links>,
    asking: Arc<Asking>,
    timing: Timing,
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    master: Master,
    /// Who was put into office last, to be asked whether it serves.
    promoted: Vec<(GroupId, Member, Term)>,
    probes: Vec<Probe>,
    /// Groups whose loss was refused when it was to be accepted last.
    refused: HashSet<GroupId>,
    /// The same of promotions.
    unpromoted: HashSet<GroupId>,
    /// Primaries that are to hand over, and were not told.
    hand_overs: Vec<(GroupId, Member)>,
    last_question: u64,
}

/// A server is asked which start of it runs.
struct Probe {
    group: GroupId,
    of: Member,
    /// Of the question: an answer to it was given after it was asked, by the start that the link has proven.
    number: u64,
    since: Moment,
    sent: Moment,
}

impl Mastering {
    pub fn new(
        groups: Vec<GroupId>,
        (links, asking): (Arc<Links>, Arc<Asking>),
        timing: Timing,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                master: Master::new(groups.clone(), timing),
                promoted: Vec::new(),
                probes: Vec::new(),
                refused: HashSet::new(),
                unpromoted: HashSet::new(),
                hand_overs: Vec::new(),
                last_question: FIRST_NUMBER,
            }),
            groups,
            links,
            asking,
            timing,
            clock: Clock::new(),
        }
    }

    pub fn answered(&self, group: GroupId, ticket: Ticket, answer: Answer) {
        self.on(Event::Answer(group, ticket, answer));
    }

    pub fn elected(&self, fence: NodeVersion) {
        tracing::info!(office = fence.0, "this server is the master");
        self.on(Event::Elected(Version(fence.0)));
    }

    pub fn on(&self, event: Event) {
        let state = &mut *self.state.lock();
        let mut actions = Vec::new();
        state.master.on(self.clock.now(), event, &mut actions);
        for action in actions {
            self.act(state, action);
        }
    }

    pub fn accept_loss(
        &self,
        group: GroupId,
        server: ServerId,
        vouched: Option<Term>,
    ) -> Result<()> {
        self.refuse_others(group)?;
        self.state.lock().refused.remove(&group);
        self.on(Event::AcceptLoss {
            group,
            server,
            vouched,
        });
        Ok(())
    }

    pub fn loss_is_refused(&self, group: GroupId) -> bool {
        self.state.lock().refused.contains(&group)
    }

    pub fn promote(&self, group: GroupId, to: ServerId) -> Result<()> {
        self.refuse_others(group)?;
        self.state.lock().unpromoted.remove(&group);
        self.on(Event::Promote { group, to });
        Ok(())
    }

    pub fn promotion_is_refused(&self, group: GroupId) -> bool {
        self.state.lock().unpromoted.contains(&group)
    }

    pub fn take_hand_overs(&self) -> Vec<(GroupId, Member)> {
        std::mem::take(&mut self.state.lock().hand_overs)
    }

    /// # Errors
    /// `InvalidArgument`: this server is not the master of the group.
    fn refuse_others(&self, group: GroupId) -> Result<()> {
        let office = self.state.lock().master.office();
        match office == Office::Candidate || !self.groups.contains(&group) {
            true => Err(Error::invalid("this server is not the master of the group")),
            false => Ok(()),
        }
    }

    /// A group stands somehow at `from`: this answers the question with this number. Whether that was which start runs; then
    /// the answer says no more than that, as whoever serves there may be cut off from the coordinator.
    pub fn on_probed(&self, group: GroupId, from: Member, number: u64) -> bool {
        let mut state = self.state.lock();
        let is_it = |probe: &Probe| {
            (probe.group, probe.of.server, probe.number) == (group, from.server, number)
        };
        let Some(index) = state.probes.iter().position(is_it) else {
            return false;
        };
        let of = state.probes.swap_remove(index).of;
        drop(state);
        if of.process != from.process {
            self.on(Event::Ended(group, of));
        }
        true
    }

    fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Ask(group, ticket, ask) => {
                if let Ask::Swap { next, .. } = &ask
                    && next.primary.is_none()
                {
                    tracing::info!(group = group.0, term = next.term.0, "a term is to begin");
                }
                self.asking.ask(Asker::Master(group), ticket, &ask);
            }
            Action::Seal { group, to, term } => {
                self.tell(state, (group, to, term), &Control::Seal);
            }
            Action::Hint { group, to, config } => {
                let (server, term) = (to.server.0, config.term.0);
                tracing::info!(group = group.0, server, term, "a member is promoted");
                state.promoted.retain(|(other, ..)| *other != group);
                state.promoted.push((group, to, config.term));
                self.tell(state, (group, to, config.term), &Control::Look);
            }
            Action::Probe { group, of } => {
                state.last_question += 1;
                let (number, now) = (state.last_question, self.clock.now());
                state
                    .probes
                    .retain(|probe| (probe.group, probe.of) != (group, of));
                let probe = Probe {
                    group,
                    of,
                    number,
                    since: now,
                    sent: now,
                };
                self.ask_which_start(&probe);
                state.probes.push(probe);
            }
            Action::RefuseLoss(group) => {
                tracing::warn!(
                    group = group.0,
                    "no loss is accepted: the group does not wait, or nobody of its set is known to have ended"
                );
                state.refused.insert(group);
            }
            Action::HandOver { group, to, .. } => state.hand_overs.push((group, to)),
            Action::RefusePromotion(group) => {
                tracing::warn!(group = group.0, "nobody is promoted: the group is not well");
                state.unpromoted.insert(group);
            }
            Action::StandDown => self.asking.stand_anew(),
        }
    }

    fn tell(
        &self,
        state: &mut State,
        (group, to, term): (GroupId, Member, Term),
        message: &Control,
    ) {
        state.last_question += 1;
        let number = state.last_question;
        let address = Address {
            group,
            term,
            number,
        };
        let packet = message.encode(&address);
        self.links.send(to.server, Some(to.process), packet);
    }

    /// Asks whatever start of the server there is.
    fn ask_which_start(&self, probe: &Probe) {
        let address = Address {
            group: probe.group,
            term: Term(0),
            number: probe.number,
        };
        let packet = Control::Status.encode(&address);
        self.links.send(probe.of.server, None, packet);
    }

    fn repeat_probes(&self, state: &mut State) {
        let now = self.clock.now();
        let patience_us = self.timing.seal_patience_us;
        state
            .probes
            .retain(|probe| now.since_us(probe.since) < patience_us);
        for probe in &mut state.probes {
            if now.since_us(probe.sent) >= PROBE_EVERY_US {
                probe.sent = now;
                self.ask_which_start(probe);
            }
        }
    }

    /// Time passed: those that were put into office are asked whether they serve.
    pub fn tick(&self) {
        self.on(Event::Tick);
        let state = &mut *self.state.lock();
        self.repeat_probes(state);
        for (group, to, term) in state.promoted.clone() {
            match state.master.stage(group) {
                Some(Stage::Promoting { .. }) => {
                    self.tell(state, (group, to, term), &Control::Status);
                }
                Some(Stage::Healthy | Stage::UnderReplicated) => {
                    state.promoted.retain(|(other, ..)| *other != group);
                }
                _ => {}
            }
        }
    }

    /// What it does for a group.
    pub fn stage(&self, group: GroupId) -> Option<Stage> {
        self.state.lock().master.stage(group).cloned()
    }

    /// The version of the node of the office, if this server is in it.
    pub fn fence(&self) -> Option<Version> {
        match self.state.lock().master.office() {
            Office::Leader { fence } => Some(fence),
            Office::Candidate => None,
        }
    }

    /// Anything may have changed.
    pub fn look(&self) {
        for group in &self.groups {
            self.on(Event::Look(*group));
        }
    }
}
