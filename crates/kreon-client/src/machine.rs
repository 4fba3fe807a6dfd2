//! The machine: calls, the map, and what answers mean.

use std::collections::BTreeMap;

use kreon_wire::{GroupConfig, GroupId, Member, Term};

use crate::call::{Attempt, Call, CallId, Kind, Stage};
use crate::event::{Action, Event, Outcome, Reply};
use crate::map::{Map, Route};
use crate::moment::{Moment, Timing};

/// Rests grow so often.
const DOUBLINGS_MAX: u32 = 5;

/// A primary whose successor is known gets this part of the patience for its last words: at a planned promotion it answers
/// what it has before it leaves, and the map may be faster than its answers.
const LAST_WORD_PART: u64 = 4;

/// The machine of a client.
///
/// # A primary that is replaced
/// A call was sent to a primary that is frozen, dead or cut off, and the map names another one in a later term. A read is
/// sent there at once. A write is not, as nobody can say whether it was appended: requests have no number that a group
/// remembers, so the new primary cannot be asked, and a second one could land above a later write of somebody else. It ends
/// as [`Outcome::Unknown`] a quarter of the patience later: what the old primary could have acknowledged it has by then, as
/// the members refuse it since the seal. A write that was never put on a link goes to the new primary.
#[derive(Clone, Debug)]
pub struct Client {
    timing: Timing,
    map: Map,
    /// The map is being read.
    reads_map: bool,
    calls: BTreeMap<CallId, Call>,
}

impl Client {
    /// A client that knows nothing yet.
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            map: Map::default(),
            reads_map: false,
            calls: BTreeMap::new(),
        }
    }

    /// The configurations that are known, any of which may be old.
    pub fn groups(&self) -> impl Iterator<Item = &GroupConfig> {
        self.map.groups()
    }

    /// Whether this was sent to a primary that has been replaced since, as far as is known.
    pub(crate) fn has_replaced(&self, route: &Route) -> bool {
        self.map.has_replaced(route)
    }

    /// Whether a term after this one has begun in a group, as far as is known.
    pub(crate) fn is_over(&self, group: GroupId, term: Term) -> bool {
        self.map.is_over(group, term)
    }

    /// How many calls have not ended.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Takes note of `event` at `now`; what is to be done is appended to `out`.
    pub fn on(&mut self, now: Moment, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Call {
                call,
                kind,
                table,
                key,
            } => {
                let begun = Call {
                    kind,
                    table,
                    key,
                    begun: now,
                    attempt: Attempt::default(),
                    stage: Stage::Routing,
                };
                self.calls.insert(call, begun);
                if !self.send(now, call, out) {
                    self.read_map(false, out);
                }
            }
            Event::Map(groups) => self.on_map(now, groups, out),
            Event::MapFailed => self.reads_map = false,
            Event::Replied {
                call,
                attempt,
                reply,
            } => self.on_reply(now, call, attempt, reply, out),
            Event::NotSent { call, attempt } => self.refused(now, call, attempt, out),
            Event::Closed(member) => self.on_closed(now, member, out),
            Event::Tick => self.on_tick(now, out),
        }
    }

    fn on_map(
        &mut self,
        now: Moment,
        groups: Vec<(kreon_coord::Version, kreon_wire::GroupConfig)>,
        out: &mut Vec<Action>,
    ) {
        self.reads_map = false;
        for (version, config) in groups {
            self.map.learn(version, config);
        }
        self.replace(now);
        for call in self.at(|call| call.stage == Stage::Routing) {
            if !self.send(now, call, out) {
                self.rest(now, call); // nobody is in office
            }
        }
    }

    /// Calls whose primary is not the one that the map names, in a later term: a read goes there; a write may have been
    /// appended, and only whoever got it can still say more.
    fn replace(&mut self, now: Moment) {
        for call in self.calls.values_mut() {
            let Stage::Sent {
                route, replaced, ..
            } = &mut call.stage
            else {
                continue;
            };
            match (self.map.has_replaced(route), call.kind) {
                (false, _) => {}
                (true, Kind::Read) => call.stage = Stage::Routing,
                (true, Kind::Write) => drop(replaced.get_or_insert(now)),
            }
        }
    }

    /// Sends a call to where the map says; whether it does.
    fn send(&mut self, now: Moment, id: CallId, out: &mut Vec<Action>) -> bool {
        let Some(call) = self.calls.get_mut(&id) else {
            return true;
        };
        let Some(route) = self.map.route(&call.table, &call.key) else {
            return false;
        };
        call.attempt.0 += 1;
        call.stage = Stage::Sent {
            route,
            at: now,
            replaced: None,
        };
        out.push(Action::Send {
            call: id,
            attempt: call.attempt,
            group: route.group,
            term: route.term,
            to: route.to,
        });
        true
    }

    fn on_reply(
        &mut self,
        now: Moment,
        id: CallId,
        attempt: Attempt,
        reply: Reply,
        out: &mut Vec<Action>,
    ) {
        let Some(call) = self.awaits(id, attempt) else {
            return;
        };
        match reply {
            Reply::Ok => self.end(id, Outcome::Ok, out),
            Reply::Unknown if call.kind == Kind::Write => self.end(id, Outcome::Unknown, out),
            Reply::Moved(_) | Reply::Unavailable | Reply::Unknown => {
                self.refused(now, id, attempt, out);
            }
        }
    }

    /// The call, if it waits for an answer to this attempt.
    fn awaits(&self, id: CallId, attempt: Attempt) -> Option<&Call> {
        let call = self.calls.get(&id)?;
        let sent = matches!(call.stage, Stage::Sent { .. });
        (sent && call.attempt == attempt).then_some(call)
    }

    /// An attempt was not carried out and never will be: the map is read anew, at once or, if that was of no use, later.
    fn refused(&mut self, now: Moment, id: CallId, attempt: Attempt, out: &mut Vec<Action>) {
        if self.awaits(id, attempt).is_none() {
            return;
        }
        if attempt > Attempt(1) {
            return self.rest(now, id);
        }
        if let Some(call) = self.calls.get_mut(&id) {
            call.stage = Stage::Routing;
        }
        self.read_map(true, out);
    }

    fn rest(&mut self, now: Moment, id: CallId) {
        let rest_us = self.timing.rest_us;
        if let Some(call) = self.calls.get_mut(&id) {
            let doublings = call.attempt.0.min(DOUBLINGS_MAX);
            let until = Moment(now.0.saturating_add(rest_us << doublings));
            call.stage = Stage::Resting { until };
        }
    }

    fn on_closed(&mut self, now: Moment, member: Member, out: &mut Vec<Action>) {
        let was_sent =
            |call: &Call| matches!(call.stage, Stage::Sent { route, .. } if route.to == member);
        for id in self.at(was_sent) {
            self.lose(now, id, out);
        }
    }

    /// No answer will come.
    fn lose(&mut self, now: Moment, id: CallId, out: &mut Vec<Action>) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        match call.may_be_done() {
            true => self.end(id, Outcome::Unknown, out),
            false => self.refused(now, id, call.attempt, out),
        }
    }

    fn on_tick(&mut self, now: Moment, out: &mut Vec<Action>) {
        let (limit_us, patience_us) = (self.timing.limit_us, self.timing.patience_us);
        for id in self.at(|call| now.0.saturating_sub(call.begun.0) >= limit_us) {
            let may_be_done = self.calls.get(&id).is_some_and(Call::may_be_done);
            let outcome = match may_be_done {
                true => Outcome::Unknown,
                false => Outcome::Unavailable,
            };
            self.end(id, outcome, out);
        }
        let last_word_us = patience_us / LAST_WORD_PART;
        let is_given_up = |call: &Call| {
            let late = |since: Moment| now.0.saturating_sub(since.0) >= last_word_us;
            matches!(call.stage, Stage::Sent { replaced: Some(since), .. } if late(since))
        };
        for id in self.at(is_given_up) {
            self.lose(now, id, out);
        }
        let unanswered = |call: &Call| {
            let sent = |at: Moment| now.0.saturating_sub(at.0) >= patience_us;
            call.kind == Kind::Read && matches!(call.stage, Stage::Sent { at, .. } if sent(at))
        };
        for id in self.at(unanswered) {
            self.lose(now, id, out);
        }
        for id in self.at(|call| matches!(call.stage, Stage::Resting { until } if until <= now)) {
            if let Some(call) = self.calls.get_mut(&id) {
                call.stage = Stage::Routing;
            }
        }
        if self.calls.values().any(|call| call.stage == Stage::Routing) {
            self.read_map(true, out);
        }
    }

    fn at(&self, holds: impl Fn(&Call) -> bool) -> Vec<CallId> {
        let calls = self.calls.iter().filter(|(_, call)| holds(call));
        calls.map(|(id, _)| *id).collect()
    }

    fn end(&mut self, call: CallId, outcome: Outcome, out: &mut Vec<Action>) {
        self.calls.remove(&call);
        out.push(Action::Done { call, outcome });
    }

    fn read_map(&mut self, synced: bool, out: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.reads_map, true) {
            out.push(Action::ReadMap { synced });
        }
    }
}
