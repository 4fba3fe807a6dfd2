//! The session with the coordinator: questions of all machines of a process, watches, and what the server itself has there.
//!
//! A session that has ended is followed by a new one. Every question gets one answer, [`Answer::Unknown`] if the session
//! ended before.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kreon_base::Result;
use kreon_coord::{CallId, Command, Coordinator, Event, Mode, Paths, Reply, Version};
use kreon_fabric::Address;
use kreon_sync::{AtomicBool, Mutex, Ordering};
use kreon_wire::{GroupId, Member, ServerId, ServerNode, Term};

use super::answers::{answer, commands};
use super::directory::{Live, address_of, live_node, whereabouts};
use super::election::{Election, Step};
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
}

impl Asker {
    pub fn group(self) -> GroupId {
        match self {
            Self::Replica(group) | Self::Primary(group, _) | Self::Master(group) => group,
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
    Nothing,
    Question(Asker, Ticket),
    Live,
    Servers,
    Server,
    /// The own node: it was made, or there was one.
    Own,
    OwnNow,
    Election(Step),
}

#[derive(Default)]
struct Session {
    coordinator: Option<Arc<dyn Coordinator>>,
    last: u64,
    pending: HashMap<CallId, Pending>,
    /// Questions that could not be sent.
    unsent: Vec<(Asker, Ticket)>,
    watched: HashSet<GroupId>,
    election: Option<Election>,
    live: Live,
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
            session.unsent.push((asker, ticket));
        }
    }

    /// Stands for election anew.
    pub(super) fn stand_anew(&self) {
        let mut session = self.session.lock();
        if let Some((step, commands)) = session.election.as_mut().map(Election::enter) {
            session.send(commands, Pending::Election(step));
        }
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
            is_alive = coordinator.poll(&mut events, PATIENCE).is_ok();
            for event in events.drain(..) {
                match event {
                    Event::Replied(call, reply) => self.replied(call, &reply),
                    Event::Changed(path) => self.changed(&path),
                    Event::Expired => is_alive = false,
                }
            }
            let unsent = std::mem::take(&mut self.session.lock().unsent);
            self.answer_unknown(unsent);
        }
        self.give_up();
    }

    /// What this server has at the coordinator, and what it wants to be told.
    fn introduce(&self, coordinator: &Arc<dyn Coordinator>) {
        let mut session = self.session.lock();
        session.coordinator = Some(Arc::clone(coordinator));
        session.watched.clear();
        let live = live_node(&self.paths, self.me);
        let (live, own) = (
            Command::Create(live, [].into(), Mode::Ephemeral),
            Command::Create(
                self.paths.server(self.own.server.0),
                self.own.encode().into(),
                Mode::Persistent,
            ),
        );
        session.send(vec![live], Pending::Nothing);
        session.send(vec![own], Pending::Own);
        session.send(children(self.paths.servers()), Pending::Servers);
        session.send(children(self.paths.live()), Pending::Live);
        if self.is_candidate {
            let mut election = Election::new(&self.paths);
            let (step, commands) = election.enter();
            session.election = Some(election);
            session.send(commands, Pending::Election(step));
        }
    }

    /// The session is over: what was asked is not known.
    fn give_up(&self) {
        let mut session = self.session.lock();
        session.coordinator = None;
        session.election = None;
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
        } else if let Some(server) = number_below(path, &self.paths.servers()) {
            session.send(whereabouts(&self.paths, server), Pending::Server);
        } else if path == self.paths.servers() {
            session.send(children(self.paths.servers()), Pending::Servers);
        } else if path == self.paths.live() {
            session.send(children(self.paths.live()), Pending::Live);
        } else if let Some((step, commands)) = session.election.as_ref().map(Election::look) {
            session.send(commands, Pending::Election(step));
        }
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
                if *reply == Reply::Missing {
                    session.watched.remove(&asker.group());
                }
                drop(session);
                listener.answered(asker, ticket, answer(asker.group(), reply));
            }
            (Pending::Live, Reply::Children(names)) => {
                let live = session.live.learn(names);
                drop(session);
                listener.live(live);
            }
            (Pending::Servers, Reply::Children(names)) => {
                for server in names.iter().filter_map(|name| name.parse().ok()) {
                    session.send(whereabouts(&self.paths, server), Pending::Server);
                }
            }
            (Pending::Server, Reply::Node(node)) => {
                drop(session);
                if let Some((server, address)) = address_of(&node.data) {
                    listener.address(server, address);
                }
            }
            (Pending::Own, Reply::Exists) => {
                let path = self.paths.server(self.own.server.0);
                let get = Command::Get { path, watch: false };
                session.send(vec![Command::Sync, get], Pending::OwnNow);
            }
            (Pending::OwnNow, Reply::Node(node)) if *node.data != *self.own.encode() => {
                let path = self.paths.server(self.own.server.0);
                let set = Command::Set(path, self.own.encode().into(), node.version);
                session.send(vec![set], Pending::Nothing);
            }
            (Pending::Election(step), _) => {
                let next = session.election.as_mut().map(|held| held.on(step, reply));
                match next {
                    Some(Ok(Some((step, commands)))) => {
                        session.send(commands, Pending::Election(step));
                    }
                    Some(Err(fence)) => {
                        drop(session);
                        listener.elected(fence);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

impl Session {
    /// Sends commands, the reply to the last of which is for `pending`; whether there is a session.
    fn send(&mut self, commands: Vec<Command>, pending: Pending) -> bool {
        let Some(coordinator) = self.coordinator.clone() else {
            return false;
        };
        let count = commands.len();
        let mut pending = Some(pending);
        for (number, command) in commands.into_iter().enumerate() {
            self.last += 1;
            let call = CallId(self.last);
            if number + 1 == count {
                self.pending
                    .insert(call, pending.take().unwrap_or(Pending::Nothing));
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
