//! A session that is asked one thing at a time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use kreon_coord::{CallId, Command, Coordinator, Event, Node, Reply, Version};

/// For what must come, on a machine that does other things.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The session got no answer, or is over: who tests what happens without faults begins anew.
#[derive(Debug)]
pub struct Disturbed;

pub struct Seat {
    session: Box<dyn Coordinator>,
    calls: u64,
    /// What was told and not asked for yet.
    changed: VecDeque<String>,
    pub is_over: bool,
}

impl Seat {
    pub fn new(session: impl Coordinator + 'static) -> Self {
        Self {
            session: Box::new(session),
            calls: 0,
            changed: VecDeque::new(),
            is_over: false,
        }
    }

    pub fn session_ms(&self) -> u32 {
        self.session.session_ms()
    }

    /// Sends without waiting.
    pub fn send(&mut self, command: Command) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        if self.session.send(call, command).is_err() {
            self.is_over = true;
        }
        call
    }

    /// Waits for the answer to a call.
    pub fn answer(&mut self, call: CallId) -> Reply {
        let begun = Instant::now();
        loop {
            if self.is_over {
                return Reply::Unknown;
            }
            for event in self.poll(Duration::from_secs(1)) {
                if event.0 == call {
                    return event.1;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "no answer");
        }
    }

    pub fn ask(&mut self, command: Command) -> Reply {
        let call = self.send(command);
        self.answer(call)
    }

    /// The answers that came; changes and the end are kept.
    pub fn poll(&mut self, patience: Duration) -> Vec<(CallId, Reply)> {
        let mut events = Vec::new();
        if self.session.poll(&mut events, patience).is_err() {
            self.is_over = true;
        }
        let mut replies = Vec::new();
        for event in events {
            match event {
                Event::Replied(call, reply) => replies.push((call, reply)),
                Event::Changed(path) => self.changed.push_back(path),
                Event::Expired => self.is_over = true,
            }
        }
        replies
    }

    /// The answer of a session without faults.
    pub fn sure(&mut self, command: Command) -> Result<Reply, Disturbed> {
        match self.ask(command) {
            Reply::Unknown | Reply::Expired => Err(Disturbed),
            reply => Ok(reply),
        }
    }

    /// Waits for the next change that is told.
    pub fn next_change(&mut self) -> Result<String, Disturbed> {
        let begun = Instant::now();
        loop {
            if let Some(path) = self.changed.pop_front() {
                return Ok(path);
            }
            if self.is_over {
                return Err(Disturbed);
            }
            self.poll(Duration::from_secs(1));
            assert!(begun.elapsed() < PATIENCE, "no change was told");
        }
    }

    /// Nothing was told that was not asked for. (What is under way may come later.)
    pub fn no_change(&mut self) -> Result<(), Disturbed> {
        self.sure(Command::Sync)?;
        self.poll(Duration::from_millis(50));
        assert_eq!(self.changed, Vec::<String>::new());
        Ok(())
    }

    /// What a node is, after all that was written. None: it is not there.
    pub fn see(&mut self, path: &str) -> Result<Option<Node>, Disturbed> {
        self.sure(Command::Sync)?;
        match self.sure(get(path, false))? {
            Reply::Node(node) => Ok(Some(node)),
            Reply::Missing => Ok(None),
            other => panic!("{other:?}"),
        }
    }
}

pub fn get(path: &str, watch: bool) -> Command {
    let path = path.into();
    Command::Get { path, watch }
}

pub fn children(path: &str, watch: bool) -> Command {
    let path = path.into();
    Command::Children { path, watch }
}

pub fn set(path: &str, data: &str, version: u64) -> Command {
    Command::Set(path.into(), data.as_bytes().into(), Version(version))
}
