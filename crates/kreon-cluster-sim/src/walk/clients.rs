//! Clients: each has the machine of a client, a map that may be old, and several calls under way.

use kreon_client::{Action, Attempt, CallId, Client, Event, Kind, Moment, Outcome, Reply, Timing};
use kreon_coord::fake::{Fate, SessionId};
use kreon_coord::{Command, Reply as Found};
use kreon_replica::machine::{Member, Term};
use kreon_wire::{GroupConfig, KeyRange};

use super::event::Happening;
use super::faults::Focus;
use super::history::{KEYS, What};
use super::judge::Broken;
use super::run::Walk;
use crate::explore::GROUP;
use crate::toy::{Place, Write, place};

/// Most writes of one walk.
const WRITES_MAX: usize = 4000;

/// Clients of a walk.
const CLIENTS: usize = 3;

/// Calls that a client has under way at most.
const CALLS_MAX: usize = 4;

/// The table that all keys are in.
const TABLE: &str = "t";

/// The group has all of the table.
pub(super) fn ranges() -> Vec<u8> {
    KeyRange::encode_all(&[KeyRange {
        table: TABLE.to_owned(),
        start: Vec::new(),
        end: None,
    }])
}

/// A client.
pub(super) struct Caller {
    machine: Client,
    session: SessionId,
    calls: u64,
}

/// A request on its way to a server, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) client: usize,
    pub(super) call: CallId,
    pub(super) attempt: Attempt,
    pub(super) term: Term,
    pub(super) to: Member,
    pub(super) key: usize,
    /// What is written; none: it reads.
    pub(super) write: Option<Write>,
}

impl Request {
    /// The number of the call among all of the walk.
    fn number(&self) -> u64 {
        number(self.client, self.call)
    }
}

fn number(client: usize, call: CallId) -> u64 {
    call.0 * CLIENTS as u64 + client as u64
}

impl Walk {
    pub(super) fn begin_clients(&mut self) {
        for _ in 0..CLIENTS {
            let session = self.fake.begin();
            self.callers.push(Caller {
                machine: Client::new(Timing::default()),
                session,
                calls: 0,
            });
        }
    }

    /// A client makes a call; the time of all of them passes.
    pub(super) fn client(&mut self) {
        let us = 1000 + self.dice.below(8000);
        self.after(us, Happening::Client);
        let client = self.dice.below(CLIENTS as u64) as usize;
        self.for_client(client, Event::Tick);
        if self.callers[client].machine.calls() < CALLS_MAX {
            self.call(client);
        }
        // Power fails most often while something is under way.
        let often = !matches!(self.focus, Focus::Zombies | Focus::CutOff);
        if often && self.dice.below(300) == 0 {
            let at = self.dice.below(self.nodes.len() as u64) as Place;
            let us = self.dice.below(700 + self.way_us);
            self.after(us, Happening::Fails(at));
        }
    }

    fn call(&mut self, client: usize) {
        let key = self.dice.below(KEYS as u64) as usize;
        let writes = self.dice.below(2) == 0 && self.judge.writes() < WRITES_MAX;
        let caller = &mut self.callers[client];
        caller.calls += 1;
        let call = CallId(caller.calls);
        let (kind, what) = match writes {
            true => {
                let write = self.judge.write(key, self.now_us);
                (Kind::Write, What::Write(write))
            }
            false => (Kind::Read, What::Read(None)),
        };
        self.history
            .begin(number(client, call), key, what, self.now_us);
        let event = Event::Call {
            call,
            kind,
            table: TABLE.to_owned(),
            key: vec![key as u8],
        };
        self.for_client(client, event);
    }

    fn for_client(&mut self, client: usize, event: Event) {
        let mut actions = Vec::new();
        let now = Moment(self.now_us);
        self.callers[client].machine.on(now, event, &mut actions);
        for action in actions {
            match action {
                Action::ReadMap { synced } => {
                    let us = 200 + self.dice.below(3000);
                    self.after(us, Happening::MapAsked(client, synced));
                }
                Action::Send {
                    call,
                    attempt,
                    term,
                    to,
                    ..
                } => self.send_request(client, call, attempt, term, to),
                Action::Done { call, outcome } => self.on_done(client, call, outcome),
            }
        }
    }

    /// The coordinator reads the map; the answer takes its time.
    pub(super) fn on_map_asked(&mut self, client: usize, synced: bool) {
        let us = 200 + self.dice.below(3000);
        let fate = match self.coordinator_down || self.dice.below(20) == 0 {
            true => Fate::CommandLost,
            false => Fate::Answered,
        };
        if !self.fake.is_alive(self.callers[client].session) {
            self.callers[client].session = self.fake.begin();
        }
        let session = self.callers[client].session;
        if synced {
            self.fake.carry_out(session, &Command::Sync, fate);
        }
        let path = self.paths.group(GROUP.0);
        let get = Command::Get { path, watch: false };
        let event = match self.fake.carry_out(session, &get, fate) {
            Found::Node(node) => GroupConfig::decode(&node.data)
                .map_or(Event::MapFailed, |config| {
                    Event::Map(vec![(node.version, config)])
                }),
            _ => Event::MapFailed,
        };
        self.count("map read by a client");
        self.after(us, Happening::Told(client, event));
    }

    pub(super) fn on_told(&mut self, client: usize, event: Event) {
        self.for_client(client, event);
    }

    fn send_request(
        &mut self,
        client: usize,
        call: CallId,
        attempt: Attempt,
        term: Term,
        to: Member,
    ) {
        let Some(seen) = self.history.call(number(client, call)) else {
            return;
        };
        let write = match seen.what {
            What::Write(write) => Some(write),
            What::Read(_) => None,
        };
        let request = Request {
            client,
            call,
            attempt,
            term,
            to,
            key: seen.key,
            write,
        };
        let us = 30 + self.dice.below(self.way_us);
        self.after(us, Happening::Requested(place(to), request));
    }

    /// A server answers.
    pub(super) fn reply(&mut self, request: Request, reply: Reply, found: Option<Write>) {
        self.count(match reply {
            Reply::Ok => "answer: ok",
            Reply::Moved(_) => "answer: moved",
            Reply::Unavailable => "answer: unavailable",
            Reply::Unknown => "answer: unknown",
        });
        let us = 30 + self.dice.below(self.way_us);
        if self.dice.below(100) == 0 {
            self.count("answer to a client lost");
            let closed = Event::Closed(request.to);
            return self.after(us, Happening::Told(request.client, closed));
        }
        self.after(us, Happening::Replied(request, reply, found));
    }

    pub(super) fn not_sent(&mut self, request: Request) {
        let event = Event::NotSent {
            call: request.call,
            attempt: request.attempt,
        };
        let us = 30 + self.dice.below(self.way_us);
        self.after(us, Happening::Told(request.client, event));
    }

    pub(super) fn on_replied(&mut self, request: Request, reply: Reply, found: Option<Write>) {
        // If the client still waits for this, this is what it finds.
        self.found = Some((request.number(), found));
        let event = Event::Replied {
            call: request.call,
            attempt: request.attempt,
            reply,
        };
        self.for_client(request.client, event);
        self.found = None;
    }

    fn on_done(&mut self, client: usize, call: CallId, outcome: Outcome) {
        let number = number(client, call);
        match outcome {
            Outcome::Ok => {
                self.count("call ended: ok");
                let found = self.found.filter(|(of, _)| *of == number);
                self.history
                    .end(number, found.and_then(|f| f.1), self.now_us);
            }
            Outcome::Unavailable => {
                self.count("call ended: unavailable");
                self.history.drop(number);
            }
            Outcome::Unknown => {
                self.count("call ended: unknown");
                self.history.doubt(number);
            }
        }
    }

    /// What clients saw up to now has an explanation, or not.
    pub(super) fn explain(&mut self, wrong: Option<usize>) {
        if let Some(key) = wrong {
            self.break_with(Broken::Unexplained(key));
        }
    }
}
