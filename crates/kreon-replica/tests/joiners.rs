//! Joiners that are slower than their primary, over links in memory that can be shut.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Lsn, PAGE_BYTES, Result};
use kreon_device::{Backing, Device};
use kreon_engine::{Durability, Engine, Operation, Options};
use kreon_format::place_of;
use kreon_replica::equalise::{Primary, Tapping};
use kreon_replica::follower::{Answer, Capacity, Follower, FollowerThread};
use kreon_replica::mirror::{Carrier, MemberStanding, Mirror};
use kreon_replica::resync::{Resync, blank_slots};
use kreon_sim::{SimDevice, SimOptions};
use kreon_sync::{Condvar, Mutex};
use kreon_wire::{
    Address, Frame, GrantBytes, GroupId, Member, ProcessId, Role, Room, ServerId, Term,
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

fn member() -> Member {
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
}

/// A link with a window; while it is shut nothing arrives.
#[derive(Default)]
struct Link {
    way: Mutex<Way>,
    changed: Condvar,
}

impl Link {
    fn shut(&self, is_shut: bool) {
        self.way.lock().is_shut = is_shut;
        self.changed.notify_all();
    }

    fn cut(&self) {
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

struct Joiner {
    device: Arc<SimDevice>,
    follower: Arc<FollowerThread>,
    link: Arc<Link>,
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

fn sparse() -> SimOptions {
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
struct Group {
    primary: Primary,
    below: Arc<SimDevice>,
    joiner: Joiner,
    resync: Option<Resync>,
}

/// A primary alone with some content, and a joiner that was attached and has space.
fn group(options_of_joiner: SimOptions) -> Group {
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
fn put(engine: &Engine, numbers: std::ops::Range<u32>) {
    let region = engine.region("cities").unwrap();
    for number in numbers {
        let key = (number % KEYS).to_be_bytes();
        let value = vec![number as u8; len_bytes(number)];
        let operation = Operation {
            region: &region,
            key: &key,
            value: Some(&value),
            is_range: false,
        };
        engine.write(&[operation], Durability::Buffered).unwrap();
    }
}

fn holds(device: &Arc<SimDevice>, count: u32) {
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
    fn standing(&self) -> MemberStanding {
        self.primary.mirror().standing()[0].clone()
    }

    fn copy_all(&mut self) {
        let resync = self.resync.as_mut().unwrap();
        while resync.copy(self.primary.mirror(), &*self.below).unwrap() {}
    }

    fn complete(&self) -> Result<()> {
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
    fn is_equal(&self, count: u32) {
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

#[test]
fn a_joiner_that_takes_nothing_holds_up_nobody_and_ends_equal() {
    let mut group = group(sparse());
    group.joiner.link.shut(true);
    // Many times the buffers of the log, and many spills.
    put(group.primary.engine(), 300..9000);
    group.primary.engine().checkpoint().unwrap();
    let standing = group.standing();
    assert!(!standing.is_counted && standing.ended.is_none());
    assert!(
        standing.is_log_behind && standing.owed_bytes > 128 << 10,
        "{standing:?}"
    );
    group.joiner.link.shut(false);
    group.copy_all();
    assert!(group.standing().is_log_behind, "the log comes at the end");
    group.complete().unwrap();
    let standing = group.standing();
    assert!(standing.is_counted && !standing.is_log_behind && standing.owed_bytes == 0);
    put(group.primary.engine(), 9000..9400);
    group.is_equal(9400);
}

#[test]
fn a_joiner_catches_up_while_the_primary_goes_on() {
    let mut group = group(sparse());
    group.joiner.link.shut(true);
    put(group.primary.engine(), 300..3000);
    let engine = Arc::clone(group.primary.engine());
    let writing = std::thread::spawn(move || put(&engine, 3000..9000));
    group.joiner.link.shut(false);
    group.copy_all();
    group.complete().unwrap();
    assert!(group.standing().is_counted);
    writing.join().unwrap();
    group.is_equal(9000);
}

#[test]
fn a_joiner_whose_link_fails_and_recovers_again_and_again_ends_equal() {
    let mut group = group(sparse());
    let mut count = 300;
    for round in 0..4 {
        group.joiner.link.shut(true);
        put(group.primary.engine(), count..count + 1500);
        count += 1500;
        group.joiner.link.shut(false);
        let resync = group.resync.as_mut().unwrap();
        for _ in 0..20 * round {
            resync.copy(group.primary.mirror(), &*group.below).unwrap();
        }
        put(group.primary.engine(), count..count + 200);
        count += 200;
    }
    group.copy_all();
    group.complete().unwrap();
    group.is_equal(count);
}

#[test]
fn a_joiner_does_not_count_before_it_has_caught_up() {
    let mut group = group(sparse());
    group.joiner.link.shut(true);
    put(group.primary.engine(), 300..3000);
    group.joiner.link.shut(false);
    group.copy_all();
    group.joiner.link.shut(true);
    std::thread::scope(|scope| {
        let completing = scope.spawn(|| group.complete());
        // Its window is full at once: the primary goes on, and alone answers for what it writes.
        put(group.primary.engine(), 3000..6000);
        group.primary.engine().sync().unwrap();
        let standing = group.standing();
        assert!(!standing.is_counted && !completing.is_finished());
        assert_eq!(group.primary.mirror().landed(), Lsn::MAX);
        group.joiner.link.shut(false);
        completing.join().unwrap().unwrap();
    });
    assert!(group.standing().is_counted);
    group.is_equal(6000);
}

#[test]
fn a_joiner_without_space_for_what_is_written_meanwhile_does_not_join() {
    let mut group = group(SimOptions {
        space_bytes_max: 24 << 20,
        ..sparse()
    });
    put(group.primary.engine(), 300..6000);
    let copied = loop {
        let resync = group.resync.as_mut().unwrap();
        match resync.copy(group.primary.mirror(), &*group.below) {
            Ok(true) => {}
            Ok(false) => break group.complete(),
            Err(error) => break Err(error),
        }
    };
    let error = copied.unwrap_err();
    assert!(!group.standing().is_counted, "{error}");
    group.primary.mirror().remove(member());
    put(group.primary.engine(), 6000..6100);
    group.primary.abandon("the test ends").unwrap();
    group.joiner.link.cut();
}
