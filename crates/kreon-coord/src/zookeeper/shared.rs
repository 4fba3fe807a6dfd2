//! What the thread of a session and its callers share: calls without an answer, and what was not polled.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};

use crate::command::Reply;
use crate::coordinator::{CALLS_MAX, CallId, Event};

/// Number of a call in the order of sending; unlike a [`CallId`] it is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Serial(u64);

pub struct Shared {
    state: Mutex<State>,
    happened: Condvar,
    /// Milliseconds, as granted: for the session, and for each call.
    session_ms: u32,
}

#[derive(Default)]
struct State {
    sent: u64,
    /// Calls without an answer, and when each is given up.
    calls: BTreeMap<Serial, (CallId, Instant)>,
    events: Vec<Event>,
    end: End,
}

#[derive(Default)]
enum End {
    #[default]
    Not,
    /// The session is over; that is the last of the events.
    Over,
    Told,
    /// Nobody cares for the session any more, whatever became of it.
    Failed,
}

impl State {
    fn give_up(&mut self, is_due: impl Fn(Instant) -> bool) {
        while let Some(first) = self.calls.first_entry()
            && is_due(first.get().1)
        {
            let (call, _) = first.remove();
            self.events.push(Event::Replied(call, Reply::Unknown));
        }
    }

    fn error(&self) -> Option<Error> {
        match self.end {
            End::Not => None,
            End::Over | End::Told => Some(Error::new(ErrorKind::Closed, "the session has ended")),
            End::Failed => Some(Error::new(
                ErrorKind::Io,
                "the thread of the session has ended",
            )),
        }
    }
}

impl Shared {
    pub fn new(session_ms: u32) -> Self {
        Self {
            state: Mutex::default(),
            happened: Condvar::new(),
            session_ms,
        }
    }

    pub fn session_ms(&self) -> u32 {
        self.session_ms
    }

    /// Counts a call; `hand_over` sends it, in the order of the numbers.
    pub fn begin(&self, call: CallId, hand_over: impl FnOnce(Serial)) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(error) = state.error() {
            return Err(error);
        }
        if state.calls.len() + state.events.len() >= CALLS_MAX {
            let message = format!("{CALLS_MAX} calls are not answered or not polled");
            return Err(Error::new(ErrorKind::Busy, message));
        }
        state.sent += 1;
        let serial = Serial(state.sent);
        let limit = Duration::from_millis(self.session_ms.into());
        state.calls.insert(serial, (call, Instant::now() + limit));
        hand_over(serial);
        Ok(())
    }

    /// Whether a call was not given up.
    pub fn is_awaited(&self, serial: Serial) -> bool {
        self.state.lock().calls.contains_key(&serial)
    }

    /// Answers a call, unless it was given up.
    pub fn reply(&self, serial: Serial, reply: Reply) {
        let mut state = self.state.lock();
        if let Some((call, _)) = state.calls.remove(&serial) {
            state.events.push(Event::Replied(call, reply));
            self.happened.notify_all();
        }
    }

    /// Tells of a change.
    pub fn changed(&self, path: String) {
        let mut state = self.state.lock();
        if matches!(state.end, End::Not) {
            state.events.push(Event::Changed(path));
            self.happened.notify_all();
        }
    }

    /// The coordinator says that the session is over.
    pub fn expire(&self) {
        let mut state = self.state.lock();
        if matches!(state.end, End::Not) {
            state.give_up(|_| true);
            state.events.push(Event::Expired);
            state.end = End::Over;
            self.happened.notify_all();
        }
    }

    /// Nobody cares for the session any more.
    pub fn fail(&self) {
        let mut state = self.state.lock();
        if matches!(state.end, End::Not) {
            state.give_up(|_| true);
            state.end = End::Failed;
            self.happened.notify_all();
        }
    }

    /// Appends what happened; waits for at most `patience` if nothing did.
    pub fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            state.give_up(|limit| limit <= now);
            if !state.events.is_empty() {
                out.append(&mut state.events);
                if matches!(state.end, End::Over) {
                    state.end = End::Told;
                }
                return Ok(());
            }
            if let Some(error) = state.error() {
                return Err(error);
            }
            if now >= until {
                return Ok(());
            }
            let limit = state.calls.first_key_value().map(|(_, (_, limit))| *limit);
            let until = limit.map_or(until, |limit| limit.min(until));
            self.happened.wait_until(&mut state, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(shared: &Shared) -> Vec<Event> {
        let mut events = Vec::new();
        shared.poll(&mut events, Duration::ZERO).unwrap();
        events
    }

    #[test]
    fn a_call_is_answered_once_and_unknown_when_its_time_is_over() {
        let shared = Shared::new(0);
        let mut serials = Vec::new();
        for call in [CallId(7), CallId(7)] {
            shared.begin(call, |serial| serials.push(serial)).unwrap();
        }
        shared.reply(serials[1], Reply::Synced);
        let unknown = Event::Replied(CallId(7), Reply::Unknown);
        let synced = Event::Replied(CallId(7), Reply::Synced);
        assert_eq!(poll(&shared), vec![synced, unknown]);
        assert!(!shared.is_awaited(serials[0]));
        shared.reply(serials[0], Reply::Synced);
        assert_eq!(poll(&shared), vec![]);
    }

    #[test]
    fn the_end_of_the_session_comes_after_all_answers_and_once() {
        let shared = Shared::new(60_000);
        shared.begin(CallId(1), |_| ()).unwrap();
        shared.expire();
        shared.changed("/a".into());
        shared.fail();
        let unknown = Event::Replied(CallId(1), Reply::Unknown);
        assert_eq!(poll(&shared), vec![unknown, Event::Expired]);
        let after = shared.poll(&mut Vec::new(), Duration::ZERO).unwrap_err();
        assert_eq!(after.kind(), ErrorKind::Closed);
        let refused = shared.begin(CallId(2), |_| ()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Closed);
    }

    #[test]
    fn who_does_not_poll_is_stopped() {
        let shared = Shared::new(60_000);
        for call in 0..CALLS_MAX {
            let call = CallId(call as u64);
            shared.begin(call, |serial| assert!(serial.0 > 0)).unwrap();
        }
        let refused = shared.begin(CallId(0), |_| ()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        shared.fail();
        assert_eq!(poll(&shared).len(), CALLS_MAX);
        let after = shared.poll(&mut Vec::new(), Duration::ZERO).unwrap_err();
        assert_eq!(after.kind(), ErrorKind::Io);
    }
}
