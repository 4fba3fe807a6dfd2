//! The session with the coordinator: questions of all machines of a process, watches, and what the server itself has there.
//!
//! A session that has ended is followed by a new one. Every question gets one answer, [`Answer::Unknown`] if the session
//! ended before.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kreon_base::Result;
use kreon_coord::{
    CallId, Candidacy, Command, Coordinator, Event, Mode, Paths, Reply, Step, Version,
};
use kreon_fabric::Address;
use kreon_sync::{AtomicBool, Mutex, Ordering};
use kreon_wire::{GroupId, Member, ServerId, ServerNode, Term};

use super::answers::{answer, commands};
use super::directory::{Live, address_of, live_node, process_number, whereabouts};
use crate::machine::{Answer, Ask, Ticket};

/// Begins a session with the coordinator.
pub type Begin = Box<dyn Fn() -> Result<Arc<dyn Coordinator>> + Send + Sync>;

/// The thread of the session looks so often for questions that could not be sent.
const PATIENCE: Duration = Duration::from_millis(50);

/// Which machine asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Replica(GroupId),
    Primary(GroupId, Term),
    Master(GroupId),
    /// A candidate that gives its attempt up.
    GivingUp(GroupId),
}

impl Asker {
    pub fn group(self) -> GroupId {
        match self {
            Self::Replica(group)
            | Self::Primary(group, _)
            | Self::Master(group)
            | Self::GivingUp(group) => group,
        }
    }
}

/// Takes what the coordinator tells.
pub(super) trait Listener: Send + Sync {
    fn answered(&self, asker: Asker, ticket: Ticket, answer: Answer);
    fn look(&self, group: GroupId);
    /// A session begins: anything may have changed.
    fn begun(&self);
    fn live(&self, live: Vec<Member>);
    fn address(&self, server: ServerId, address: Address);
    fn elected(&self, fence: Version);
    fn unseated(&self);
}

/// What the reply to a call is for.
#[derive(Debug)]
enum Pending {
    Question(Asker, Ticket),
    Live,
    Servers,
    Server(u32),
    /// The node of this start was made, or there was one.
    OwnLive,
    /// The same of the node of this server.
    Own,
    OwnNow,
    /// A question of the candidacy with this number.
    Candidacy(u64),
}

/// Commands, the reply to the last of which is for this.
type Sent = (Vec<Command>, Pending);

#[derive(Default)]
struct Session {
    coordinator: Option<Arc<dyn Coordinator>>,
    last: u64,
    pending: HashMap<CallId, Pending>,
    /// Questions that could not be sent.
    unsent: Vec<(Asker, Ticket)>,
    watched: HashSet<GroupId>,
    candidacy: Option<Candidacy>,
    /// Candidacies that began: answers to an earlier one count no more.
    candidacies: u64,
    live: Live,
    /// What was not answered, or not as it should be, is asked again after a while.
    again: Vec<Sent>,
}

/// See the module's text.
pub struct Asking {
    paths: Paths,
    own: ServerNode,
    me: Member,
    is_candidate: bool,
    begin: Begin,
    session: Mutex<Session>,
    listener: OnceLock<Weak<dyn Listener>>,
    is_over: AtomicBool,
}

impl Asking {
    /// The sessions of a start of a server, which is a candidate for the office of the master or not. The first one begins
    /// with the [`Server`](super::Server).
    pub fn new(
        (paths, begin): (Paths, Begin),
        (me, own): (Member, ServerNode),
        is_candidate: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            paths,
            own,
            me,
            is_candidate,
            begin,
            session: Mutex::default(),
            listener: OnceLock::new(),
            is_over: AtomicBool::new(false),
        })
    }

    pub(super) fn tell(&self, listener: Weak<dyn Listener>) {
        let _ = self.listener.set(listener);
    }

    fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.listener.get().and_then(Weak::upgrade)
    }

    /// Sends a question, and does not wait.
    pub(super) fn ask(&self, asker: Asker, ticket: Ticket, ask: &Ask) {
        let mut session = self.session.lock();
        let group = asker.group();
        let is_read = matches!(ask, Ask::Read { .. });
        let watch = is_read && session.watched.insert(group);
        let pending = Pending::Question(asker, ticket);
        let is_sent = match commands(&self.paths, group, ask, watch) {
            Some(commands) => session.send(commands, pending),
            None => false,
        };
        if !is_sent {
            if watch {
                session.watched.remove(&group);
            }
            session.unsent.push((asker, ticket));
        }
    }

    /// Stands for election anew.
    pub(super) fn stand_anew(&self) {
        let mut session = self.session.lock();
        if session.candidacy.is_some() {
            self.stand(&mut session);
        }
    }

    fn stand(&self, session: &mut Session) {
        let process = process_number(self.me);
        let (candidacy, step) = Candidacy::new(self.paths.clone(), process);
        session.candidacy = Some(candidacy);
        session.candidacies += 1;
        // It begins with a question.
        session.go(step);
    }

    /// Sessions, one after the other, until [`end`](Self::end).
    pub(super) fn run(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            match (self.begin)() {
                Ok(coordinator) => self.hold(coordinator),
                Err(error) => {
                    tracing::warn!(%error, "no session with the coordinator");
                    self.give_up();
                    kreon_sync::sleep(PATIENCE);
                }
            }
        }
    }

    /// No session begins any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn hold(&self, coordinator: Arc<dyn Coordinator>) {
        self.introduce(&coordinator);
        if let Some(listener) = self.listener() {
            listener.begun();
        }
        let mut events = Vec::new();
        let mut is_alive = true;
        while is_alive && !self.is_over.load(Ordering::Acquire) {
            let again = std::mem::take(&mut self.session.lock().again);
            is_alive = coordinator.poll(&mut events, PATIENCE).is_ok();
            for event in events.drain(..) {
                match event {
                    Event::Replied(call, reply) => self.replied(call, &reply),
                    Event::Changed(path) => self.changed(&path),
                    Event::Expired => is_alive = false,
                }
            }
            let mut session = self.session.lock();
            for (commands, pending) in again {
                session.send(commands, pending);
            }
            let unsent = std::mem::take(&mut session.unsent);
            drop(session);
            self.answer_unknown(unsent);
        }
        self.give_up();
    }

    /// What this server has at the coordinator, and what it wants to be told.
    fn introduce(&self, coordinator: &Arc<dyn Coordinator>) {
        let mut session = self.session.lock();
        session.coordinator = Some(Arc::clone(coordinator));
        session.watched.clear();
        for pending in [
            Pending::OwnLive,
            Pending::Own,
            Pending::Servers,
            Pending::Live,
        ] {
            session.send(self.commands_of(&pending), pending);
        }
        if self.is_candidate {
            self.stand(&mut session);
        }
    }

    /// What is asked for this; nothing for what a machine asks.
    fn commands_of(&self, pending: &Pending) -> Vec<Command> {
        let own = self.paths.server(self.own.server.0);
        match pending {
            Pending::Question(..) | Pending::Candidacy(_) => Vec::new(),
            Pending::Live => children(self.paths.live()),
            Pending::Servers => children(self.paths.servers()),
            Pending::Server(server) => whereabouts(&self.paths, *server),
            Pending::OwnLive => {
                let path = live_node(&self.paths, self.me);
                vec![Command::Create(path, [].into(), Mode::Ephemeral)]
            }
            Pending::Own => {
                let node = self.own.encode().into();
                vec![Command::Create(own, node, Mode::Persistent)]
            }
            Pending::OwnNow => {
                let get = Command::Get {
                    path: own,
                    watch: false,
                };
                vec![Command::Sync, get]
            }
        }
    }

    /// The session is over: what was asked is not known.
    fn give_up(&self) {
        let mut session = self.session.lock();
        session.coordinator = None;
        session.candidacy = None;
        session.again.clear();
        let mut unknown = std::mem::take(&mut session.unsent);
        for (_, pending) in session.pending.drain() {
            if let Pending::Question(asker, ticket) = pending {
                unknown.push((asker, ticket));
            }
        }
        drop(session);
        self.answer_unknown(unknown);
        if let Some(listener) = self.listener() {
            listener.unseated();
        }
    }

    fn answer_unknown(&self, unknown: Vec<(Asker, Ticket)>) {
        let Some(listener) = self.listener() else {
            return;
        };
        for (asker, ticket) in unknown {
            listener.answered(asker, ticket, Answer::Unknown);
        }
    }

    fn changed(&self, path: &str) {
        let mut session = self.session.lock();
        if let Some(group) = number_below(path, &self.paths.groups()) {
            session.watched.remove(&GroupId(group));
            drop(session);
            if let Some(listener) = self.listener() {
                listener.look(GroupId(group));
            }
            return;
        }
        let pending = if let Some(server) = number_below(path, &self.paths.servers()) {
            Pending::Server(server)
        } else if path == self.paths.servers() {
            Pending::Servers
        } else if path == self.paths.live() {
            Pending::Live
        } else {
            let candidacy = session.candidacy.as_mut();
            if let Some(step) = candidacy.and_then(|held| held.on_changed(path)) {
                session.go(step);
            }
            return;
        };
        session.send(self.commands_of(&pending), pending);
    }

    fn replied(&self, call: CallId, reply: &Reply) {
        let mut session = self.session.lock();
        let Some(pending) = session.pending.remove(&call) else {
            return;
        };
        let Some(listener) = self.listener() else {
            return;
        };
        match (pending, reply) {
            (Pending::Question(asker, ticket), _) => {
                if matches!(reply, Reply::Missing | Reply::Unknown) {
                    session.watched.remove(&asker.group());
                }
                drop(session);
                listener.answered(asker, ticket, answer(asker.group(), reply));
            }
            (Pending::Candidacy(number), _) => {
                let fence = session.on_candidacy(number, reply);
                drop(session);
                if let Some(fence) = fence {
                    listener.elected(fence);
                }
            }
            (pending, Reply::Unknown) => {
                let commands = self.commands_of(&pending);
                session.again.push((commands, pending));
            }
            (Pending::Live, Reply::Children(names)) => {
                let live = session.live.learn(names);
                if !live.contains(&self.me) {
                    // A node of this start's session before was there when it was to be made, and is gone with that.
                    let commands = self.commands_of(&Pending::OwnLive);
                    session.again.push((commands, Pending::OwnLive));
                }
                drop(session);
                listener.live(live);
            }
            (Pending::Servers, Reply::Children(names)) => {
                for server in names.iter().filter_map(|name| name.parse().ok()) {
                    session.send(whereabouts(&self.paths, server), Pending::Server(server));
                }
            }
            (Pending::Server(_), Reply::Node(node)) => {
                drop(session);
                if let Some((server, address)) = address_of(&node.data) {
                    listener.address(server, address);
                }
            }
            (Pending::Own, Reply::Exists) => {
                session.send(self.commands_of(&Pending::OwnNow), Pending::OwnNow);
            }
            (Pending::OwnNow, Reply::Node(node)) if *node.data != *self.own.encode() => {
                let path = self.paths.server(self.own.server.0);
                let set = Command::Set(path, self.own.encode().into(), node.version);
                session.send(vec![set], Pending::Own);
            }
            // It was made, or written; or the folders of the cluster are missing, and a new session finds them.
            _ => {}
        }
    }
}

impl Session {
    /// A reply to a candidacy; the version of the fence if this server is in office now.
    fn on_candidacy(&mut self, number: u64, reply: &Reply) -> Option<Version> {
        let counts = number == self.candidacies;
        let candidacy = self.candidacy.as_mut().filter(|_| counts)?;
        let step = candidacy.on_reply(reply.clone());
        match (step, reply) {
            // The coordinator is in trouble, or not set up: there is no hurry.
            (Step::Ask(command), Reply::Unknown | Reply::Missing | Reply::Expired) => {
                let sent = (vec![command], Pending::Candidacy(number));
                self.again.push(sent);
                None
            }
            (step, _) => self.go(step),
        }
    }

    /// The next step of a candidacy; the version of the fence if this server is in office now.
    fn go(&mut self, step: Step) -> Option<Version> {
        match step {
            Step::Ask(command) => {
                let pending = Pending::Candidacy(self.candidacies);
                self.send(vec![command], pending);
                None
            }
            Step::Wait => None,
            Step::InOffice(fence) => Some(fence),
        }
    }

    /// Sends commands, the reply to the last of which is for `pending`; whether there is a session.
    fn send(&mut self, commands: Vec<Command>, pending: Pending) -> bool {
        let Some(coordinator) = self.coordinator.clone() else {
            return false;
        };
        let (mut pending, count) = (Some(pending), commands.len());
        for (number, command) in commands.into_iter().enumerate() {
            self.last += 1;
            let call = CallId(self.last);
            if number + 1 == count
                && let Some(pending) = pending.take()
            {
                self.pending.insert(call, pending);
            }
            if coordinator.send(call, command).is_err() {
                self.pending.remove(&call);
                return false;
            }
        }
        true
    }
}

fn children(path: String) -> Vec<Command> {
    vec![Command::Sync, Command::Children { path, watch: true }]
}

/// The number of which the name of a node directly below a path consists.
fn number_below(path: &str, above: &str) -> Option<u32> {
    path.strip_prefix(above)?.strip_prefix('/')?.parse().ok()
}
