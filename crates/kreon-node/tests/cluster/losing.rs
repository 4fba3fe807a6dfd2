//! A server is lost.

use kreon_wire::{Durability, FailureKind, GroupId, Order, ServerId, WriteBody};

use super::house::House;
use super::raw::{Raw, put_body};

#[test]
fn nothing_acknowledged_is_missing_after_the_primary_is_lost() {
    let mut house = House::new(3, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    let mut client = house.client_of(group);
    let key = |number: u64| format!("key-{number}");
    let count = 500;
    let numbers: Vec<u64> = (0..count)
        .map(|number| client.send(group, &put_body("t", key(number).as_bytes(), b"value")))
        .collect();
    // About half of them are answered when the primary goes.
    for number in &numbers[..250] {
        client.done(*number).unwrap();
    }
    let snapshot = client.snapshot(group).unwrap();
    let lost = house.primary(group).me();
    house.take(lost.server).abandon();
    let mut acknowledged = vec![true; 250];
    for number in &numbers[250..] {
        // The link ends with the server; what was not answered before is unknown.
        let is_done = match client.receive(*number) {
            Ok(packet) => {
                let frame = kreon_wire::Frame::open(&packet, kreon_wire::Role::Client).unwrap();
                kreon_wire::Reply::decode(&frame) == Ok(kreon_wire::Reply::Done)
            }
            Err(_) => false,
        };
        acknowledged.push(is_done);
    }

    let new = house.primary(group).me();
    assert_ne!(new.server, lost.server);
    let mut client = house.client_of(group);
    for (number, is_done) in acknowledged.iter().enumerate() {
        let found = client.get(group, "t", key(number as u64).as_bytes());
        let is_there = found.unwrap().is_some();
        assert!(is_there || !is_done, "{} is missing", key(number as u64));
    }
    let failed = client.get_at(group, "t", b"k", snapshot).unwrap_err();
    assert_eq!(
        failed.kind,
        FailureKind::Closed,
        "snapshots end with the term"
    );
    client.put(group, "t", b"after", b"1").unwrap();

    // It comes back, and joins.
    house.start(lost.server.0);
    house.wait("three members are in sync", |house| {
        house.config(group).in_sync.len() == 3
    });
}

#[test]
fn a_cluster_that_ended_goes_on_where_it_was() {
    let mut house = House::new(2, 2);
    let node = house.make_table("t", &["m"]);
    let put = |house: &House, key: &str, group: GroupId| {
        let mut client = house.client_of(group);
        client.put(group, "t", key.as_bytes(), b"1").unwrap();
    };
    put(&house, "a", node.ranges[0].1);
    put(&house, "z", node.ranges[1].1);
    house.nodes.drain(..).for_each(|node| node.end());
    house.start(1);
    house.start(2);
    for (key, group) in [("a", node.ranges[0].1), ("z", node.ranges[1].1)] {
        let mut client = house.client_of(group);
        let found = house.until(|| client.get(group, "t", key.as_bytes()));
        assert_eq!(found.as_deref(), Some(&b"1"[..]));
    }
}

#[test]
fn a_group_goes_on_with_what_one_server_has_when_an_operator_accepts_the_loss() {
    let mut house = House::new(2, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    let mut client = house.client_of(group);
    let mut write = WriteBody::new();
    write.put("t", b"k", b"1").unwrap();
    client.write(group, write, Durability::Sync).unwrap();
    let order = Order::AcceptLoss {
        group,
        server: ServerId(1),
        vouched: None,
    };
    let mut operator = Raw::connect(&house.master().address());
    let failed = operator.order(order).unwrap_err();
    assert_eq!(failed.kind, FailureKind::InvalidArgument, "nobody is lost");
    for node in house.nodes.drain(..) {
        node.abandon();
    }
    house.start(1);
    let mut operator = Raw::connect(&house.master().address());
    house.until(|| operator.order(order));
    let mut client = house.client_of(group);
    let found = house.until(|| client.get(group, "t", b"k"));
    assert_eq!(found.as_deref(), Some(&b"1"[..]));
    let alone = house.config(group).in_sync;
    assert!(alone.iter().all(|member| member.server == ServerId(1)));
}
