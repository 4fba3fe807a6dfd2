//! Answers that do not come.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kreon_client::{ClientOptions, Cluster, Durability, ErrorKind, Timing};

use crate::world::Scene;

/// A client that waits a second for an answer, and five for the end.
fn patient(scene: &Scene) -> Cluster {
    let usual = Scene::options();
    scene.connect_with(ClientOptions {
        timing: Timing {
            limit_us: 5_000_000,
            patience_us: 1_000_000,
            ..usual.timing
        },
        ..usual
    })
}

#[test]
fn a_write_whose_link_closes_is_unknown_and_not_sent_again() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    for (number, key) in ["a", "b"].into_iter().enumerate() {
        let faults = &scene.world.faults;
        let close = [&faults.close_after_append, &faults.close_before][number];
        close.store(1, Ordering::SeqCst);
        let error = t.put(key, "1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        assert_eq!(scene.world.appended(key), 1 - number);
    }
    // The next one takes a new link.
    t.put("c", "1").unwrap();
    assert_eq!(scene.servers[0].links(), 3);
}

#[test]
fn a_write_that_nobody_answers_is_unknown_in_the_end() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    scene.world.faults.lose_answers.store(1, Ordering::SeqCst);
    let start = Instant::now();
    let error = t.put("a", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    let took = start.elapsed();
    assert!(
        took > Duration::from_millis(1400) && took < Duration::from_secs(6),
        "{took:?}"
    );
    assert_eq!(scene.world.appended("a"), 1);
}

#[test]
fn a_write_whose_primary_does_not_know_is_unknown_in_its_words() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    scene.world.faults.unknown.store(1, Ordering::SeqCst);
    let error = t.put("a", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert_eq!(error.text(), "so says the test");
    assert_eq!(scene.world.appended("a"), 1);
}

#[test]
fn reads_are_sent_again_until_somebody_answers() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    t.put("a", "1").unwrap();
    scene.world.faults.ignore.store(2, Ordering::SeqCst);
    assert_eq!(t.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    scene.world.faults.close_before.store(3, Ordering::SeqCst);
    assert_eq!(t.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_server_that_nobody_reaches_ends_calls_as_unavailable_in_time() {
    let mut scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    scene.servers[0].end();
    let start = Instant::now();
    let read = t.get_later("a").unwrap();
    let error = t.put("a", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("server 1"), "{error}");
    assert_eq!(read.wait().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(start.elapsed() < Duration::from_secs(6));
    // The other group goes on.
    t.put("z", "1").unwrap();
}

#[test]
fn a_server_that_ends_while_it_is_asked_does_not_take_reads_with_it() {
    let mut scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    t.put("a", "1").unwrap();
    scene.world.faults.hold.store(true, Ordering::SeqCst);
    let read = t.get_later("a").unwrap();
    let write = t.put_later("b", "1", Durability::Replicated).unwrap();
    while scene.world.faults.requests.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    scene.servers[0].end();
    scene.world.faults.hold.store(false, Ordering::SeqCst);
    scene.world.move_group(1, Some(2), true);
    assert_eq!(write.wait().unwrap_err().kind(), ErrorKind::Unknown);
    assert_eq!(read.wait().unwrap().as_deref(), Some(&b"1"[..]));
    t.put("b", "2").unwrap();
    assert!(scene.world.appended("b") <= 2);
}

#[test]
fn calls_at_a_frozen_primary_end_when_another_one_is_in_office() {
    let scene = Scene::of_two();
    let t = patient(&scene).region("t").unwrap();
    t.put("a", "1").unwrap();
    // It takes requests, and says nothing any more; its link stays.
    scene.world.faults.ignore.store(2, Ordering::SeqCst);
    let start = Instant::now();
    let read = t.get_later("a").unwrap();
    let write = t.put_later("b", "1", Durability::Replicated).unwrap();
    while scene.world.faults.requests.load(Ordering::SeqCst) < 3 {
        std::thread::yield_now();
    }
    scene.world.move_group(1, Some(2), true);
    assert_eq!(read.wait().unwrap().as_deref(), Some(&b"1"[..]));
    assert!(start.elapsed() < Duration::from_millis(900), "at once");
    assert_eq!(write.wait().unwrap_err().kind(), ErrorKind::Unknown);
    assert!(start.elapsed() < Duration::from_secs(3), "not at the limit");
    assert_eq!(scene.world.appended("b"), 0, "never sent twice");
    t.put("b", "2").unwrap();
}

#[test]
fn a_snapshot_at_a_frozen_primary_ends_when_another_one_is_in_office() {
    let scene = Scene::of_two();
    let t = patient(&scene).region("t").unwrap();
    t.put("a", "1").unwrap();
    let snapshot = t.snapshot().unwrap();
    scene.world.faults.ignore.store(u32::MAX, Ordering::SeqCst);
    scene.world.move_group(1, Some(2), true);
    let start = Instant::now();
    let error = snapshot.get("a").unwrap_err();
    scene.world.faults.ignore.store(0, Ordering::SeqCst);
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert!(
        start.elapsed() < Duration::from_millis(1500),
        "one patience"
    );
}

#[test]
fn an_answer_that_is_none_costs_the_link() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    let t = cluster.region("t").unwrap();
    scene.world.faults.nonsense.store(1, Ordering::SeqCst);
    assert_eq!(t.get("a").unwrap(), None, "asked again on another link");
    assert_eq!((cluster.violations(), scene.servers[0].links()), (1, 2));
}

#[test]
fn calls_end_when_the_last_handle_of_the_cluster_goes() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    scene.world.faults.hold.store(true, Ordering::SeqCst);
    let ticket = t.put_later("a", "1", Durability::Replicated).unwrap();
    drop(t);
    assert_eq!(ticket.wait().unwrap_err().kind(), ErrorKind::Closed);
    scene.world.faults.hold.store(false, Ordering::SeqCst);
}
