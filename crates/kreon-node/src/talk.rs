//! Commands to the coordinator, one after the other, for those who can wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use kreon_coord::{CallId, Command, Coordinator, Event, Node, Reply};

/// The answer may take so long beyond the time of the session, after which the coordinator's client answers by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session with the coordinator whose only user waits for each answer. Watches may fire meanwhile.
pub struct Talk {
    coordinator: Arc<dyn Coordinator>,
    last: u64,
    changed: Vec<String>,
}

impl Talk {
    /// Of a session that nobody else uses.
    pub fn new(coordinator: Arc<dyn Coordinator>) -> Self {
        Self {
            coordinator,
            last: 0,
            changed: Vec::new(),
        }
    }

    /// Milliseconds without contact after which the coordinator ends the session, as granted.
    pub fn session_ms(&self) -> u32 {
        self.coordinator.session_ms()
    }

    /// Carries out a command and waits for the answer.
    ///
    /// # Errors
    /// `Io`: no answer came, and the command may have been carried out, or be yet; `Closed`: the session is over;
    /// `InvalidArgument`: the command cannot be sent.
    pub fn call(&mut self, command: Command) -> Result<Reply> {
        self.last += 1;
        let call = CallId(self.last);
        self.coordinator.send(call, command)?;
        let limit = PATIENCE + Duration::from_millis(self.session_ms().into());
        let start = Instant::now();
        let mut events = Vec::new();
        loop {
            self.coordinator.poll(&mut events, PATIENCE)?;
            let mut answer = None;
            for event in events.drain(..) {
                match event {
                    Event::Replied(replied, reply) if replied == call => answer = Some(reply),
                    // To a call whose caller gave up.
                    Event::Replied(..) => {}
                    Event::Changed(path) => self.changed.push(path),
                    Event::Expired => {
                        answer.get_or_insert(Reply::Expired);
                    }
                }
            }
            match answer {
                Some(Reply::Unknown) => return Err(unanswered()),
                Some(Reply::Expired) => {
                    return Err(Error::new(ErrorKind::Closed, "the session has ended"));
                }
                Some(reply) => return Ok(reply),
                None if start.elapsed() > limit => return Err(unanswered()),
                None => {}
            }
        }
    }

    /// A node as it is now; none if there is none.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn read(&mut self, path: &str, watch: bool) -> Result<Option<Node>> {
        self.call(Command::Sync)?;
        let path = path.to_owned();
        match self.call(Command::Get { path, watch })? {
            Reply::Node(node) => Ok(Some(node)),
            Reply::Missing => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// Names of the nodes directly below a path as they are now; none if the path is not there.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn children(&mut self, path: &str, watch: bool) -> Result<Option<Vec<String>>> {
        self.call(Command::Sync)?;
        let path = path.to_owned();
        match self.call(Command::Children { path, watch })? {
            Reply::Children(names) => Ok(Some(names)),
            Reply::Missing => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// Paths of watches that fired, each once; waits at most `patience` if none did.
    ///
    /// # Errors
    /// `Closed`: the session is over, and all may have changed.
    pub fn changed(&mut self, patience: Duration) -> Result<Vec<String>> {
        if self.changed.is_empty() {
            let mut events = Vec::new();
            self.coordinator.poll(&mut events, patience)?;
            for event in events {
                match event {
                    Event::Changed(path) => self.changed.push(path),
                    Event::Replied(..) => {}
                    Event::Expired => {
                        return Err(Error::new(ErrorKind::Closed, "the session has ended"));
                    }
                }
            }
        }
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }
}

fn unanswered() -> Error {
    Error::new(ErrorKind::Io, "the coordinator does not answer")
}

/// An answer that does not belong to the command.
pub(crate) fn unexpected(reply: &Reply) -> Error {
    Error::new(
        ErrorKind::Io,
        format!("the coordinator answers {reply:?}, which is no answer to what was asked"),
    )
}
