//! A primary and a joiner over a link in memory that can be shut and cut.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Lsn, PAGE_BYTES, Result};
use kreon_device::{Backing, Device};
use kreon_engine::{Durability, Engine, Operation, Options, Terms};
use kreon_format::place_of;
use kreon_replica::equalise::{Primary, Tapping};
use kreon_replica::follower::{Answer, Capacity, Follower, FollowerThread};
use kreon_replica::mirror::{Carrier, MemberStanding, Mirror};
use kreon_replica::resync::{Resync, blank_slots};
use kreon_sim::{SimDevice, SimOptions};
use kreon_sync::{Condvar, Mutex};
use kreon_wire::{
    Address, Frame, GrantBytes, GroupId, Kind, Member, ProcessId, Role, Room, ServerId, Term,
};

const GROUP: GroupId = GroupId(1);
const TERM: Term = Term(5);
const WINDOW_BYTES: usize = 160 << 10;
/// So many keys are written, again and again.
const KEYS: u32 = 6000;
const CAPACITY: Capacity = Capacity {
    log_bytes: 4 << 20,
    pages_bytes: 1 << 20,
    space_bytes: 0,
};

pub fn member() -> Member {
    Member {
        server: ServerId(2),
        process: ProcessId([2; 16]),
    }
}

#[derive(Default)]
struct Way {
    packets: VecDeque<Vec<u8>>,
    bytes: usize,
    is_shut: bool,
    was_busy: bool,
    is_cut: bool,
    /// It shuts itself behind a packet of this kind.
    shuts_behind: Option<Kind>,
}

/// A link with a window; while it is shut nothing arrives.
#[derive(Default)]
pub struct Link {
    way: Mutex<Way>,
    changed: Condvar,
}

impl Link {
    pub fn shut(&self, is_shut: bool) {
        self.way.lock().is_shut = is_shut;
        self.changed.notify_all();
    }

    pub fn shut_behind(&self, kind: Kind) {
        self.way.lock().shuts_behind = Some(kind);
    }

    pub fn cut(&self) {
        self.way.lock().is_cut = true;
        self.changed.notify_all();
    }

    /// The next packet, and whether the sender is to be told that there is room.
    fn next(&self) -> Option<(Vec<u8>, bool)> {
        let mut way = self.way.lock();
        loop {
            if way.is_cut {
                return None;
            }
            if !way.is_shut
                && let Some(packet) = way.packets.pop_front()
            {
                way.bytes -= packet.len();
                let has_room = way.was_busy && way.bytes <= WINDOW_BYTES / 2;
                way.was_busy &= !has_room;
                let kind = Frame::open(&packet, Role::PeerStream).map(|f| f.header().kind);
                way.is_shut |= way.shuts_behind.is_some_and(|behind| kind == Ok(behind));
                return Some((packet, has_room));
            }
            self.changed.wait(&mut way);
        }
    }
}

impl Carrier for Link {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        let packet: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let mut way = self.way.lock();
        if way.is_cut {
            return Err(Error::new(ErrorKind::Closed, "the link was cut"));
        }
        if way.bytes + packet.len() > WINDOW_BYTES {
            way.was_busy = true;
            return Err(Error::new(ErrorKind::Busy, "the window is full"));
        }
        way.bytes += packet.len();
        way.packets.push_back(packet);
        self.changed.notify_all();
        Ok(())
    }
}

pub struct Joiner {
    pub device: Arc<SimDevice>,
    pub follower: Arc<FollowerThread>,
    pub link: Arc<Link>,
}

impl Joiner {
    fn start(mirror: &Arc<Mirror>, options: SimOptions) -> Self {
        let device = Arc::new(SimDevice::new(options));
        blank_slots(&*device).unwrap();
        let core = Follower::joining((GROUP, TERM), device.len_bytes(), CAPACITY);
        let back = Arc::new(OnceLock::new());
        back.set(Arc::downgrade(mirror)).unwrap();
        let tell = move |answer: Answer| {
            let to = Address {
                group: GROUP,
                term: TERM,
                number: 0,
            };
            let Some(mirror) = back.get().and_then(Weak::<Mirror>::upgrade) else {
                return;
            };
            match (answer.encode(&to), answer) {
                (Some(packet), _) => {
                    let frame = Frame::open(&packet, Role::PeerStream).unwrap();
                    mirror.admit(member(), &frame).unwrap();
                }
                (None, Answer::Ended(error)) => mirror.end(member(), error),
                (None, _) => {}
            }
        };
        let file = Arc::clone(&device) as Arc<dyn Device>;
        let follower = Arc::new(FollowerThread::start(core, file, None, tell).unwrap());
        let link = Arc::new(Link::default());
        let (mine, way) = (Arc::clone(&follower), Arc::clone(&link));
        let mirror = Arc::downgrade(mirror);
        std::thread::spawn(move || {
            while let Some((packet, has_room)) = way.next() {
                let frame = Frame::open(&packet, Role::PeerStream).unwrap();
                if let Err(violation) = mine.take(&frame) {
                    // Calls of the primary that wait for the joiner end.
                    if let Some(mirror) = mirror.upgrade() {
                        mirror.close("a packet of the primary is not right");
                    }
                    panic!("a packet of the primary: {violation}");
                }
                mine.acknowledge();
                if let Some(mirror) = mirror.upgrade().filter(|_| has_room) {
                    mirror.room();
                }
            }
        });
        Self {
            device,
            follower,
            link,
        }
    }
}

pub fn sparse() -> SimOptions {
    SimOptions {
        record: false,
        ..SimOptions::default()
    }
}

fn options() -> Options {
    Options {
        memory_bytes: kreon_engine::MEMORY_BYTES_MIN,
        backing: Backing::Sparse,
        l0_bytes: Some(64 << 10),
        ..Options::default()
    }
}

/// A primary with what is under way to its joiner.
pub struct Group {
    pub primary: Primary,
    pub below: Arc<SimDevice>,
    pub joiner: Joiner,
    pub resync: Option<Resync>,
}

/// A primary alone with some content, and a joiner that was attached and has space.
pub fn group(options_of_joiner: SimOptions) -> Group {
    let mirror = Mirror::new(GROUP, TERM, Lsn::MAX);
    let joiner = Joiner::start(&mirror, options_of_joiner);
    let below = Arc::new(SimDevice::new(sparse()));
    let device = Arc::clone(&below) as Arc<dyn Device>;
    let primary = Primary::open(device, mirror, options(), Tapping::Thread).unwrap();
    put(primary.engine(), 0..300);
    let room = Room {
        log: GrantBytes(CAPACITY.log_bytes),
        pages: GrantBytes(CAPACITY.pages_bytes),
        space: GrantBytes(CAPACITY.space_bytes),
    };
    let (mirror, carrier) = (primary.mirror(), Arc::clone(&joiner.link));
    let attached = mirror.attach(member(), carrier, room, below.len_bytes());
    attached.unwrap();
    let resync = Resync::list(primary.engine(), mirror, member()).unwrap();
    resync.reserve(mirror).unwrap();
    Group {
        resync: Some(resync),
        primary,
        below,
        joiner,
    }
}

fn len_bytes(number: u32) -> usize {
    10 + (number as usize * 97) % 9000
}

/// Keys come again: some are overwritten, so trees change.
pub fn put(engine: &Engine, numbers: std::ops::Range<u32>) {
    let region = engine.region("cities").unwrap();
    for number in numbers {
        let key = (number % KEYS).to_be_bytes();
        let value = vec![number as u8; len_bytes(number)];
        let operation = Operation {
            region: &region,
            key: &key,
            value: Some(&value),
            is_range: false,
            terms: Terms::default(),
        };
        engine.write(&[operation], Durability::Buffered).unwrap();
    }
}

pub fn holds(device: &Arc<SimDevice>, count: u32) {
    let device = Arc::clone(device) as Arc<dyn Device>;
    let engine = Engine::open(device, options()).unwrap();
    let region = engine.existing_region("cities").unwrap();
    for key in 0..count.min(KEYS) {
        let last = (count - 1 - key) / KEYS * KEYS + key;
        let found = engine.get(&region, &key.to_be_bytes(), None, <[u8]>::to_vec);
        let expected = vec![last as u8; len_bytes(last)];
        assert!(found.unwrap() == Some(expected), "key {key}");
    }
    let problems = engine.verify().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
}

impl Group {
    pub fn standing(&self) -> MemberStanding {
        self.primary.mirror().standing()[0].clone()
    }

    pub fn copy_all(&mut self) {
        let resync = self.resync.as_mut().unwrap();
        while resync.copy(self.primary.mirror(), &*self.below).unwrap() {}
    }

    pub fn complete(&self) -> Result<()> {
        let resync = self.resync.as_ref().unwrap();
        resync.complete(self.primary.engine(), self.primary.mirror(), &*self.below)
    }

    /// What is in use differs between the two volumes.
    fn difference(&self) -> Option<String> {
        let engine = self.primary.engine();
        engine.sync().unwrap();
        self.primary.mirror().barrier().unwrap();
        let (occupied, durable) = (engine.occupied().unwrap(), engine.log_durable());
        let (one, other) = (self.below.image(), self.joiner.device.image());
        let is_same = |at: u64, bytes: usize| one.bytes(at, bytes) == other.bytes(at, bytes);
        for (first, pages) in &occupied.pages {
            let mut numbers = first.0..first.0 + pages;
            let found = numbers.find(|page| !is_same(page * PAGE_BYTES as u64, PAGE_BYTES));
            if let Some(page) = found {
                return Some(format!("page {page}"));
            }
        }
        let (sequence, _) = place_of(durable);
        let mut log = occupied.log.iter().filter(|log| log.sequence < sequence);
        let found = log.find(|log| !is_same(log.segment.offset_bytes(), log.bytes as usize));
        found.map(|log| format!("{log:?}"))
    }

    /// All that is in use is the same on both volumes, and the joiner's is a store with `count` writes.
    pub fn is_equal(&self, count: u32) {
        // Work in the background may be writing.
        let mut tries = 0;
        while let Some(what) = self.difference() {
            assert!(tries < 500, "{what} differs");
            tries += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
        let tail = self.primary.engine().log_tail();
        while self.primary.mirror().landed() < tail {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.joiner.follower.seal().unwrap();
        self.primary.abandon("the test ends").unwrap();
        self.joiner.link.cut();
        holds(&self.joiner.device, count);
    }
}
