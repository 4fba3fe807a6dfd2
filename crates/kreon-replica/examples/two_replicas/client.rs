//! A client: questions one at a time, and puts many at a time.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use kreon_fabric::tcp::TcpFabric;
use kreon_fabric::{Address, Event, Fabric, Link, PeerId};
use kreon_wire::{Address as Place, Frame, Member, Packet, ProcessId, Role, ServerId};

use super::words::{GROUP, Reply, Request, Status, value};

/// Nothing takes so long.
const LIMIT: Duration = Duration::from_secs(120);

/// See the module's text.
pub struct Client {
    link: Arc<dyn Link>,
    last: u64,
    answers: VecDeque<(u64, Reply)>,
    events: Vec<Event>,
}

fn closed(text: &str) -> Error {
    Error::new(ErrorKind::Closed, text)
}

impl Client {
    /// Connects.
    pub fn connect(fabric: &TcpFabric, to: &Address) -> Result<Self> {
        let me = PeerId {
            member: Member {
                server: ServerId(0),
                process: ProcessId([7; 16]),
            },
            role: Role::Client,
        };
        let link = fabric.connect(to, &me, Duration::from_secs(2))?;
        Ok(Self {
            link,
            last: 0,
            answers: VecDeque::new(),
            events: Vec::new(),
        })
    }

    fn send(&mut self, request: &Request<'_>) -> Result<u64> {
        let bytes = request.encode();
        let number = self.last + 1;
        let to = Place {
            group: GROUP,
            number,
            ..Place::default()
        };
        let packet = Packet::request(&to, &bytes);
        let [head, body] = packet.parts();
        self.link
            .send(&[IoSlice::new(&head), IoSlice::new(&body)])?;
        self.last = number;
        Ok(number)
    }

    fn poll(&mut self, patience: Duration) -> Result<()> {
        self.link.poll(&mut self.events, patience)?;
        for event in self.events.drain(..) {
            match event {
                Event::Packet(bytes) => {
                    let frame = Frame::open(&bytes, Role::Client)?;
                    let Packet::Reply(body) = Packet::decode(&frame)? else {
                        return Err(closed("not an answer"));
                    };
                    let reply = Reply::decode(body).map_err(|e| Error::io("decode", e))?;
                    self.answers.push_back((frame.header().number, reply));
                }
                Event::Room => {}
                Event::Closed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One question, and its answer.
    pub fn ask(&mut self, request: &Request<'_>) -> Result<Reply> {
        let number = self.send(request)?;
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            self.poll(Duration::from_millis(100))?;
            while let Some((answered, reply)) = self.answers.pop_front() {
                if answered == number {
                    return Ok(reply);
                }
            }
        }
        Err(closed("no answer"))
    }

    /// How the server stands.
    pub fn status(&mut self) -> Result<Status> {
        match self.ask(&Request::Status)? {
            Reply::Status(status) => Ok(status),
            _ => Err(closed("no status")),
        }
    }

    /// Puts `keys` in their order, `window` at a time, until `goes_on` says no of how many are replicated; then waits for the
    /// rest. How many are replicated, from the first on, and why that is not all.
    pub fn put_all(
        &mut self,
        keys: std::ops::Range<u64>,
        window: u64,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> (u64, Option<Error>) {
        let first = self.last + 1;
        let (mut next, mut done) = (keys.start, 0);
        let (mut goes, mut moved_at) = (true, Instant::now());
        loop {
            goes = goes && goes_on(done);
            let mut is_busy = false;
            while goes && !is_busy && next < keys.end && next - keys.start - done < window {
                match self.send(&Request::Put(next, &value(next))) {
                    Ok(_) => next += 1,
                    Err(error) if error.kind() == ErrorKind::Busy => is_busy = true,
                    Err(error) => return (done, Some(error)),
                }
            }
            let sent = next - keys.start;
            if done == sent && (!goes || next == keys.end) {
                return (done, None);
            }
            let polled = self.poll(Duration::from_millis(50));
            while let Some((number, reply)) = self.answers.pop_front() {
                match reply {
                    Reply::Done => {
                        done = done.max(number + 1 - first);
                        moved_at = Instant::now();
                    }
                    _ => return (done, Some(closed("refused"))),
                }
            }
            if let Err(error) = polled {
                return (done, Some(error));
            }
            if moved_at.elapsed() > LIMIT {
                return (done, Some(closed("nothing is acknowledged")));
            }
        }
    }

    /// Gets `keys`, `window` at a time; how many have not the value that was put.
    pub fn missing(&mut self, keys: std::ops::Range<u64>, window: u64) -> Result<u64> {
        let (first, start) = (self.last + 1, keys.start);
        let (mut next, mut answered, mut missing) = (keys.start, 0, 0);
        while answered < keys.end - keys.start {
            while next < keys.end && next - start - answered < window {
                match self.send(&Request::Get(next)) {
                    Ok(_) => next += 1,
                    Err(error) if error.kind() == ErrorKind::Busy => break,
                    Err(error) => return Err(error),
                }
            }
            self.poll(Duration::from_millis(50))?;
            while let Some((number, reply)) = self.answers.pop_front() {
                let key = start + (number - first);
                answered += 1;
                match reply {
                    Reply::Value(Some(found)) if found == value(key) => {}
                    Reply::Value(_) => missing += 1,
                    _ => return Err(closed("a get was refused")),
                }
            }
        }
        Ok(missing)
    }
}
