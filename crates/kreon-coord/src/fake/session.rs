//! A session of the fake as a [`Coordinator`], for tests with threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};

use super::{Fake, Fate, SessionId};
use crate::checked::check;
use crate::command::Command;
use crate::coordinator::{CALLS_MAX, CallId, Coordinator, Event};

/// The fake, and what tells sessions that something happened.
#[derive(Default)]
struct Shared {
    fake: Mutex<Fake>,
    happened: Condvar,
}

/// A session, which ends when this is dropped. [`another`](Self::another) begins more of them.
pub struct FakeSession {
    shared: Arc<Shared>,
    session: SessionId,
    /// Replies that were not polled yet.
    replies: Mutex<Vec<Event>>,
    /// The end of the session was polled.
    told_end: AtomicBool,
}

impl FakeSession {
    /// The first session of a new coordinator.
    pub fn new() -> Self {
        Self::on(Arc::default())
    }

    /// Another session of the same coordinator.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::on(Arc::clone(&self.shared))
    }

    fn on(shared: Arc<Shared>) -> Self {
        let session = shared.fake.lock().begin();
        Self {
            shared,
            session,
            replies: Mutex::default(),
            told_end: AtomicBool::new(false),
        }
    }

    /// Ends the session, as if the coordinator had heard nothing of it for too long.
    pub fn expire(&self) {
        self.shared.fake.lock().expire(self.session);
        self.shared.happened.notify_all();
    }

    fn take(&self, fake: &mut Fake, out: &mut Vec<Event>) {
        out.append(&mut self.replies.lock());
        out.append(&mut fake.take_fired(self.session));
        if !fake.is_alive(self.session) && !self.told_end.swap(true, Ordering::Relaxed) {
            out.push(Event::Expired);
        }
    }
}

impl Drop for FakeSession {
    fn drop(&mut self) {
        self.expire();
    }
}

impl Default for FakeSession {
    fn default() -> Self {
        Self::new()
    }
}

impl Coordinator for FakeSession {
    fn send(&self, call: CallId, command: Command) -> Result<()> {
        check(&command)?;
        let mut fake = self.shared.fake.lock();
        if !fake.is_alive(self.session) {
            return Err(Error::new(ErrorKind::Closed, "the session has ended"));
        }
        let mut replies = self.replies.lock();
        if replies.len() >= CALLS_MAX {
            return Err(Error::new(ErrorKind::Busy, "answers are not polled"));
        }
        let reply = fake.carry_out(self.session, &command, Fate::Answered);
        replies.push(Event::Replied(call, reply));
        drop(replies);
        drop(fake);
        self.shared.happened.notify_all();
        Ok(())
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        if self.told_end.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Closed, "the session has ended"));
        }
        let before = out.len();
        let mut fake = self.shared.fake.lock();
        self.take(&mut fake, out);
        if out.len() == before {
            self.shared.happened.wait_for(&mut fake, patience);
            self.take(&mut fake, out);
        }
        Ok(())
    }

    fn session_ms(&self) -> u32 {
        1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Mode, Reply};

    #[test]
    fn a_session_hears_of_what_another_one_changes() {
        let (one, two) = {
            let one = FakeSession::new();
            let two = one.another();
            (one, two)
        };
        let children = Command::Children {
            path: "/live".into(),
            watch: true,
        };
        let above = Command::Create("/live".into(), [].into(), Mode::Persistent);
        two.send(CallId(0), above).unwrap();
        two.send(CallId(1), children).unwrap();
        let create = Command::Create("/live/a".into(), [].into(), Mode::Ephemeral);
        one.send(CallId(1), create).unwrap();
        let mut events = Vec::new();
        two.poll(&mut events, Duration::from_secs(1)).unwrap();
        let made = Event::Replied(CallId(0), Reply::Created("/live".into()));
        let listed = Event::Replied(CallId(1), Reply::Children(Vec::new()));
        assert_eq!(events, vec![made, listed, Event::Changed("/live".into())]);
        one.expire();
        assert_eq!(
            one.send(CallId(2), Command::Sync).unwrap_err().kind(),
            ErrorKind::Closed
        );
        events.clear();
        one.poll(&mut events, Duration::ZERO).unwrap();
        assert_eq!(events.last(), Some(&Event::Expired));
        let after = one.poll(&mut events, Duration::ZERO).unwrap_err();
        assert_eq!(after.kind(), ErrorKind::Closed);
    }
}
