//! Calls when nothing goes wrong but the map.

use std::sync::atomic::Ordering;

use kreon_client::{Durability, ErrorKind, WriteBatch};

use crate::world::{Scene, range};

#[test]
fn what_was_put_is_got_from_whichever_group() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    t.put("athens", "10431").unwrap();
    t.put_with("xanthi", "67100", Durability::Sync).unwrap();
    assert_eq!(t.get("athens").unwrap().as_deref(), Some(&b"10431"[..]));
    assert_eq!(t.get("xanthi").unwrap().as_deref(), Some(&b"67100"[..]));
    let values = t
        .get_many(&["xanthi", "nowhere", "athens", "xanthi"])
        .unwrap();
    let expected = [Some("67100"), None, Some("10431"), Some("67100")];
    assert_eq!(
        values,
        expected.map(|value| value.map(|v| v.as_bytes().to_vec()))
    );
    t.delete("athens").unwrap();
    assert!(!t.contains("athens").unwrap());
    assert_eq!(scene.world.groups.lock()[&1].appended.len(), 2);
    let cluster = scene.connect();
    assert_eq!(cluster.region("u").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!((cluster.calls(), cluster.used_bytes()), (0, 0));
}

#[test]
fn calls_follow_a_group_that_moved_and_write_once() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    t.put("a", "1").unwrap();
    for (to, key) in [(2, "b"), (3, "c"), (1, "d")] {
        scene.world.move_group(1, Some(to), true);
        t.put(key, "2").unwrap();
        assert_eq!(t.get(key).unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(scene.world.appended(key), 1);
    }
}

#[test]
fn a_call_waits_for_a_primary() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    t.put("a", "1").unwrap();
    scene.world.move_group(1, None, true);
    let ticket = t.put_later("b", "2", Durability::Replicated).unwrap();
    let read = t.get_later("a").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!ticket.is_done() && !read.is_done());
    scene.world.move_group(1, Some(3), true);
    ticket.wait().unwrap();
    assert_eq!(read.wait().unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(scene.world.appended("b"), 1);
}

#[test]
fn a_call_waits_until_the_map_tells_where_its_group_is() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    t.put("a", "1").unwrap();
    scene.world.move_group(1, Some(3), false);
    let ticket = t.put_later("b", "2", Durability::Replicated).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!ticket.is_done());
    scene.world.tell_all();
    ticket.wait().unwrap();
    assert_eq!(scene.world.appended("b"), 1);
}

#[test]
fn what_was_refused_is_sent_again_and_written_once() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    scene.world.faults.refuse.store(4, Ordering::SeqCst);
    scene.world.faults.busy.store(2, Ordering::SeqCst);
    t.put("a", "1").unwrap();
    assert_eq!(scene.world.appended("a"), 1);
    assert_eq!(scene.world.faults.requests.load(Ordering::SeqCst), 7);
}

#[test]
fn a_batch_over_groups_is_refused_unless_it_may_be_split() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    let t = cluster.region("t").unwrap();
    t.put("b", "old").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&t, "a", "1");
    batch.put(&t, "z", "2");
    batch.delete(&t, "b");
    let refused = cluster
        .write(batch.clone(), Durability::Replicated)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::CrossGroup);
    assert!(!t.contains("a").unwrap() && t.contains("b").unwrap());
    cluster
        .write(batch.split(true), Durability::Replicated)
        .unwrap();
    assert!(t.contains("a").unwrap() && t.contains("z").unwrap());
    assert!(!t.contains("b").unwrap());
    // Each part is one write.
    assert_eq!(scene.world.groups.lock()[&1].appended[1], [b"a", b"b"]);
}

#[test]
fn a_batch_is_split_anew_when_ranges_are_cut_or_move_under_it() {
    let halves = vec![vec![range("t", "", Some("m"))], vec![range("t", "m", None)]];
    let scene = Scene::new(&[halves, vec![vec![]]].concat());
    let cluster = scene.connect();
    let t = cluster.region("t").unwrap();
    let mut batch = WriteBatch::new();
    for key in ["a", "f", "z"] {
        batch.put(&t, key, "1");
    }
    batch.delete_range(&t, "b".."y");
    let whole = batch.clone();
    scene.world.hold_ranges(
        &[
            (1, vec![range("t", "", Some("c"))]),
            (2, vec![range("t", "m", None)]),
            (3, vec![range("t", "c", Some("m"))]),
        ],
        false,
    );
    cluster
        .write(batch.split(true), Durability::Replicated)
        .unwrap();
    let keys: Vec<_> = t.scan(..).map(|entry| entry.unwrap().0).collect();
    assert_eq!(
        keys,
        [b"a", b"z"],
        "{:?}",
        scene.world.groups.lock()[&3].appended
    );
    assert_eq!(scene.world.appended("f"), 1);
    // All of it lies in one group then, which is a write of all or nothing.
    scene.world.hold_ranges(
        &[
            (1, vec![range("t", "", Some("m")), range("t", "m", None)]),
            (2, vec![]),
            (3, vec![]),
        ],
        true,
    );
    cluster
        .write(whole.clone(), Durability::Replicated)
        .unwrap();
    let appended = scene.world.groups.lock()[&1].appended.last().unwrap().len();
    assert_eq!(appended, 5, "the deletion is cut by ranges");
    // And a batch that was of one group is of two.
    scene.world.hold_ranges(
        &[
            (1, vec![range("t", "", Some("m"))]),
            (2, vec![range("t", "m", None)]),
        ],
        true,
    );
    let refused = cluster.write(whole, Durability::Replicated).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::CrossGroup);
}

#[test]
fn a_batch_that_nobody_takes_ends_in_time() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    let t = cluster.region("t").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&t, "a", "1");
    batch.put(&t, "b", "1");
    scene.world.move_group(1, Some(2), false);
    let start = std::time::Instant::now();
    let error = cluster.write(batch, Durability::Replicated).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(start.elapsed() < std::time::Duration::from_secs(5));
    assert_eq!(scene.world.appended("a"), 0);
}

#[test]
fn a_batch_within_a_group_is_one_write_over_tables() {
    let ranges = vec![range("t", "", None), range("u", "", None)];
    let scene = Scene::new(&[ranges]);
    let cluster = scene.connect();
    let (t, u) = (cluster.region("t").unwrap(), cluster.region("u").unwrap());
    let mut batch = WriteBatch::new();
    batch.put(&t, "k", "1");
    batch.put(&u, "k", "2");
    batch.delete_range(&t, "x"..);
    assert_eq!(batch.len(), 3);
    cluster.write(batch, Durability::Sync).unwrap();
    cluster.write(WriteBatch::new(), Durability::Sync).unwrap();
    assert_eq!(u.get("k").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(scene.world.groups.lock()[&1].appended.len(), 1);
}

#[test]
fn a_range_is_deleted_in_each_of_its_groups() {
    let scene = Scene::of_two();
    let t = scene.connect().region("t").unwrap();
    for key in ["a", "k", "m", "p", "z"] {
        t.put(key, "").unwrap();
    }
    t.delete_range("k".."z").unwrap();
    let keys: Vec<_> = t.scan(..).map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [b"a", b"z"]);
    t.delete_prefix("z").unwrap();
    assert_eq!(t.scan(..).count(), 1);
}

#[test]
fn what_is_too_long_is_refused_before_it_is_sent() {
    let scene = Scene::of_two();
    let cluster = scene.connect();
    let t = cluster.region("t").unwrap();
    let (key, value) = (vec![b'a'; 65_537], vec![0; (16 << 20) + 1]);
    let kind = |result: kreon_client::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(t.put(&key, "")), ErrorKind::InvalidArgument);
    assert_eq!(kind(t.put("a", &value)), ErrorKind::InvalidArgument);
    assert_eq!(kind(t.delete(&key)), ErrorKind::InvalidArgument);
    assert_eq!(kind(t.get(&key).map(drop)), ErrorKind::InvalidArgument);
    let mut batch = WriteBatch::new();
    batch.put(&t, "a", &value[..9 << 20]);
    batch.put(&t, "b", &value[..9 << 20]);
    assert_eq!(
        kind(cluster.write(batch, Durability::Sync)),
        ErrorKind::TooLarge
    );
    assert_eq!(scene.world.faults.requests.load(Ordering::SeqCst), 0);
    t.put(&key[1..], &value[1..]).unwrap();
    assert_eq!(t.get(&key[1..]).unwrap(), Some(value[1..].to_vec()));
}
