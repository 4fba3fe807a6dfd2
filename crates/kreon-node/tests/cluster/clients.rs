//! Clients that do what they must not, or nothing.

use std::io::IoSlice;
use std::time::Duration;

use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_node::ClientLimits;
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{
    Address as Place, Frame, GroupId, Packet, Request, Role, SnapshotId, Term, Violation,
};

use super::house::{CLUSTER, House};
use super::raw::{Raw, link_of, put_body};

/// A request whose header says what it is.
fn request(body: &[u8]) -> Vec<u8> {
    let to = Place {
        group: GroupId(1),
        term: Term(0),
        number: 1,
    };
    Packet::request(&to, body).to_vec()
}

#[test]
fn a_request_that_is_not_right_ends_its_link_and_is_counted() {
    let house = House::new(1, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    let good = put_body("t", b"k", b"1");
    let mut flipped = request(&good);
    flipped[HEADER_BYTES + 20] ^= 1;
    let mut no_kind = good.clone();
    no_kind[0] = 99;
    let mut many = good.clone();
    many[4] = 200;
    let get = Request::Get {
        table: "t",
        key: &[0; 70_000],
        snapshot: SnapshotId(0),
    };
    let mut reserved = Request::Snapshot.body();
    reserved[3] = 1;
    let release = Request::Release {
        snapshot: SnapshotId(0),
    };
    let cases = [
        (flipped, Violation::Checksum),
        (request(&no_kind), Violation::FieldValue),
        (request(&many), Violation::Count),
        (request(&get.body()), Violation::Count),
        (request(&reserved), Violation::FieldBits),
        (request(&release.body()), Violation::FieldValue),
        (request(&good[..good.len() - 1]), Violation::Count),
    ];
    let node = house.primary(group);
    for (count, (packet, class)) in cases.iter().enumerate() {
        let before = violations(node, *class);
        let mut client = Raw::connect(&node.address());
        client.link.send(&[IoSlice::new(packet)]).unwrap();
        client.wait_closed();
        house.wait("it is counted", |_| violations(node, *class) == before + 1);
        let closed = node.status().clients.closed_for_violation;
        assert_eq!(closed, count as u64 + 1, "{class:?}");
    }
    // Others are served.
    let mut client = house.client_of(group);
    client.put(group, "t", b"k", b"1").unwrap();
}

fn violations(node: &kreon_node::Node, class: Violation) -> u64 {
    let status = node.status();
    let own = status.violations.iter().find(|(found, _)| *found == class);
    own.map_or(0, |(_, count)| *count)
}

#[test]
fn clients_that_do_nothing_cost_no_threads() {
    let house = House::new(1, 1);
    let group = GroupId(1);
    let address = house.primary(group).address();
    let fabric = TcpFabric::new(TcpSettings::new(CLUSTER, None)).unwrap();
    let before = threads();
    let idle: Vec<_> = (0..150).map(|_| link_of(&fabric, &address)).collect();
    house.wait("all are there", |house| {
        house.primary(group).status().clients.links == 150
    });
    assert!(
        threads() <= before + 2,
        "{} threads, {before} before",
        threads()
    );
    drop(idle);
    house.wait("all have gone", |house| {
        house.primary(group).status().clients.links == 0
    });
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn a_client_that_reads_no_answers_is_closed_and_its_memory_given_back() {
    let limits = ClientLimits {
        unread_ms: 300,
        ..ClientLimits::default()
    };
    let house = House::with_limits(1, 1, limits);
    let group = house.make_table("t", &[]).ranges[0].1;
    let mut client = house.client_of(group);
    client.put(group, "t", b"k", &vec![7; 1 << 20]).unwrap();
    let get = Request::Get {
        table: "t",
        key: b"k",
        snapshot: SnapshotId(0),
    };
    let numbers: Vec<u64> = (0..24).map(|_| client.send(group, &get.body())).collect();
    let node = house.primary(group);
    house.wait("it is closed", |_| node.status().clients.closed_unread == 1);
    house.wait("nothing is kept for it", |_| {
        let clients = node.status().clients;
        clients.bytes == 0 && clients.under_way == 0
    });
    // What it had been sent by then it may read.
    let mut last = Ok(());
    for number in numbers {
        last = client.receive(number).map(|packet| {
            let frame = Frame::open(&packet, Role::Client).unwrap();
            assert!(frame.body().len() > 1 << 20);
        });
        if last.is_err() {
            break;
        }
    }
    assert!(last.is_err());
}

#[test]
fn a_client_that_asks_for_more_than_it_may_is_told_that_it_is_busy() {
    let limits = ClientLimits {
        link_bytes_max: 18 << 20,
        bytes_max: 18 << 20,
        snapshots_max: 3,
        snapshot_idle_ms: 200,
        ..ClientLimits::default()
    };
    let house = House::with_limits(1, 1, limits);
    let group = house.make_table("t", &[]).ranges[0].1;
    let mut client = house.client_of(group);
    let taken = [(); 3].map(|()| client.snapshot(group).unwrap());
    let failed = client.snapshot(group).unwrap_err();
    assert_eq!(failed.kind, kreon_wire::FailureKind::Busy);
    std::thread::sleep(Duration::from_millis(200));
    house.wait("idle snapshots are closed", |house| {
        house.primary(group).status().clients.snapshots == 0
    });
    let failed = client.get_at(group, "t", b"k", taken[0]).unwrap_err();
    assert_eq!(failed.kind, kreon_wire::FailureKind::Closed);

    client.put(group, "t", b"k", &vec![7; 8 << 20]).unwrap();
    let get = Request::Get {
        table: "t",
        key: b"k",
        snapshot: SnapshotId(0),
    };
    let numbers: Vec<u64> = (0..8).map(|_| client.send(group, &get.body())).collect();
    // It reads nothing before.
    house.wait("it is busy", |house| {
        house.primary(group).status().clients.busy > 0
    });
    let mut busy = 0;
    for number in numbers {
        let found = client.answer(number, |_| Some(()));
        busy += u64::from(found.is_err_and(|f| f.kind == kreon_wire::FailureKind::Busy));
    }
    assert!(busy > 0 && busy < 8, "{busy} of 8");
    assert_eq!(house.primary(group).status().clients.busy, busy);
}
