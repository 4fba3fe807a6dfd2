//! Many calls under way at once.

use std::sync::atomic::Ordering;

use kreon_client::{ClientOptions, Durability};

use crate::world::Scene;

#[test]
fn ten_thousand_calls_are_under_way_within_the_memory_that_they_may_have() {
    let scene = Scene::of_two();
    let memory_bytes = 16 << 20;
    let cluster = scene.connect_with(ClientOptions {
        memory_bytes,
        ..Scene::options()
    });
    let t = cluster.region("t").unwrap();
    scene.world.faults.hold.store(true, Ordering::SeqCst);
    let key = |number: usize| format!("{}{number}", ["a", "z"][number % 2]);
    let begin = |number: usize| {
        t.put_later(key(number), [7; 100], Durability::Replicated)
            .unwrap()
    };
    let tickets: Vec<_> = (0..10_000).map(begin).collect();
    assert_eq!(cluster.calls(), 10_000);
    assert!(
        cluster.used_bytes() <= memory_bytes,
        "{}",
        cluster.used_bytes()
    );
    scene.world.faults.hold.store(false, Ordering::SeqCst);
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!((cluster.calls(), cluster.used_bytes()), (0, 0));
    let groups = scene.world.groups.lock();
    let mut appended: Vec<_> = groups
        .values()
        .flat_map(|group| group.appended.concat())
        .collect();
    assert_eq!(appended.len(), 10_000);
    appended.sort_unstable();
    appended.dedup();
    assert_eq!(appended.len(), 10_000, "nothing is written twice");
}

#[test]
fn who_makes_more_calls_than_memory_holds_waits() {
    let scene = Scene::of_two();
    let cluster = scene.connect_with(ClientOptions {
        memory_bytes: 100_000,
        ..Scene::options()
    });
    let t = cluster.region("t").unwrap();
    let value = vec![7; 30_000];
    let tickets: Vec<_> = (0..100)
        .map(|number| {
            let ticket = t
                .put_later(format!("a{number}"), &value, Durability::Replicated)
                .unwrap();
            assert!(cluster.used_bytes() <= 100_000, "{}", cluster.used_bytes());
            ticket
        })
        .collect();
    tickets
        .into_iter()
        .for_each(|ticket| ticket.wait().unwrap());
    // One alone may have more.
    t.put("b", vec![7; 200_000]).unwrap();
}

#[test]
fn what_a_link_has_no_room_for_is_sent_later_and_once() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    let value = vec![7; 300_000];
    scene.world.faults.hold.store(true, Ordering::SeqCst);
    let begin = |number| {
        t.put_later(format!("a{number:03}"), &value, Durability::Replicated)
            .unwrap()
    };
    let tickets: Vec<_> = (0..100).map(begin).collect();
    scene.world.faults.hold.store(false, Ordering::SeqCst);
    tickets
        .into_iter()
        .for_each(|ticket| ticket.wait().unwrap());
    let groups = scene.world.groups.lock();
    let appended = groups[&1].appended.concat();
    let expected: Vec<_> = (0..100)
        .map(|number| format!("a{number:03}").into_bytes())
        .collect();
    assert_eq!(appended, expected, "in the order of one thread");
}

#[test]
fn threads_share_a_client() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let t = cluster.region("t").unwrap();
            scope.spawn(move || {
                for number in 0..200 {
                    let key = format!("{}{thread} {number}", ["a", "z"][number % 2]);
                    t.put(&key, &key).unwrap();
                    assert_eq!(t.get(&key).unwrap(), Some(key.into_bytes()));
                }
            });
        }
    });
    assert_eq!(cluster.region("t").unwrap().scan(..).count(), 1600);
}
