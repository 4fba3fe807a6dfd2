//! A store with backups in threads of their own, over links in memory.

use std::io::IoSlice;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::{Backing, Device};
use kreon_engine::{Durability, Engine, Operation, Options, Terms};
use kreon_format::{LOG_HEADER_BYTES, lsn_at};
use kreon_replica::equalise::{Primary, Tapping};
use kreon_replica::follower::{Answer, Ballast, Capacity, Follower, FollowerThread};
use kreon_replica::mirror::{Carrier, Mirror};
use kreon_sim::{SimDevice, SimOptions};
use kreon_sync::Mutex;
use kreon_wire::{
    Address, Frame, GrantBytes, GroupId, Member, ProcessId, Role, Room, ServerId, Term,
};

const GROUP: GroupId = GroupId(1);
const TERM: Term = Term(5);

/// A link in memory: packets go to a thread that hands them to the follower.
struct InMemory(Mutex<Option<Sender<Vec<u8>>>>);

impl Carrier for InMemory {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        let packet: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let link = self.0.lock();
        let sent = link.as_ref().map(|sender| sender.send(packet));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(Error::new(ErrorKind::Closed, "the link was cut")),
        }
    }
}

struct Backup {
    member: Member,
    device: Arc<SimDevice>,
    follower: Arc<FollowerThread>,
    link: Arc<InMemory>,
}

impl Backup {
    fn start(
        server: u32,
        options: SimOptions,
        capacity: Capacity,
        mirror: &Arc<OnceLock<Weak<Mirror>>>,
    ) -> Self {
        let device = Arc::new(SimDevice::new(options));
        let member = Member {
            server: ServerId(server),
            process: ProcessId([server as u8; 16]),
        };
        let start = lsn_at(1, LOG_HEADER_BYTES);
        let core = Follower::new((GROUP, TERM), 0, start, capacity);
        let tell_to = Arc::clone(mirror);
        let tell = move |answer: Answer| {
            let to = Address {
                group: GROUP,
                term: TERM,
                number: 0,
            };
            let mirror = tell_to.get().and_then(Weak::upgrade);
            if let (Some(packet), Some(mirror)) = (answer.encode(&to), mirror) {
                let frame = Frame::open(&packet, Role::PeerStream).unwrap();
                mirror.admit(member, &frame).unwrap();
            }
        };
        let ballast_device = Arc::new(SimDevice::new(SimOptions::default()));
        let ballast = Ballast::new(ballast_device, 8 << 20).unwrap();
        let file = Arc::clone(&device) as Arc<dyn Device>;
        let follower = FollowerThread::start(core, file, Some(ballast), tell).unwrap();
        let follower = Arc::new(follower);
        let (sender, packets) = channel::<Vec<u8>>();
        let mine = Arc::clone(&follower);
        std::thread::spawn(move || {
            while let Ok(packet) = packets.recv() {
                let frame = Frame::open(&packet, Role::PeerStream).unwrap();
                if mine.take(&frame).is_err() {
                    return;
                }
                mine.acknowledge();
            }
        });
        Self {
            member,
            device,
            follower,
            link: Arc::new(InMemory(Mutex::new(Some(sender)))),
        }
    }
}

struct Group {
    primary: Primary,
    backups: Vec<Backup>,
}

fn options() -> Options {
    Options {
        memory_bytes: kreon_engine::MEMORY_BYTES_MIN,
        backing: Backing::Sparse,
        l0_bytes: Some(64 << 10),
        ..Options::default()
    }
}

fn sparse() -> SimOptions {
    SimOptions {
        record: false,
        ..SimOptions::default()
    }
}

fn group(of_backups: &[SimOptions], capacity: Capacity) -> Group {
    let mirror = Mirror::new(GROUP, TERM, lsn_at(1, LOG_HEADER_BYTES));
    let weak = Arc::new(OnceLock::new());
    weak.set(Arc::downgrade(&mirror)).unwrap();
    let start = |(index, options): (usize, &SimOptions)| {
        Backup::start(index as u32 + 2, options.clone(), capacity, &weak)
    };
    let backups: Vec<_> = of_backups.iter().enumerate().map(start).collect();
    let room = Room {
        log: GrantBytes(capacity.log_bytes),
        pages: GrantBytes(capacity.pages_bytes),
        space: GrantBytes(capacity.space_bytes),
    };
    for backup in &backups {
        let start = lsn_at(1, LOG_HEADER_BYTES);
        let link = Arc::clone(&backup.link) as Arc<dyn Carrier>;
        mirror.add(backup.member, link, start, room).unwrap();
    }
    let device = Arc::new(SimDevice::new(sparse()));
    let primary = Primary::open(device, mirror, options(), Tapping::Thread).unwrap();
    Group { primary, backups }
}

fn put(engine: &Engine, number: u32, len_bytes: usize, durability: Durability) -> Result<()> {
    let region = engine.region("cities")?;
    let key = number.to_be_bytes();
    let value = vec![number as u8; len_bytes];
    let operation = Operation {
        region: &region,
        key: &key,
        value: Some(&value),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[operation], durability)
}

fn holds(device: &Arc<SimDevice>, count: u32, len_bytes: impl Fn(u32) -> usize) {
    let device = Arc::clone(device) as Arc<dyn Device>;
    let engine = Engine::open(device, options()).unwrap();
    let region = engine.existing_region("cities").unwrap();
    for number in 0..count {
        let found = engine.get(&region, &number.to_be_bytes(), None, <[u8]>::len);
        assert_eq!(found.unwrap(), Some(len_bytes(number)), "key {number}");
    }
    let problems = engine.verify().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn what_landed_is_in_every_backup_that_was_sealed() {
    let group = group(&[sparse(), sparse()], Capacity::default());
    let len_bytes = |number: u32| 10 + (number as usize * 97) % 9000;
    for number in 0..900 {
        put(
            group.primary.engine(),
            number,
            len_bytes(number),
            Durability::Buffered,
        )
        .unwrap();
    }
    let tail = group.primary.engine().log_tail();
    while group.primary.mirror().landed() < tail {
        std::thread::sleep(Duration::from_millis(1));
    }
    for backup in &group.backups {
        backup.follower.seal().unwrap();
        holds(&backup.device, 900, len_bytes);
    }
    group.primary.abandon("a higher term was sealed").unwrap();
}

#[test]
fn what_is_durable_waits_for_a_silent_member_until_it_is_removed() {
    let group = group(&[sparse(), sparse()], Capacity::default());
    put(group.primary.engine(), 0, 100, Durability::Sync).unwrap();
    let silent = &group.backups[1];
    drop(silent.link.0.lock().take());
    let engine = Arc::clone(group.primary.engine());
    let waits = std::thread::spawn(move || put(&engine, 1, 100, Durability::Sync));
    // The write has come as far as the link that is cut.
    while group.primary.mirror().standing()[1].ended.is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(80));
    assert!(
        !waits.is_finished(),
        "a member does not count although it was not removed"
    );
    assert!(group.primary.mirror().standing()[1].is_counted);
    group.primary.mirror().remove(silent.member);
    waits.join().unwrap().unwrap();
    silent.follower.stop();
    group.backups[0].follower.seal().unwrap();
    holds(&group.backups[0].device, 2, |_| 100);
    group.primary.abandon("the test ends").unwrap();
}

#[test]
fn what_counts_as_landed_does_not_grow_while_it_is_frozen() {
    let group = group(&[sparse()], Capacity::default());
    put(group.primary.engine(), 0, 100, Durability::Sync).unwrap();
    let mirror = group.primary.mirror();
    let frozen = mirror.freeze();
    // Durable on all members, the one to be removed included, is acknowledged as before.
    put(group.primary.engine(), 1, 100, Durability::Sync).unwrap();
    assert_eq!(mirror.landed(), frozen);
    mirror.thaw();
    assert!(mirror.landed() > frozen);
    group.primary.abandon("the test ends").unwrap();
}

#[test]
fn a_write_that_a_backup_has_no_space_for_fails_alone() {
    let small = SimOptions {
        space_bytes_max: 40 << 20,
        ..sparse()
    };
    let group = group(&[small], Capacity::default());
    let engine = group.primary.engine();
    let mut number = 0;
    let error = loop {
        match put(engine, number, 1 << 20, Durability::Sync) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
        assert!(number < 60, "the backup has no such space");
    };
    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
    // Small writes go on.
    put(engine, 0, 10, Durability::Sync).unwrap();
    group.backups[0].follower.seal().unwrap();
    group.primary.abandon("the test ends").unwrap();
}

#[test]
fn a_backup_that_lacks_space_it_has_granted_leaves() {
    let small = SimOptions {
        space_bytes_max: 24 << 20,
        ..sparse()
    };
    let capacity = Capacity {
        space_bytes: 8 << 20,
        ..Capacity::default()
    };
    let mirror = Arc::new(OnceLock::new());
    let backup = Backup::start(2, small, capacity, &mirror);
    // The ballast lies elsewhere here: giving it back makes no room, so the follower has to end rather than refuse.
    let mut outlet = kreon_wire::Outlet::new(
        GROUP,
        TERM,
        lsn_at(1, LOG_HEADER_BYTES),
        Room {
            space: GrantBytes(8 << 20),
            ..Room::default()
        },
    );
    backup.device.set_space_bytes_max(0);
    for packet in [
        kreon_wire::StreamPacket::Grow { len_bytes: 8 << 20 },
        kreon_wire::StreamPacket::Allocate {
            offset: 0,
            len_bytes: 2 << 20,
        },
    ] {
        let encoded = outlet.number(&packet).to_vec();
        let frame = Frame::open(&encoded, Role::PeerStream).unwrap();
        backup.follower.take(&frame).unwrap();
    }
    let error = backup.follower.seal().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
}
