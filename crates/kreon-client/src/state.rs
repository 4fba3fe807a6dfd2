//! Calls under way, links to servers, and what is to be done next: no I/O and no waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use kreon_fabric::{Bytes, Link, LinkName};
use kreon_wire::{
    Address as Place, FailureKind, Frame, GroupConfig, GroupId, Kind as PacketKind, Member,
    Reply as WireReply, Role, ServerId, State as WireState, Term,
};

use crate::call::{Attempt, CallId, Kind};
use crate::deed::{Asking, Deed, Parcel, call_of, number_of};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Action, Event, Outcome, Reply};
use crate::machine::Client;
use crate::map::Route;
use crate::moment::{Moment, Timing};
use crate::seats::Seats;
use crate::session::Found;
use crate::slot::Answer;

/// A call under way.
struct Call {
    asking: Asking,
    /// The link that it is bound to, and until when; others are the machine's.
    bound: Option<(LinkName, Moment)>,
    /// That keys do not lie where it was sent is an answer to whoever made it.
    takes_moved: bool,
    /// What the last server said that refused it.
    refused: Option<Error>,
}

impl Call {
    fn new(asking: Asking) -> Self {
        Self {
            asking,
            bound: None,
            takes_moved: false,
            refused: None,
        }
    }
}

/// All that the threads of a client share.
pub(crate) struct State {
    machine: Client,
    calls: HashMap<CallId, Call>,
    pub(crate) seats: Seats,
    /// Number of the last reading of the map.
    pub(crate) last_reading: u64,
    pub(crate) map_failed: Option<Error>,
    connect_failed: Option<Error>,
    pub(crate) violations: u64,
    is_over: bool,
}

impl State {
    pub(crate) fn new(timing: Timing) -> Self {
        Self {
            machine: Client::new(timing),
            calls: HashMap::new(),
            seats: Seats::default(),
            last_reading: 0,
            map_failed: None,
            connect_failed: None,
            violations: 0,
            is_over: false,
        }
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = &GroupConfig> {
        self.machine.groups()
    }

    /// Whether a term after this one has begun in a group, as far as is known.
    pub(crate) fn is_over_in(&self, group: GroupId, term: Term) -> bool {
        self.machine.is_over(group, term)
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// A call to whoever is the primary for a key.
    pub(crate) fn begin(
        &mut self,
        now: Moment,
        id: CallId,
        kind: Kind,
        (table, key): (&str, &[u8]),
        asking: Asking,
        out: &mut Vec<Deed>,
    ) {
        if self.is_over {
            return out.push(asking.closed());
        }
        self.calls.insert(id, Call::new(asking));
        let event = Event::Call {
            call: id,
            kind,
            table: table.to_owned(),
            key: key.to_vec(),
        };
        self.on(now, event, None, out);
    }

    /// A write of several keys: whoever made it wants to know if they do not lie together.
    pub(crate) fn begin_part(
        &mut self,
        now: Moment,
        id: CallId,
        place: (&str, &[u8]),
        asking: Asking,
        out: &mut Vec<Deed>,
    ) {
        self.begin(now, id, Kind::Write, place, asking, out);
        if let Some(call) = self.calls.get_mut(&id) {
            call.takes_moved = true;
        }
    }

    /// A call on this link and no other, until then.
    pub(crate) fn begin_bound(
        &mut self,
        id: CallId,
        name: LinkName,
        until: Moment,
        to: Place,
        asking: Asking,
        out: &mut Vec<Deed>,
    ) {
        let Some(link) = self.seats.link(name).filter(|_| !self.is_over) else {
            return out.push(asking.closed());
        };
        let parcel = Parcel {
            kind: asking.kind,
            to: Place {
                number: number_of(id, Attempt(1)),
                ..to
            },
            body: asking.body.clone(),
        };
        out.push(Deed::Send(name, link, parcel));
        let call = Call {
            bound: Some((name, until)),
            ..Call::new(asking)
        };
        self.calls.insert(id, call);
    }

    /// Time passed.
    pub(crate) fn tick(&mut self, now: Moment, out: &mut Vec<Deed>) {
        self.on(now, Event::Tick, None, out);
        let is_late = |call: &Call| call.bound.is_some_and(|(_, until)| until <= now);
        let late = self.calls.iter().filter(|(_, call)| is_late(call));
        let late: Vec<_> = late.map(|(id, _)| *id).collect();
        for id in late {
            let error = Error::new(ErrorKind::Unavailable, "no answer in time");
            self.end(id, Err(error), out);
        }
    }

    /// The map was read, or could not be.
    pub(crate) fn on_map(
        &mut self,
        now: Moment,
        (number, found): (u64, Result<Found>),
        out: &mut Vec<Deed>,
    ) {
        self.last_reading = number;
        match found {
            Ok(found) => {
                self.map_failed = None;
                self.seats.learn(&found.servers);
                self.on(now, Event::Map(found.groups), None, out);
                self.withdraw(now, out);
            }
            Err(error) => {
                self.map_failed = Some(error);
                self.on(now, Event::MapFailed, None, out);
            }
        }
    }

    /// What waits for room on a link, or for a link, to a primary that was replaced never left: it may go elsewhere.
    fn withdraw(&mut self, now: Moment, out: &mut Vec<Deed>) {
        let machine = &self.machine;
        let is_in_vain = |parcel: &Parcel, to: Member| {
            let (group, term) = (parcel.to.group, parcel.to.term);
            machine.has_replaced(&Route { group, term, to })
        };
        let withdrawn = self.seats.withdraw(is_in_vain);
        withdrawn
            .iter()
            .for_each(|parcel| self.not_sent(now, parcel, out));
    }

    /// A packet came in.
    pub(crate) fn on_packet(
        &mut self,
        now: Moment,
        name: LinkName,
        packet: Bytes,
        out: &mut Vec<Deed>,
    ) {
        if self.receive(now, name, packet, out).is_some() {
            return;
        }
        // It breaks a rule: what follows it cannot be trusted.
        self.violations += 1;
        if let Some(link) = self.seats.link(name) {
            out.push(Deed::Close(link, "the server sends what it must not"));
        }
    }

    fn receive(
        &mut self,
        now: Moment,
        link: LinkName,
        packet: Bytes,
        out: &mut Vec<Deed>,
    ) -> Option<()> {
        let frame = Frame::open(&packet, Role::Client).ok()?;
        WireState::Asking.check(frame.header().kind).ok()?;
        let (id, attempt) = call_of(frame.header().number);
        let Some(call) = self.calls.get_mut(&id) else {
            return Some(());
        };
        let mut reply = Reply::Ok;
        if frame.header().kind == PacketKind::Reply {
            let told = WireReply::decode(&frame).ok()?;
            if let WireReply::Failed(failure) = told {
                reply = match failure.kind {
                    FailureKind::Moved if !call.takes_moved => Reply::Moved(failure.term),
                    FailureKind::Unavailable | FailureKind::Busy => Reply::Unavailable,
                    FailureKind::Unknown => Reply::Unknown,
                    _ => Reply::Ok,
                };
                call.refused = Some(Error::from(&failure));
            }
        }
        let answer = Answer::of(&packet, link);
        match call.bound {
            Some((bound, _)) if bound == link => self.end(id, Ok(answer), out),
            Some(_) => {}
            None => {
                let event = Event::Replied {
                    call: id,
                    attempt,
                    reply,
                };
                self.on(now, event, Some(answer), out);
            }
        }
        Some(())
    }

    /// Tells the machine, and does what it says; `answer` is what a call ends with that ends well.
    fn on(&mut self, now: Moment, event: Event, answer: Option<Answer>, out: &mut Vec<Deed>) {
        let mut events = VecDeque::from([event]);
        let mut actions = Vec::new();
        while let Some(event) = events.pop_front() {
            self.machine.on(now, event, &mut actions);
            for action in actions.drain(..) {
                match action {
                    Action::ReadMap { synced } => out.push(Deed::ReadMap { synced }),
                    Action::Send {
                        call,
                        attempt,
                        group,
                        term,
                        to,
                    } => {
                        let place = Place {
                            group,
                            term,
                            number: number_of(call, attempt),
                        };
                        if !self.send(call, place, to, out) {
                            events.push_back(Event::NotSent { call, attempt });
                        }
                    }
                    Action::Done { call, outcome } => {
                        let ended = self.outcome(call, outcome, answer.clone());
                        self.end(call, ended, out);
                    }
                }
            }
        }
    }

    fn outcome(&self, call: CallId, outcome: Outcome, answer: Option<Answer>) -> Result<Answer> {
        let refused = self.calls.get(&call).and_then(|call| call.refused.as_ref());
        let why = [
            refused,
            self.connect_failed.as_ref(),
            self.map_failed.as_ref(),
        ];
        let why = why.into_iter().flatten().next().map(Error::to_string);
        match (outcome, answer) {
            (Outcome::Ok, Some(answer)) => Ok(answer),
            (Outcome::Ok, None) => Err(Error::strange()),
            (Outcome::Unavailable, _) => {
                let why = why.unwrap_or_else(|| "nobody serves the key".to_owned());
                let text = format!("not carried out in time; last: {why}");
                Err(Error::new(ErrorKind::Unavailable, text))
            }
            (Outcome::Unknown, answer) => {
                let lost = "the primary or the link to it was lost before it answered";
                // Its own words, if the primary said so.
                let told = answer.and(refused).map(Error::text);
                Err(Error::new(ErrorKind::Unknown, told.unwrap_or(lost)))
            }
        }
    }

    fn end(&mut self, call: CallId, answer: Result<Answer>, out: &mut Vec<Deed>) {
        if let Some(call) = self.calls.remove(&call) {
            out.push(Deed::Fill(call.asking.slot, answer, call.asking.bytes));
        }
    }

    /// Whether a call is sent, or will be as soon as there is a link.
    fn send(&mut self, call: CallId, to: Place, member: Member, out: &mut Vec<Deed>) -> bool {
        let Some(call) = self.calls.get(&call) else {
            return false;
        };
        let parcel = Parcel {
            kind: call.asking.kind,
            to,
            body: call.asking.body.clone(),
        };
        match self.seats.carry(member, parcel) {
            Some(deed) => out.extend(deed),
            None => return false,
        }
        true
    }

    /// A packet never left.
    pub(crate) fn not_sent(&mut self, now: Moment, parcel: &Parcel, out: &mut Vec<Deed>) {
        let (call, attempt) = parcel.id();
        match self.calls.get(&call).map(|call| call.bound.is_some()) {
            Some(true) => {
                let error = Error::new(ErrorKind::Closed, "the link has ended");
                self.end(call, Err(error), out);
            }
            Some(false) => self.on(now, Event::NotSent { call, attempt }, None, out),
            None => {}
        }
    }

    /// There is room on a link, or may be.
    pub(crate) fn flush(
        &mut self,
        now: Moment,
        name: LinkName,
        send: impl Fn(&dyn Link, &Parcel) -> kreon_base::Result<()>,
        out: &mut Vec<Deed>,
    ) {
        let calls = &self.calls;
        let is_wanted = |parcel: &Parcel| calls.contains_key(&parcel.id().0);
        let lost = self.seats.flush(name, is_wanted, send);
        lost.iter()
            .for_each(|parcel| self.not_sent(now, parcel, out));
    }

    /// There is a link to a server, or there is none.
    pub(crate) fn on_connected(
        &mut self,
        now: Moment,
        server: ServerId,
        link: kreon_base::Result<Arc<dyn Link>>,
        send: impl Fn(&dyn Link, &Parcel) -> kreon_base::Result<()>,
        out: &mut Vec<Deed>,
    ) {
        let waiting = self.seats.take_waiting(server);
        let link = match link {
            Ok(link) if !self.is_over && self.seats.link_to(server).is_none() => link,
            Ok(_) => return, // nobody needs it
            Err(error) => {
                let error = error.within(format!("server {}", server.0));
                self.connect_failed = Some(error.into());
                waiting
                    .iter()
                    .for_each(|(parcel, _)| self.not_sent(now, parcel, out));
                return;
            }
        };
        self.connect_failed = None;
        let process = link.peer().member.process;
        let (meant, other): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|(_, wanted)| *wanted == process);
        let backlog = meant.into_iter().map(|(parcel, _)| parcel).collect();
        let name = self.seats.seat(server, link.clone(), backlog);
        out.push(Deed::Listen(name, link));
        other
            .iter()
            .for_each(|(parcel, _)| self.not_sent(now, parcel, out));
        // What comes later goes behind what waited.
        self.flush(now, name, send, out);
    }

    /// Whether who asks is to connect to the server: then nobody else does meanwhile.
    pub(crate) fn is_to_connect(&mut self, server: ServerId) -> bool {
        !self.is_over && self.seats.is_to_connect(server)
    }

    /// A link has ended.
    pub(crate) fn on_closed(&mut self, now: Moment, name: LinkName, out: &mut Vec<Deed>) {
        let Some((member, backlog)) = self.seats.unseat(name) else {
            return;
        };
        let is_bound = |call: &Call| call.bound.is_some_and(|(bound, _)| bound == name);
        let bound = self.calls.iter().filter(|(_, call)| is_bound(call));
        let bound: Vec<_> = bound.map(|(id, _)| *id).collect();
        for id in bound {
            let error = Error::new(ErrorKind::Closed, "the link to the server has ended");
            self.end(id, Err(error), out);
        }
        backlog
            .iter()
            .for_each(|parcel| self.not_sent(now, parcel, out));
        self.on(now, Event::Closed(member), None, out);
    }

    /// The end of all calls and links.
    pub(crate) fn close(&mut self, out: &mut Vec<Deed>) {
        self.is_over = true;
        let calls = self.calls.drain().map(|(_, call)| call.asking.closed());
        out.extend(calls);
        let links = self.seats.take_links().into_iter();
        out.extend(links.map(|link| Deed::Close(link, "the client was closed")));
    }
}
