//! A session of the fake as a [`Coordinator`], for tests with threads.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};

use super::{Fake, Fate, SessionId};
use crate::command::Command;
use crate::coordinator::{CallId, Coordinator, Event};

/// The fake, and what tells sessions that something happened.
#[derive(Default)]
struct Shared {
    fake: Mutex<Fake>,
    happened: Condvar,
}

/// A session. Clones of its coordinator are made by [`another`](Self::another).
pub struct FakeSession {
    shared: Arc<Shared>,
    session: SessionId,
    /// Replies that were not polled yet.
    replies: Mutex<Vec<Event>>,
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
        if !fake.is_alive(self.session) {
            out.push(Event::Expired);
        }
    }
}

impl Default for FakeSession {
    fn default() -> Self {
        Self::new()
    }
}

impl Coordinator for FakeSession {
    fn send(&self, call: CallId, command: Command) -> Result<()> {
        let mut fake = self.shared.fake.lock();
        if !fake.is_alive(self.session) {
            return Err(Error::new(ErrorKind::Closed, "the session has ended"));
        }
        let reply = fake.carry_out(self.session, &command, Fate::Answered);
        self.replies.lock().push(Event::Replied(call, reply));
        drop(fake);
        self.shared.happened.notify_all();
        Ok(())
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
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
        two.send(CallId(1), children).unwrap();
        let create = Command::Create("/live/a".into(), [].into(), Mode::Ephemeral);
        one.send(CallId(1), create).unwrap();
        let mut events = Vec::new();
        two.poll(&mut events, Duration::from_secs(1)).unwrap();
        let replied = Event::Replied(CallId(1), Reply::Children(Vec::new()));
        assert_eq!(events, vec![replied, Event::Changed("/live".into())]);
        one.expire();
        assert_eq!(
            one.send(CallId(2), Command::Sync).unwrap_err().kind(),
            ErrorKind::Closed
        );
        events.clear();
        one.poll(&mut events, Duration::ZERO).unwrap();
        assert_eq!(events.last(), Some(&Event::Expired));
    }
}
