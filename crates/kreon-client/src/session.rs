//! The session with the coordinator: reads the map when it is asked to or when something changed, and carries questions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kreon_coord::{CallId, Command, Coordinator, Event, Paths, Reply, Version};
use kreon_wire::{GroupConfig, ServerNode};
use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind, Result};

/// Begins a session with the coordinator.
pub type Opener = Box<dyn Fn() -> kreon_base::Result<Arc<dyn Coordinator>> + Send + Sync>;

/// What a reading of the map found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) groups: Vec<(Version, GroupConfig)>,
    pub(crate) servers: Vec<ServerNode>,
}

/// Who is told of what was read; an error if that failed.
pub(crate) trait Reader: Send + Sync {
    fn read(&self, number: u64, found: Result<Found>);
}

/// What a command was sent for.
enum Asked {
    Sync,
    Groups,
    Servers,
    Group,
    Server,
    Question(Arc<Question>),
}

/// A question of a caller who waits.
#[derive(Default)]
struct Question {
    reply: Mutex<Option<Reply>>,
    replied: Condvar,
}

/// A reading that is under way.
#[derive(Default)]
struct Reading {
    left: usize,
    groups: Vec<(Version, GroupConfig)>,
    servers: Vec<ServerNode>,
    failed: Option<Error>,
}

#[derive(Default)]
struct State {
    coordinator: Option<Arc<dyn Coordinator>>,
    asked: HashMap<u64, Asked>,
    last: u64,
    /// Readings that were begun: the number of the last one.
    begun: u64,
    reading: Option<Reading>,
    /// To be read when there is a session, or when the reading that is under way ends; synced if it says so.
    wanted: Option<bool>,
}

/// The session, which its thread renews.
pub(crate) struct Session {
    paths: Paths,
    open: Opener,
    state: Mutex<State>,
    is_over: AtomicBool,
    ended: Condvar,
}

/// How long a poll waits, and how long the next attempt to begin a session.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long a question waits.
const QUESTION: Duration = Duration::from_secs(10);

impl Session {
    pub(crate) fn new(paths: Paths, open: Opener) -> Result<Self> {
        let first =
            open().map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))?;
        let state = State {
            coordinator: Some(first),
            ..State::default()
        };
        Ok(Self {
            paths,
            open,
            state: Mutex::new(state),
            is_over: AtomicBool::new(false),
            ended: Condvar::new(),
        })
    }

    pub(crate) const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Ends [`run`](Self::run) soon.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.ended.notify_all();
    }

    /// Has the map read anew; the number of the reading that does it, or of a later one that must.
    pub(crate) fn read_map(&self, synced: bool) -> u64 {
        let mut state = self.state.lock();
        if state.reading.is_some() || state.coordinator.is_none() {
            let wanted = state.wanted.unwrap_or(false);
            state.wanted = Some(wanted || synced);
            return state.begun + 1;
        }
        self.begin(&mut state, synced);
        state.begun
    }

    fn begin(&self, state: &mut State, synced: bool) {
        state.reading = Some(Reading::default());
        state.begun += 1;
        if synced {
            Self::send(state, Asked::Sync, Command::Sync);
        }
        let children = |path| Command::Children { path, watch: true };
        Self::send(state, Asked::Groups, children(self.paths.groups()));
        Self::send(state, Asked::Servers, children(self.paths.servers()));
        if state
            .reading
            .as_ref()
            .is_some_and(|reading| reading.left == 0)
        {
            // The coordinator took nothing: later.
            state.reading = None;
            state.wanted = Some(synced);
        }
    }

    /// Sends a command of the reading that is under way, or a question.
    fn send(state: &mut State, asked: Asked, command: Command) {
        state.last += 1;
        let call = CallId(state.last);
        let sent = match &state.coordinator {
            Some(coordinator) => coordinator.send(call, command),
            None => Err(kreon_base::Error::new(
                kreon_base::ErrorKind::Closed,
                "no session",
            )),
        };
        let is_question = matches!(asked, Asked::Question(_));
        let reading = state.reading.as_mut().filter(|_| !is_question);
        match (sent, reading) {
            (Ok(()), reading) => {
                if let Some(reading) = reading {
                    reading.left += 1;
                }
                state.asked.insert(call.0, asked);
            }
            (Err(error), Some(reading)) => reading.failed = Some(error.into()),
            (Err(_), None) => {
                if let Asked::Question(question) = asked {
                    question.answer(Reply::Unknown);
                }
            }
        }
    }

    /// Asks the coordinator, and waits for the answer.
    pub(crate) fn ask(&self, command: Command) -> Reply {
        let question = Arc::new(Question::default());
        Self::send(
            &mut self.state.lock(),
            Asked::Question(question.clone()),
            command,
        );
        let mut reply = question.reply.lock();
        if reply.is_none() {
            question.replied.wait_for(&mut reply, QUESTION);
        }
        reply.take().unwrap_or(Reply::Unknown)
    }

    /// Serves the session until it is ended: for a thread of its own.
    pub(crate) fn run(&self, reader: &dyn Reader) {
        let mut events = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let coordinator = self.state.lock().coordinator.clone();
            let Some(coordinator) = coordinator else {
                self.renew();
                continue;
            };
            let polled = coordinator.poll(&mut events, PATIENCE);
            for event in events.drain(..) {
                if let Some(found) = self.on(event) {
                    reader.read(found.0, found.1);
                }
            }
            self.read_what_is_wanted();
            if polled.is_err()
                && let Some(found) = self.lose()
            {
                reader.read(found.0, found.1);
            }
        }
    }

    fn read_what_is_wanted(&self) {
        let mut state = self.state.lock();
        if state.reading.is_none()
            && state.coordinator.is_some()
            && let Some(synced) = state.wanted.take()
        {
            self.begin(&mut state, synced);
        }
    }

    fn on(&self, event: Event) -> Option<(u64, Result<Found>)> {
        match event {
            Event::Replied(call, reply) => self.on_reply(call.0, reply),
            Event::Changed(_) => {
                // Whoever waits at a primary that was replaced waits for this: it is not to come from a server that lags.
                let _ = self.read_map(true);
                None
            }
            Event::Expired => self.lose(),
        }
    }

    /// There is no session any more.
    fn lose(&self) -> Option<(u64, Result<Found>)> {
        let mut state = self.state.lock();
        state.coordinator = None;
        for (_, asked) in state.asked.drain() {
            if let Asked::Question(question) = asked {
                question.answer(Reply::Unknown);
            }
        }
        // Whatever changed since is read in the next session.
        state.wanted = Some(true);
        let reading = state.reading.take();
        let text = "the session with the coordinator ended";
        reading.map(|_| (state.begun, Err(Error::new(ErrorKind::Unavailable, text))))
    }

    fn renew(&self) {
        match (self.open)() {
            Ok(coordinator) => self.state.lock().coordinator = Some(coordinator),
            Err(_) => {
                let mut state = self.state.lock();
                if !self.is_over.load(Ordering::Relaxed) {
                    self.ended.wait_for(&mut state, PATIENCE);
                }
            }
        }
    }

    fn on_reply(&self, call: u64, reply: Reply) -> Option<(u64, Result<Found>)> {
        let mut state = self.state.lock();
        match state.asked.remove(&call)? {
            Asked::Question(question) => {
                question.answer(reply);
                return None;
            }
            asked => self.take(&mut state, &asked, reply),
        }
        let reading = state.reading.as_mut()?;
        reading.left = reading.left.saturating_sub(1);
        if reading.left > 0 {
            return None;
        }
        let reading = state.reading.take()?;
        let found = match reading.failed {
            Some(error) => Err(error),
            None => Ok(Found {
                groups: reading.groups,
                servers: reading.servers,
            }),
        };
        Some((state.begun, found))
    }

    /// Takes what a command of the reading brought.
    fn take(&self, state: &mut State, asked: &Asked, reply: Reply) {
        match (asked, reply) {
            (Asked::Sync, Reply::Synced) | (Asked::Group | Asked::Server, Reply::Missing) => {}
            (Asked::Groups | Asked::Servers, Reply::Children(names)) => {
                let numbers = names.iter().filter_map(|name| name.parse::<u32>().ok());
                for number in numbers {
                    let (asked, path) = match asked {
                        Asked::Groups => (Asked::Group, self.paths.group(number)),
                        _ => (Asked::Server, self.paths.server(number)),
                    };
                    Self::send(state, asked, Command::Get { path, watch: true });
                }
            }
            (asked, Reply::Node(node)) => {
                let Some(reading) = &mut state.reading else {
                    return;
                };
                let decoded = match asked {
                    Asked::Group => GroupConfig::decode(&node.data)
                        .map(|config| reading.groups.push((node.version, config))),
                    _ => ServerNode::decode(&node.data).map(|server| reading.servers.push(server)),
                };
                if let Err(violation) = decoded {
                    reading.failed = Some(Error::corrupt(violation));
                }
            }
            (_, reply) => {
                if let Some(reading) = &mut state.reading {
                    let text = format!("the coordinator answers {reply:?}");
                    reading.failed = Some(Error::new(ErrorKind::Unavailable, text));
                }
            }
        }
    }
}

impl Question {
    fn answer(&self, reply: Reply) {
        *self.reply.lock() = Some(reply);
        self.replied.notify_all();
    }
}
