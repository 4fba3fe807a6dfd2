//! A copy of a group at another server, as a client of that server sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use kreon_fabric::{Event, Link};
use kreon_wire::{Address, Frame, GroupId, Member, Packet, Reply, Request, Role, Term};

/// How long one answer may take: the device may be slow, and others use it.
const ANSWER: Duration = Duration::from_secs(30);

/// A server that is busy with others is asked again after this.
const AGAIN: Duration = Duration::from_millis(50);

/// A copy of a group at another server.
pub struct Copy {
    pub member: Member,
    group: GroupId,
    link: Arc<dyn Link>,
    last: u64,
}

impl Copy {
    pub fn new(member: Member, group: GroupId, link: Arc<dyn Link>) -> Self {
        Self {
            member,
            group,
            link,
            last: 0,
        }
    }

    /// Digests of `blocks` blocks from `offset` on.
    ///
    /// # Errors
    /// `Closed`: the link has ended, or the server has no copy any more; `Io`.
    pub fn digests(&mut self, offset: u64, blocks: u32) -> Result<Vec<u32>> {
        let body = Request::Digests { offset, blocks }.body();
        let until = Instant::now() + ANSWER;
        loop {
            match self.ask(&body, until)? {
                Some(digests) if digests.len() == blocks as usize => return Ok(digests),
                Some(_) => return Err(self.ended("it answers another question")),
                None if Instant::now() < until => kreon_sync::sleep(AGAIN),
                None => return Err(self.ended("it is busy")),
            }
        }
    }

    fn ended(&self, why: &str) -> Error {
        let text = format!("server {}: {why}", self.member.server.0);
        Error::new(ErrorKind::Closed, text)
    }

    /// The answer; none if the server is busy.
    fn ask(&mut self, body: &[u8], until: Instant) -> Result<Option<Vec<u32>>> {
        self.last += 1;
        let to = Address {
            group: self.group,
            term: Term(0),
            number: self.last,
        };
        self.link.send(&Packet::request(&to, body).parts())?;
        let mut events = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.ended("it does not answer"));
            }
            self.link.poll(&mut events, left)?;
            for event in events.drain(..) {
                match event {
                    Event::Packet(packet) => {
                        let frame = Frame::open(&packet, Role::Client)?;
                        if frame.header().number == self.last {
                            return self.take(&frame);
                        }
                    }
                    Event::Room => {}
                    Event::Closed(error) => return Err(self.ended(&error.to_string())),
                }
            }
        }
    }

    fn take(&self, frame: &Frame<'_>) -> Result<Option<Vec<u32>>> {
        match Reply::decode(frame)? {
            Reply::Digests(digests) => Ok(Some(digests.iter().collect())),
            Reply::Failed(failure) if failure.kind == kreon_wire::FailureKind::Busy => Ok(None),
            Reply::Failed(failure) => Err(self.ended(failure.text)),
            _ => Err(self.ended("it answers another question")),
        }
    }
}
