//! The master of a cluster, if this server is it.

use std::sync::Arc;

use kreon_coord::Version as NodeVersion;
use kreon_sync::Mutex;
use kreon_wire::{Address, Control, GroupId, Member, Term};

use super::asking::{Asker, Asking};
use super::clock::Clock;
use super::links::Links;
use crate::machine::master::{Action, Event, Master, Stage};
use crate::machine::{Answer, Ticket, Timing, Version};

/// The machine of a master, and what it stands for.
pub(super) struct Mastering {
    groups: Vec<GroupId>,
    links: Arc<Links>,
    asking: Arc<Asking>,
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    master: Master,
    /// Who was put into office last, to be asked whether it serves.
    promoted: Vec<(GroupId, Member, Term)>,
    last_question: u64,
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
                last_question: 0,
            }),
            groups,
            links,
            asking,
            clock: Clock::new(),
        }
    }

    pub fn answered(&self, group: GroupId, ticket: Ticket, answer: Answer) {
        self.on(Event::Answer(group, ticket, answer));
    }

    pub fn elected(&self, fence: NodeVersion) {
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

    fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Ask(group, ticket, ask) => {
                self.asking.ask(Asker::Master(group), ticket, &ask);
            }
            Action::Seal { group, to, term } => {
                self.tell(state, (group, to, term), &Control::Seal);
            }
            Action::Hint { group, to, config } => {
                state.promoted.retain(|(other, ..)| *other != group);
                state.promoted.push((group, to, config.term));
                self.tell(state, (group, to, config.term), &Control::Look);
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

    /// Time passed: those that were put into office are asked whether they serve.
    pub fn tick(&self) {
        self.on(Event::Tick);
        let state = &mut *self.state.lock();
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

    /// Anything may have changed.
    pub fn look(&self) {
        for group in &self.groups {
            self.on(Event::Look(*group));
        }
    }
}
