//! Orders of operators.

use kreon_wire::{FailureKind, GroupId, Order, ServerId};

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
