//! The coordinator of a walk: questions on their way, sessions, elections, watches.

use kreon_coord::fake::{Fate, SessionId};
use kreon_coord::{Command, Mode, Operation, Reply, Standing, standing};
use kreon_replica::drive::answer;
use kreon_replica::machine::{
    Answer, Ask, Configuration, Known, Member, ProcessId, ServerId, Ticket, Version, master,
    primary, replica,
};

use super::event::{Asker, Happening};
use super::faults::Focus;
use super::judge::{Broken, Loss};
use super::run::Walk;
use crate::explore::GROUP;
use crate::toy::{Place, place, start};

/// A session of which nothing was heard for so long ends.
const SESSION_US: u64 = 1_000_000;

/// A question without an answer is given up after this.
const ANSWER_US: u64 = 300_000;

impl Walk {
    /// The nodes that there are from the start.
    pub(super) fn prepare(&mut self) {
        let session = self.witness;
        for path in self.paths.folders() {
            let create = Command::Create(path, [].into(), Mode::Persistent);
            self.fake.carry_out(session, &create, Fate::Answered);
        }
        let group = (self.paths.group(GROUP.0), bytes_of(&self.current.config));
        for (path, data) in [group, (self.paths.master_fence(), [].into())] {
            let create = Command::Create(path, data, Mode::Persistent);
            self.fake.carry_out(session, &create, Fate::Answered);
        }
    }

    pub(super) fn ask(&mut self, at: Place, asker: Asker, ticket: Ticket, ask: Ask) {
        let (start, session) = (self.nodes[at].start, self.nodes[at].session);
        let us = 100 + self.dice.below(2000);
        let slow = self.dice.below(30) == 0;
        let us = if slow {
            us + self.dice.below(200_000)
        } else {
            us
        };
        self.after(us, Happening::Asked(at, start, session, asker, ticket, ask));
    }

    pub(super) fn on_asked(
        &mut self,
        at: Place,
        (start, session): (u8, Option<SessionId>),
        asker: Asker,
        ticket: Ticket,
        ask: Ask,
    ) {
        let node = &self.nodes[at];
        let is_same = node.start == start && session.is_some() && node.session == session;
        let reached = !node.is_cut_off && !self.coordinator_down && is_same;
        let one_in = match self.focus {
            Focus::LostAnswers => 4,
            _ => 40,
        };
        let fate = match self.dice.below(one_in) {
            0 => Fate::AnswerLost,
            1 => Fate::CommandLost,
            _ => Fate::Answered,
        };
        let fate = if reached { fate } else { Fate::CommandLost };
        let is_late = fate == Fate::AnswerLost && self.dice.below(2) == 0;
        let answer = self.carry_out(at, &ask, if is_late { Fate::Answered } else { fate });
        let answer = match is_late {
            true => self.give_late(at, start, asker, ticket, answer),
            false => answer,
        };
        if fate != Fate::Answered {
            self.count(match fate {
                Fate::AnswerLost => "answer of the coordinator lost",
                _ => "question to the coordinator lost",
            });
        }
        if fate == Fate::CommandLost && matches!(ask, Ask::Swap { .. }) && self.dice.below(2) == 0 {
            let us = self.dice.below(3_000_000);
            if let Some(session) = session {
                self.after(us, Happening::Stray(at, session, ask));
            }
        }
        let us = match answer {
            Answer::Unknown => ANSWER_US,
            _ => 100 + self.dice.below(2000),
        };
        if self.dice.below(60) == 0 {
            self.count("answer of the coordinator twice");
            let again = self.dice.below(1_000_000);
            let answered = Happening::Answered(at, start, asker, ticket, answer.clone());
            self.after(us + again, answered);
        }
        self.after(us, Happening::Answered(at, start, asker, ticket, answer));
    }

    /// The answer comes when nobody waits for it any more.
    fn give_late(
        &mut self,
        at: Place,
        start: u8,
        asker: Asker,
        ticket: Ticket,
        answer: Answer,
    ) -> Answer {
        self.count("answer of the coordinator late");
        let us = ANSWER_US + 1 + self.dice.below(2_000_000);
        self.after(us, Happening::Answered(at, start, asker, ticket, answer));
        Answer::Unknown
    }

    /// An order that was believed lost arrives after all.
    pub(super) fn on_stray(&mut self, at: Place, session: SessionId, ask: &Ask) {
        if !self.coordinator_down && self.nodes[at].session == Some(session) {
            self.count("stray order");
            self.carry_out(at, ask, Fate::Answered);
        }
    }

    fn carry_out(&mut self, at: Place, ask: &Ask, fate: Fate) -> Answer {
        let Some(session) = self.nodes[at].session else {
            return Answer::Unknown;
        };
        let path = self.paths.group(GROUP.0);
        match ask {
            Ask::Read { synced } => {
                if *synced {
                    self.fake.carry_out(session, &Command::Sync, fate);
                }
                let get = Command::Get { path, watch: false };
                answer(GROUP, &self.fake.carry_out(session, &get, fate))
            }
            Ask::Swap {
                expected,
                next,
                fence,
            } => {
                let expected = kreon_coord::Version(expected.0);
                let mut parts = vec![Operation::Set(path, bytes_of(next), expected)];
                if let Some(fence) = fence {
                    let fence = kreon_coord::Version(fence.0);
                    parts.push(Operation::Check(self.paths.master_fence(), fence));
                }
                let swapped = Command::Multi(parts);
                let reply = self.fake.carry_out(session, &swapped, fate);
                if self.witness() {
                    self.on_swapped(next);
                }
                answer(GROUP, &reply)
            }
        }
    }

    /// Whether the coordinator has a configuration that the judge does not know: its number is the next one.
    pub(super) fn witness(&mut self) -> bool {
        let path = self.paths.group(GROUP.0);
        let get = Command::Get { path, watch: false };
        self.fake
            .carry_out(self.witness, &Command::Sync, Fate::Answered);
        let found = self.fake.carry_out(self.witness, &get, Fate::Answered);
        matches!(found, Reply::Node(node) if node.version.0 > self.current.version.0)
    }

    /// The coordinator has a new configuration.
    pub(super) fn on_swapped(&mut self, next: &Configuration) {
        let version = Version(self.current.version.0 + 1);
        let before = std::mem::replace(
            &mut self.current,
            Known {
                version,
                config: next.clone(),
            },
        );
        self.count("swap");
        self.moments.push(self.fake.moment());
        if let Some(primary) = next.primary {
            self.judge.name(next.term, primary);
            if self
                .wished
                .take_if(|wish| *wish == (primary.server, next.term))
                .is_some()
            {
                self.count("promoted on wish");
            }
        }
        if next.loss_term > before.config.loss_term {
            self.count("loss accepted");
            self.loss_accepted = Some(Loss {
                us: self.now_us,
                of_sole: before.config.in_sync.len() == 1,
            });
            return;
        }
        if self.restored.is_some() {
            return; // judged when somebody takes office
        }
        let alive = |member: &Member| self.runs(*member);
        let old = &before.config;
        let restarted = next.in_sync.iter().any(|member| !old.has(*member));
        let gone = !old.in_sync.iter().any(alive);
        let whole = old.in_sync.len() > 1 && next.term > old.term && restarted;
        if whole && (gone || old.all_needed) {
            self.excuse(next);
        }
    }

    fn excuse(&mut self, next: &Configuration) {
        self.count("whole set came back");
        self.whole_set_failed = true;
        let members = next.in_sync.iter();
        let volumes: Vec<_> = members
            .map(|m| self.nodes[place(*m)].volume.clone())
            .collect();
        let highest = volumes.iter().map(|volume| volume.slot).max().flatten();
        let highest: Vec<_> = volumes
            .iter()
            .filter(|volume| volume.slot == highest)
            .collect();
        if let Some(write) = self.judge.excuse(&highest) {
            self.break_with(Broken::SyncLost(write));
        }
    }

    /// Whether this start of a server runs.
    pub(super) fn runs(&self, member: Member) -> bool {
        let node = &self.nodes[place(member)];
        node.up && node.start == start(member)
    }

    pub(super) fn on_answered(&mut self, at: Place, asker: Asker, ticket: Ticket, answer: Answer) {
        match asker {
            Asker::Replica => self.for_replica(at, replica::Event::Answer(ticket, answer)),
            Asker::Primary(term) => {
                self.for_primary(at, Some(term), primary::Event::Answer(ticket, answer));
            }
            Asker::Master => {
                self.for_master(at, master::Event::Answer(GROUP, ticket, answer));
            }
        }
    }

    /// A server talks to the coordinator.
    pub(super) fn contact(&mut self, at: Place, start: u8) {
        let us = 100_000 + self.dice.below(150_000);
        self.after(us, Happening::Contacts(at, start));
        if self.nodes[at].is_cut_off || self.coordinator_down {
            return;
        }
        let session = self.session(at);
        self.nodes[at].contact_us = self.now_us;
        let now_us = self.now_us;
        let mut sessions = self.sessions.iter_mut();
        if let Some(held) = sessions.find(|(held, _)| *held == session) {
            held.1 = now_us;
        }
        let lags = self.dice.below(3) == 0;
        let writes = if lags { self.dice.below(3) } else { u64::MAX };
        self.fake.catch_up(session, writes);
        self.stand(at);
        self.tell_live(at);
        if !self.fake.take_fired(session).is_empty() {
            self.watch(at);
            self.for_replica(at, replica::Event::Look);
            self.for_primary(at, None, primary::Event::Look);
            self.for_master(at, master::Event::Look(GROUP));
        }
    }

    /// The session of a server; a new one if the last one is over.
    fn session(&mut self, at: Place) -> SessionId {
        if let Some(session) = self.nodes[at].session
            && self.fake.is_alive(session)
        {
            return session;
        }
        let session = self.fake.begin();
        self.sessions.push((session, self.now_us));
        let me = self.nodes[at].me();
        let live = self
            .paths
            .live_process(me.server.0, u128::from_be_bytes(me.process.0));
        let create = Command::Create(live, [].into(), Mode::Ephemeral);
        self.fake.carry_out(session, &create, Fate::Answered);
        let node = &mut self.nodes[at];
        node.session = Some(session);
        node.candidate = None;
        node.is_leader = false;
        self.watch(at);
        self.for_master(at, master::Event::Unseated);
        self.for_replica(at, replica::Event::Look);
        session
    }

    fn watch(&mut self, at: Place) {
        let path = self.paths.group(GROUP.0);
        if let Some(session) = self.nodes[at].session {
            let get = Command::Get { path, watch: true };
            self.fake.carry_out(session, &get, Fate::Answered);
        }
    }

    /// Stands for the office of the master.
    fn stand(&mut self, at: Place) {
        let Some(session) = self.nodes[at].session else {
            return;
        };
        if self.nodes[at].candidate.is_none() {
            let process = u128::from_be_bytes(self.nodes[at].me().process.0);
            let path = self.paths.master_candidate(process);
            let create = Command::Create(path, [].into(), Mode::EphemeralSequential);
            if let Reply::Created(path) = self.fake.carry_out(session, &create, Fate::Answered) {
                self.nodes[at].candidate = path.rsplit('/').next().map(str::to_owned);
            }
        }
        let children = Command::Children {
            path: self.paths.master(),
            watch: false,
        };
        let listed = self.fake.carry_out(session, &children, Fate::Answered);
        let (Reply::Children(names), Some(own)) = (listed, &self.nodes[at].candidate) else {
            return;
        };
        if standing(own, &names) == Standing::First && !self.nodes[at].is_leader {
            self.elect(at, session);
        }
    }

    fn elect(&mut self, at: Place, session: SessionId) {
        let path = self.paths.master_fence();
        self.fake.carry_out(session, &Command::Sync, Fate::Answered);
        let get = Command::Get {
            path: path.clone(),
            watch: false,
        };
        let Reply::Node(fence) = self.fake.carry_out(session, &get, Fate::Answered) else {
            return;
        };
        let raise = Command::Set(path, [].into(), fence.version);
        if let Reply::Written(version) = self.fake.carry_out(session, &raise, Fate::Answered) {
            self.count("master elected");
            self.nodes[at].is_leader = true;
            self.for_master(at, master::Event::Elected(Version(version.0)));
        }
    }

    fn tell_live(&mut self, at: Place) {
        let Some(session) = self.nodes[at].session else {
            return;
        };
        let children = Command::Children {
            path: self.paths.live(),
            watch: false,
        };
        let Reply::Children(names) = self.fake.carry_out(session, &children, Fate::Answered) else {
            return;
        };
        let mut live: Vec<Member> = Vec::new();
        for (server, process) in names
            .iter()
            .filter_map(|name| kreon_coord::Paths::live_of(name))
        {
            let member = Member {
                server: ServerId(server),
                process: ProcessId(process.to_be_bytes()),
            };
            // The latest start of each server.
            live.retain(|m| m.server != member.server || start(*m) > start(member));
            if !live.iter().any(|m| m.server == member.server) {
                live.push(member);
            }
        }
        self.for_master(at, master::Event::Live(live));
    }

    pub(super) fn sweep(&mut self) {
        self.after(50_000, Happening::Sweeps);
        if self.coordinator_down {
            return;
        }
        let now_us = self.now_us;
        let over = |held: &(_, u64)| now_us - held.1 > SESSION_US;
        let ended: Vec<_> = self
            .sessions
            .iter()
            .filter(|held| over(held))
            .copied()
            .collect();
        self.sessions.retain(|held| !over(held));
        for (session, _) in ended {
            self.count("session expired");
            self.fake.expire(session);
        }
    }
}

/// The node of a configuration; none that decodes if the walk has made one that contradicts itself.
pub(super) fn bytes_of(config: &Configuration) -> std::sync::Arc<[u8]> {
    let node = config.to_node(GROUP).map(|node| node.encode());
    node.unwrap_or_default().into()
}
