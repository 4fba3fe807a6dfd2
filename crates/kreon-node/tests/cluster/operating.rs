//! Orders of operators.

use std::time::{Duration, Instant};

use kreon_coord::{Command, Mode};
use kreon_wire::{FailureKind, GroupConfig, GroupId, Member, Order, ProcessId, Request, ServerId};

use super::house::House;
use super::raw::{Raw, all_of};

#[test]
fn tables_are_made_and_dropped_by_the_master_alone_and_come_again_empty() {
    let house = House::new(3, 2);
    let master = house.master().me();
    let other = house.nodes.iter().find(|node| node.me() != master).unwrap();
    let failed = Raw::connect(&other.address())
        .create_table("t", &[])
        .unwrap_err();
    assert_eq!(
        (failed.kind, failed.server),
        (FailureKind::NotMaster, master.server)
    );

    let node = house.make_table("t", &["m"]);
    let mut operator = Raw::connect(&house.master().address());
    operator.create_table("t", &["m"]).unwrap();
    let failed = operator.create_table("t", &["n"]).unwrap_err();
    assert_eq!(failed.kind, FailureKind::Exists);
    let group = node.ranges[0].1;
    let mut client = house.client_of(group);
    client.put(group, "t", b"a", b"1").unwrap();

    operator.order(Order::DropTable { table: "t" }).unwrap();
    assert!(house.table("t").is_none());
    for group in [1, 2].map(GroupId) {
        assert!(house.config(group).ranges.is_empty());
    }
    let failed = client.put(group, "t", b"a", b"1").unwrap_err();
    assert_eq!(failed.kind, FailureKind::Moved);
    let failed = operator.order(Order::DropTable { table: "t" }).unwrap_err();
    assert_eq!(failed.kind, FailureKind::NoTable);

    let node = house.make_table("t", &[]);
    let group = node.ranges[0].1;
    let mut client = house.client_of(group);
    assert!(client.scan(group, all_of("t", 10), |_| {}).is_empty());
}

#[test]
fn a_server_that_is_added_joins_and_one_that_is_removed_keeps_nothing() {
    let mut house = House::new(2, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    let mut client = house.client_of(group);
    client.put(group, "t", b"k", b"1").unwrap();
    let mut operator = Raw::connect(&house.master().address());
    let server = ServerId(3);
    let failed = operator
        .order(Order::AddMember { group, server })
        .unwrap_err();
    assert_eq!(
        failed.kind,
        FailureKind::InvalidArgument,
        "it has never run"
    );
    house.start(3);
    house.wait("it has registered", |house| {
        let path = kreon_coord::Paths::new(super::house::CLUSTER).server(3);
        house.talk().read(&path, false).unwrap().is_some()
    });
    operator.order(Order::AddMember { group, server }).unwrap();
    operator.order(Order::AddMember { group, server }).unwrap();
    house.wait("it is in sync", |house| {
        house
            .config(group)
            .in_sync
            .iter()
            .any(|member| member.server == server)
    });
}

#[test]
fn a_group_moves_from_one_server_to_another_while_it_is_written_to() {
    let mut house = House::new(2, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    house.start(3);
    house.wait("it has registered", |house| {
        let path = kreon_coord::Paths::new(super::house::CLUSTER).server(3);
        house.talk().read(&path, false).unwrap().is_some()
    });
    let mut operator = Raw::connect(&house.master().address());
    let in_sync = |house: &House, server: ServerId| {
        let config = house.config(group);
        config.in_sync.iter().any(|member| member.server == server)
    };
    let (from, to) = (house.primary(group).me().server, ServerId(3));
    let put = |house: &House, number: u32| {
        let key = format!("k{number:03}");
        // Refused while nobody serves; nothing was appended then.
        house.until(|| house.client_of(group).put(group, "t", key.as_bytes(), b"1"));
    };
    put(&house, 0);
    operator
        .order(Order::AddMember { group, server: to })
        .unwrap();
    house.wait("it is in sync", |house| in_sync(house, to));
    put(&house, 1);
    house.until(|| operator.order(Order::Promote { group, server: to }));
    assert_eq!(house.primary(group).me().server, to);
    put(&house, 2);
    let failed = operator
        .order(Order::RemoveMember { group, server: to })
        .unwrap_err();
    assert_eq!(
        failed.kind,
        FailureKind::InvalidArgument,
        "it is the primary"
    );
    operator
        .order(Order::RemoveMember {
            group,
            server: from,
        })
        .unwrap();
    operator
        .order(Order::RemoveMember {
            group,
            server: from,
        })
        .unwrap();
    let config = house.config(group);
    assert!(!config.members.contains(&from) && !in_sync(&house, from));
    house.wait("its volume is deleted", |house| {
        let node = house.nodes.iter().find(|node| node.me().server == from);
        node.unwrap().status().group(group).is_none()
    });
    put(&house, 3);
    let mut client = house.client_of(group);
    assert_eq!(client.scan(group, all_of("t", 10), |_| {}).len(), 4);
}

/// A group that the coordinator has, and nobody leads: what is ordered for it takes its time.
fn make_group_without_primary(house: &House, group: GroupId) {
    let start = |server| Member {
        server: ServerId(server),
        process: ProcessId([0; 16]),
    };
    let config = GroupConfig {
        group,
        in_sync: vec![start(1), start(2)],
        members: vec![ServerId(1), ServerId(2)],
        primary: None,
        min_in_sync: 1,
        ranges: Vec::new(),
        ..house.config(GroupId(1))
    };
    let path = kreon_coord::Paths::new(super::house::CLUSTER).group(group.0);
    let create = Command::Create(path, config.encode().into(), Mode::Persistent);
    house.talk().call(create).unwrap();
}

#[test]
fn an_order_that_takes_long_keeps_no_other_one_waiting() {
    let house = House::new(2, 2);
    let slow = GroupId(9);
    make_group_without_primary(&house, slow);
    let mut operator = Raw::connect(&house.master().address());
    let order = |group, server| Order::RemoveMember {
        group,
        server: ServerId(server),
    };
    let begun = Instant::now();
    operator.send(GroupId(0), &Request::Order(order(slow, 2)).body());
    operator.create_table("t", &["m"]).unwrap();
    // Not beside another one about the same group, which may be whatever it is.
    let failed = operator.order(order(slow, 1)).unwrap_err();
    assert_eq!(failed.kind, FailureKind::Busy);
    assert!(
        failed.text.starts_with("group 9: another order"),
        "{failed:?}"
    );
    // Two promotions at a time.
    let mut promoted = Vec::new();
    for group in [1, 2].map(GroupId) {
        let from = house.primary(group).me().server;
        let server = ServerId(3 - from.0);
        let body = Request::Order(Order::Promote { group, server }).body();
        promoted.push((group, server, operator.send(GroupId(0), &body)));
    }
    for (group, server, number) in promoted {
        if operator.done(number).is_err() {
            // The master had not heard yet that the primary serves.
            house.until(|| operator.order(Order::Promote { group, server }));
        }
        assert_eq!(house.config(group).primary.unwrap().server, server);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "the first one runs"
    );
}

#[test]
fn a_server_that_ends_gives_its_orders_up() {
    let mut house = House::new(2, 1);
    let slow = GroupId(9);
    make_group_without_primary(&house, slow);
    let master = house.master().me().server;
    let mut operator = Raw::connect(&house.master().address());
    let order = Order::RemoveMember {
        group: slow,
        server: ServerId(2),
    };
    operator.send(GroupId(0), &Request::Order(order).body());
    // The next one of a link is taken up after the one before.
    let failed = operator.order(order).unwrap_err();
    assert_eq!(failed.kind, FailureKind::Busy);
    let begun = Instant::now();
    house.take(master).end();
    assert!(begun.elapsed() < Duration::from_secs(5));
}
