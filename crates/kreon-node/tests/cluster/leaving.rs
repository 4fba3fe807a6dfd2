//! Servers that are to end, and those that have too much.

use std::time::{Duration, Instant};

use kreon_wire::{GroupId, Order, ServerId};

use super::house::House;
use super::raw::Raw;

fn led_by(house: &House, server: ServerId) -> Vec<GroupId> {
    let groups = house.nodes.iter().flat_map(|node| node.status().groups);
    let mut groups: Vec<_> = groups.map(|group| group.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let leads = |group: &GroupId| {
        let primary = house.config(*group).primary;
        primary.is_some_and(|primary| primary.server == server)
    };
    groups.into_iter().filter(leads).collect()
}

#[test]
fn a_server_hands_its_offices_over_before_it_ends() {
    let mut house = House::new(3, 4);
    house.make_table("t", &["h", "p", "u"]);
    // The master, which is asked to do it, too.
    let leaving = house.master().me().server;
    if led_by(&house, leaving).is_empty() {
        let mut operator = Raw::connect(&house.master().address());
        let order = Order::Promote {
            group: GroupId(1),
            server: leaving,
        };
        house.until(|| operator.order(order));
    }
    let led = led_by(&house, leaving);
    let node = house.take(leaving);
    assert_eq!(node.hand_over(Duration::from_secs(20)), 0);
    let begun = Instant::now();
    for group in &led {
        // Somebody serves already: no call waits for the end of a session.
        assert_ne!(house.primary(*group).me().server, leaving);
    }
    assert!(
        begun.elapsed() < Duration::from_millis(500),
        "{:?}",
        begun.elapsed()
    );
    node.end();
    for (group, key) in (1..=4).map(GroupId).zip(["a", "h", "p", "u"]) {
        let range = house.config(group).ranges.remove(0);
        let key = if range.start.is_empty() {
            key.as_bytes()
        } else {
            &range.start
        };
        house.until(|| house.client_of(group).put(group, "t", key, b"1"));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_server_that_is_alone_keeps_its_offices() {
    let house = House::new(1, 1);
    let begun = Instant::now();
    assert_eq!(house.nodes[0].hand_over(Duration::from_secs(20)), 1);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_server_is_the_primary_of_no_more_than_it_takes_where_another_one_can_be() {
    // Server 1 takes one group, the other one more than there are.
    let most = |server| if server == 1 { 1 } else { 8 };
    let mut house = House::with_primaries_max(2, 2, most);
    let (full, other) = (ServerId(1), ServerId(2));
    // It is chosen where it is the only one.
    house.take(other).abandon();
    house.wait("it has both", |house| {
        [1, 2].map(GroupId).iter().all(|group| {
            let found = house.try_primary(*group);
            found.is_some_and(|(node, _)| node.me().server == full)
        })
    });
    let status = house.primary(GroupId(1)).status();
    assert_eq!((status.primaries(), status.primaries_max), (2, 1));
    // And gives one up when it is not any more.
    house.start(other.0);
    house.wait("the other one has one of them", |house| {
        led_by(house, full).len() == 1 && led_by(house, other).len() == 1
    });
}
