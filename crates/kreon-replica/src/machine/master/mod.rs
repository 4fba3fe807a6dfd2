//! The master of the cluster: it promotes. All it knows is read from the coordinator; each step is one compare-and-set
//! that also checks the office, so that a master that was deposed changes nothing, and the next one goes on from what it
//! reads.

mod event;
mod group;
mod loss;
mod promotion;
mod wish;

pub use event::{Action, Event, GroupId};
pub use group::Stage;

use group::Group;

use super::{Answer, Ask, Member, Moment, ServerId, Ticket, Timing, Version};

/// Whether a master is in office.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Office {
    /// Another server may be.
    Candidate,
    /// It is, as long as the node of the office has this version.
    Leader {
        /// That version.
        fence: Version,
    },
}

/// The machine of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    timing: Timing,
    office: Office,
    /// Who has a session.
    live: Vec<Member>,
    groups: Vec<Group>,
    tickets: Ticket,
}

impl Master {
    /// A candidate for these groups.
    pub fn new(groups: impl IntoIterator<Item = GroupId>, timing: Timing) -> Self {
        Self {
            timing,
            office: Office::Candidate,
            live: Vec::new(),
            groups: groups.into_iter().map(Group::new).collect(),
            tickets: Ticket::default(),
        }
    }

    /// Takes note of `event` at `now`; what is to be done is appended to `out`.
    pub fn on(&mut self, now: Moment, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Elected(fence) => self.on_elected(now, fence, out),
            Event::Unseated => self.stand_down(out),
            Event::Live(live) => self.on_live(now, live, out),
            Event::Look(group) => self.for_group(group, out, |master, group, out| {
                master.look(now, group, out);
            }),
            Event::Sealed {
                group,
                from,
                term,
                report,
            } => self.for_group(group, out, |master, group, out| {
                master.on_sealed(now, group, from, term, report, out);
            }),
            Event::Serves(group, term) => self.for_group(group, out, |master, group, _| {
                master.on_serves(group, term);
            }),
            Event::Answer(group, ticket, answer) => {
                self.for_group(group, out, |master, group, out| {
                    master.on_answer(now, group, ticket, answer, out);
                });
            }
            Event::Refused(group, term) => self.for_group(group, out, |master, group, out| {
                master.on_refused(now, group, term, out);
            }),
            Event::AcceptLoss {
                group,
                server,
                vouched,
            } => self.for_group(group, out, |master, group, out| {
                master.accept_loss(now, group, server, vouched, out);
            }),
            Event::Promote { group, to } => self.for_group(group, out, |master, group, out| {
                master.promote(now, group, to, out);
            }),
            Event::Ended(group, member) => self.for_group(group, out, |master, group, out| {
                master.on_ended(now, group, member, out);
            }),
            Event::Tick => self.for_all(out, |master, group, out| master.tick(now, group, out)),
        }
    }

    /// Whether it is in office.
    pub fn office(&self) -> Office {
        self.office
    }

    /// What it does for a group.
    pub fn stage(&self, group: GroupId) -> Option<&Stage> {
        let mut groups = self.groups.iter();
        groups.find(|held| held.id == group).map(|held| &held.stage)
    }

    /// The swap under way for a group.
    pub fn swap(&self, group: GroupId) -> Option<&super::Swap> {
        let mut groups = self.groups.iter();
        groups.find(|held| held.id == group)?.swap.as_ref()
    }

    fn on_elected(&mut self, now: Moment, fence: Version, out: &mut Vec<Action>) {
        self.office = Office::Leader { fence };
        for group in &mut self.groups {
            *group = Group::new(group.id);
        }
        self.for_all(out, |master, group, out| master.look(now, group, out));
    }

    fn on_live(&mut self, now: Moment, live: Vec<Member>, out: &mut Vec<Action>) {
        self.live = live;
        self.for_all(out, |master, group, out| master.act(now, group, out));
    }

    fn stand_down(&mut self, out: &mut Vec<Action>) {
        if self.office != Office::Candidate {
            self.office = Office::Candidate;
            for group in &mut self.groups {
                *group = Group::new(group.id);
            }
            out.push(Action::StandDown);
        }
    }

    fn is_live(&self, member: Member) -> bool {
        self.live.contains(&member)
    }

    /// The present start of a server, if it has a session.
    fn start_of(&self, server: ServerId) -> Option<Member> {
        self.live.iter().copied().find(|m| m.server == server)
    }

    fn fence(&self) -> Option<Version> {
        match self.office {
            Office::Candidate => None,
            Office::Leader { fence } => Some(fence),
        }
    }

    fn look(&mut self, now: Moment, group: &mut Group, out: &mut Vec<Action>) {
        if group.asked.is_some() {
            group.again = true;
            return;
        }
        let ticket = self.tickets.draw();
        group.asked = Some((ticket, now));
        out.push(Action::Ask(group.id, ticket, Ask::Read { synced: true }));
    }

    fn on_answer(
        &mut self,
        now: Moment,
        group: &mut Group,
        ticket: Ticket,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        match group.asked {
            Some((asked, sent)) if asked == ticket => {
                group.asked = None;
                if let Answer::Read(known) = answer {
                    group.learn(now, known, sent);
                    self.act(now, group, out);
                }
                if std::mem::take(&mut group.again) {
                    self.look(now, group, out);
                }
            }
            _ => self.on_swap_answer(now, group, ticket, answer, out),
        }
    }

    /// Does `what` for a group, if this master is in office.
    fn for_group(
        &mut self,
        id: GroupId,
        out: &mut Vec<Action>,
        what: impl FnOnce(&mut Self, &mut Group, &mut Vec<Action>),
    ) {
        let mut groups = std::mem::take(&mut self.groups);
        let found = groups.iter_mut().find(|group| group.id == id);
        if let (Some(group), Office::Leader { .. }) = (found, self.office) {
            what(self, group, out);
        }
        self.put_back(groups);
    }

    fn for_all(
        &mut self,
        out: &mut Vec<Action>,
        what: impl Fn(&mut Self, &mut Group, &mut Vec<Action>),
    ) {
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            if self.office != Office::Candidate {
                what(self, group, out);
            }
        }
        self.put_back(groups);
    }

    fn put_back(&mut self, groups: Vec<Group>) {
        self.groups = groups;
        if self.office == Office::Candidate {
            for group in &mut self.groups {
                *group = Group::new(group.id);
            }
        }
    }
}
