//! Orders of an operator, and how groups stand.

use std::sync::atomic::Ordering;

use kreon_client::{ErrorKind, GroupId, Order, ServerId, Stage, Verified};

use crate::world::Scene;

#[test]
fn an_order_finds_the_master_wherever_it_is() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    for master in [3, 2, 1, 3] {
        scene.world.master.store(master, Ordering::SeqCst);
        let (group, server) = (GroupId(1), ServerId(master));
        cluster.order(Order::Promote { group, server }).unwrap();
    }
    let ordered = scene.world.ordered.lock().clone();
    assert_eq!(ordered.len(), 4);
    assert!(ordered[2].contains("server 1"), "{ordered:?}");
}

#[test]
fn an_order_whose_answer_is_lost_is_given_again() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    scene.world.faults.close_before.store(2, Ordering::SeqCst);
    scene.world.faults.refuse.store(2, Ordering::SeqCst);
    cluster.drop_table("t").unwrap();
    assert_eq!(scene.world.ordered.lock().len(), 1);
}

#[test]
fn orders_to_a_primary_go_to_the_primary() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    scene.world.move_group(2, Some(1), true);
    let verified = Verified {
        problems: 0,
        pages: 7,
        records: 9,
    };
    assert_eq!(cluster.verify(GroupId(2)).unwrap(), verified);
    let compared = cluster.compare(GroupId(2)).unwrap();
    assert_eq!((compared.copies, compared.differing), (2, 1));
    assert_eq!(compared.worst, ServerId(2));
    let group = GroupId(2);
    cluster.order(Order::HandOver { group }).unwrap();
    scene.world.faults.close_before.store(1, Ordering::SeqCst);
    let lost = cluster.order(Order::HandOver { group }).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Unknown, "it would hand over twice");
    let nowhere = cluster.verify(GroupId(9)).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
}

#[test]
fn groups_tell_how_they_stand_at_each_member_that_answers() {
    let mut scene = Scene::of_two();
    let cluster = scene.connect();
    scene.servers[2].end();
    let groups = cluster.groups().unwrap();
    assert_eq!(groups.len(), 2);
    for group in groups {
        let primary = group.config.primary.unwrap();
        let backup = group.backups.unwrap()[0];
        assert_eq!((backup.member, backup.to_copy_bytes), (primary, 4));
        assert_eq!(group.standings.len(), 3);
        for (server, standing) in group.standings {
            match (server.0, standing) {
                (3, standing) => assert_eq!(standing.unwrap_err().kind(), ErrorKind::Unavailable),
                (_, standing) => assert_eq!(standing.unwrap().stage, Stage::Serving),
            }
        }
    }
}

#[test]
fn names_that_no_table_has_are_refused() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    for name in ["", "a/b", "a\n", &"x".repeat(256)] {
        let error = cluster.create_table(name, &["m"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:?}");
    }
    let error = cluster.create_table("u", &["m", "b"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(scene.world.ordered.lock().is_empty());
    cluster.create_table("t", &["m"]).unwrap();
    assert_eq!(cluster.tables().unwrap(), Vec::<String>::new());
}
