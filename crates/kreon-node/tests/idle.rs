//! Clients that do nothing: in a process of its own, as threads are counted.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "cluster/house.rs"]
mod house;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "cluster/raw.rs"]
mod raw;

use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_wire::GroupId;

use house::{CLUSTER, House};
use raw::link_of;

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
