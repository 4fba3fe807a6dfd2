//! What tests of both fabrics need: packets of any length, and someone who listens.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::IoSlice;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kreon_base::Result;
use kreon_fabric::{Event, Link, PeerId, Welcome};
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{GroupId, Header, Kind, Member, ProcessId, Reason, Role, ServerId, Term};

/// No test waits longer for anything.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks at what is waited for, no more counts as waited.
const LOOK: Duration = Duration::from_millis(100);

/// How long something was waited for. A process that was stopped, or got no processor, has not waited: nothing that it
/// waits for had a chance to happen.
pub struct Waiting {
    what: &'static str,
    waited: Duration,
    looked_at: Instant,
}

impl Waiting {
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            waited: Duration::ZERO,
            looked_at: Instant::now(),
        }
    }

    /// It has not happened yet. Fails the test after [`LIMIT`].
    pub fn look(&mut self) {
        self.waited += self.looked_at.elapsed().min(LOOK);
        self.looked_at = Instant::now();
        assert!(self.waited < LIMIT, "it does not happen: {}", self.what);
    }

    /// The same, after a pause.
    pub fn pause(&mut self) {
        self.look();
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Waits until it is so.
pub fn until(what: &'static str, mut is_so: impl FnMut() -> bool) {
    let mut waiting = Waiting::new(what);
    while !is_so() {
        waiting.pause();
    }
}

/// Runs a test that must not hang.
pub fn limited(test: impl FnOnce() + Send + 'static) {
    use std::sync::mpsc::RecvTimeoutError::Timeout;
    let (done, is_done) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        test();
        let _: Result<(), _> = done.send(());
    });
    let mut waiting = Waiting::new("the end of the test");
    // Half as often as time counts: longer than anything that the test itself waits for.
    while let Err(Timeout) = is_done.recv_timeout(2 * LOOK) {
        waiting.look();
    }
    test.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
}

pub fn member(server: u32) -> Member {
    Member {
        server: ServerId(server),
        process: ProcessId([server as u8; 16]),
    }
}

/// A client, which may send packets of nearly every length.
pub fn client(process: u8) -> PeerId {
    PeerId {
        member: Member {
            server: ServerId(0),
            process: ProcessId([process; 16]),
        },
        role: Role::Client,
    }
}

/// A server in a role.
pub fn server(server: u32, role: Role) -> PeerId {
    PeerId {
        member: member(server),
        role,
    }
}

/// A request of a client with a number from 1 on and a body of 1 byte or more, which follows from both.
pub fn packet(number: u64, body_bytes: usize) -> Vec<u8> {
    let body: Vec<u8> = (0..body_bytes as u64)
        .map(|at| ((at * 31) ^ number ^ (at >> 8)) as u8)
        .collect();
    let mut header = Header {
        kind: Kind::Request,
        body_bytes: body_bytes as u32,
        group: GroupId(1),
        term: Term(0),
        number,
        checksum: 0,
    };
    header.checksum = header.checksum_with(&[&body]);
    [&header.encode(), &body[..]].concat()
}

/// The number of a packet.
pub fn number_of(bytes: &[u8]) -> u64 {
    let header = Header::decode(bytes, Role::Client).unwrap();
    header.verify(&bytes[HEADER_BYTES..]).unwrap();
    header.number
}

pub fn send(link: &Arc<dyn Link>, packet: &[u8]) -> Result<()> {
    // Cut where a header and a body are not.
    let (front, back) = packet.split_at(packet.len().min(17));
    link.send(&[IoSlice::new(front), IoSlice::new(back)])
}

/// Sends as soon as there is room.
pub fn send_patiently(link: &Arc<dyn Link>, packet: &[u8]) -> Result<()> {
    let mut waiting = Waiting::new("room");
    loop {
        match send(link, packet) {
            Err(e) if e.kind() == kreon_base::ErrorKind::Busy => waiting.pause(),
            sent => return sent,
        }
    }
}

/// What a poll that waits for nothing hands out.
pub fn poll_now(link: &Arc<dyn Link>) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    link.poll(&mut events, Duration::ZERO).map(|()| events)
}

/// Polls until there is an event.
pub fn next_events(link: &Arc<dyn Link>) -> Vec<Event> {
    let (mut waiting, mut events) = (Waiting::new("an event"), Vec::new());
    while events.is_empty() {
        waiting.look();
        link.poll(&mut events, LOOK).unwrap();
    }
    events
}

/// Polls until the link has ended: the numbers of the packets before, and the error.
pub fn until_closed(link: &Arc<dyn Link>) -> (Vec<u64>, kreon_base::Error) {
    let mut numbers = Vec::new();
    loop {
        for event in next_events(link) {
            match event {
                Event::Packet(bytes) => numbers.push(number_of(&bytes)),
                Event::Room => {}
                Event::Closed(error) => return (numbers, error),
            }
        }
    }
}

/// Someone who listens, and keeps the links.
pub struct Host {
    me: Member,
    pub verdict: Mutex<Result<(), Reason>>,
    links: Mutex<Vec<Arc<dyn Link>>>,
}

impl Host {
    pub fn new(number: u32) -> Arc<Self> {
        Arc::new(Self {
            me: member(number),
            verdict: Mutex::new(Ok(())),
            links: Mutex::default(),
        })
    }

    /// The links so far, oldest first, no longer kept here.
    pub fn take_links(&self) -> Vec<Arc<dyn Link>> {
        std::mem::take(&mut *self.links.lock().unwrap())
    }

    /// Waits for the next link.
    pub fn next_link(&self) -> Arc<dyn Link> {
        let mut waiting = Waiting::new("a link");
        loop {
            let mut links = self.links.lock().unwrap();
            if !links.is_empty() {
                return links.remove(0);
            }
            drop(links);
            waiting.pause();
        }
    }
}

impl Welcome for Host {
    fn me(&self) -> Member {
        self.me
    }

    fn judge(&self, _: &PeerId) -> Result<(), Reason> {
        *self.verdict.lock().unwrap()
    }

    fn linked(&self, link: Arc<dyn Link>) {
        self.links.lock().unwrap().push(link);
    }
}
