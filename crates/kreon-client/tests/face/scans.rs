//! Scans and snapshots.

use std::sync::atomic::Ordering;

use kreon_client::{ClientOptions, ErrorKind, Scan};

use crate::world::{Scene, range};

fn keys(scan: Scan) -> Vec<String> {
    scan.map(|entry| String::from_utf8(entry.unwrap().0).unwrap())
        .collect()
}

/// Group 1 has `a` to `c` and `m` to `t` without its end, group 2 the rest; three digits follow each letter.
fn scene() -> (Scene, Vec<String>) {
    let scene = Scene::new(&[
        vec![range("t", "", Some("d")), range("t", "m", Some("u"))],
        vec![range("t", "d", Some("m")), range("t", "u", None)],
    ]);
    let mut all = Vec::new();
    for letter in 'a'..='z' {
        let group = if ('d'..'m').contains(&letter) || letter >= 'u' {
            2
        } else {
            1
        };
        let keys: Vec<_> = (0..40)
            .map(|number| format!("{letter}{number:03}"))
            .collect();
        scene.world.fill(group, "t", keys.iter().cloned());
        all.extend(keys);
    }
    (scene, all)
}

/// Pages of about ten entries.
fn short_pages() -> ClientOptions {
    ClientOptions {
        page_bytes: 200,
        ..Scene::options()
    }
}

#[test]
fn a_scan_goes_over_all_groups_in_order_both_ways() {
    let (scene, mut all) = scene();
    for options in [short_pages(), Scene::options()] {
        let t = scene.connect_with(options).region("t").unwrap();
        assert_eq!(keys(t.scan(..)), all);
        assert_eq!(keys(t.scan("c039"..="m000")), all[119..=480]);
        assert_eq!(keys(t.scan("c0399".."m000")), all[120..480]);
        assert_eq!(keys(t.scan("x".."b")), Vec::<String>::new());
        assert_eq!(keys(t.prefix("d")), all[120..160]);
        assert_eq!(keys(t.scan("b".."u").limit(50)), all[40..90]);
        assert_eq!(keys(t.scan(..).keys_only()), all);
        assert!(
            t.scan(..)
                .keys_only()
                .all(|entry| entry.unwrap().1.is_empty())
        );
        all.reverse();
        assert_eq!(keys(t.scan_rev(..)), all);
        assert_eq!(
            keys(t.scan_rev("c039"..="m000").limit(3)),
            ["m000", "l039", "l038"]
        );
        all.reverse();
        let last = t.scan_rev(..).next().unwrap().unwrap();
        assert_eq!(last, (b"z039".to_vec(), b"value of z039".to_vec()));
    }
}

#[test]
fn a_scan_shows_one_moment_of_each_group() {
    let (scene, all) = scene();
    let t = scene.connect_with(short_pages()).region("t").unwrap();
    let mut scan = t.scan(..);
    assert_eq!(scan.next().unwrap().unwrap().0, b"a000");
    // Group 1 holds a later part, too.
    for key in ["a001", "c039", "t039"] {
        t.delete(key).unwrap();
    }
    t.put("t0391", "").unwrap();
    assert_eq!(keys(scan), all[1..]);
    assert_eq!(keys(t.scan(..)).len(), all.len() - 2);
}

#[test]
fn snapshots_of_scans_are_released() {
    let (scene, all) = scene();
    let cluster = scene.connect_with(short_pages());
    let t = cluster.region("t").unwrap();
    assert_eq!(keys(t.scan("a".."b")), all[..40]);
    let mut scan = t.scan("a".."b");
    scan.next().unwrap().unwrap();
    drop(scan);
    let mut scan = t.scan(..);
    scan.next().unwrap().unwrap();
    drop(scan);
    // What is released at the end is released by messages that nobody waits for.
    t.get("a").unwrap();
    t.get("d").unwrap();
    let taken = scene.world.last_snapshot.load(Ordering::SeqCst);
    let released = scene.world.released.lock().clone();
    assert!(
        taken >= 3 && (taken as usize) - released.len() <= 1,
        "{taken} {released:?}"
    );
}

#[test]
fn a_scan_whose_group_moves_after_its_first_page_is_closed() {
    let (scene, all) = scene();
    let t = scene.connect_with(short_pages()).region("t").unwrap();
    let mut scan = t.scan("d".."m");
    let first = scan.next().unwrap().unwrap();
    scene.world.move_group(2, Some(3), true);
    let mut shown = vec![first];
    let error = loop {
        match scan.next().unwrap() {
            Ok(entry) => shown.push(entry),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert!(scan.next().is_none(), "it has ended");
    // Another one goes on behind the last key.
    let last = String::from_utf8(shown.last().unwrap().0.clone()).unwrap();
    let rest = keys(t.scan((
        std::ops::Bound::Excluded(last.as_str()),
        std::ops::Bound::Excluded("m"),
    )));
    assert_eq!(shown.len() + rest.len(), 360);
    assert_eq!(rest.last(), Some(&all[479]));
}

#[test]
fn a_scan_follows_a_group_that_moved_before_its_first_page() {
    let (scene, all) = scene();
    let t = scene.connect_with(short_pages()).region("t").unwrap();
    let mut scan = t.scan("c".."e");
    scan.next().unwrap().unwrap();
    scene.world.move_group(2, Some(1), true);
    assert_eq!(keys(scan), all[81..160]);
}

#[test]
fn a_scan_whose_link_closes_ends_and_one_that_waits_goes_on() {
    let (scene, all) = scene();
    let t = scene.connect_with(short_pages()).region("t").unwrap();
    let mut scan = t.scan("d".."m");
    scan.next().unwrap().unwrap();
    scene.world.faults.close_before.store(1, Ordering::SeqCst);
    let error = scan.find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    let mut scan = t.scan("d".."m");
    scan.next().unwrap().unwrap();
    scene.world.faults.busy.store(2, Ordering::SeqCst);
    scene.world.faults.ignore.store(1, Ordering::SeqCst);
    assert_eq!(keys(scan), all[121..480]);
}

#[test]
fn a_snapshot_shows_what_was_and_ends_with_the_term() {
    let (scene, all) = scene();
    let t = scene.connect_with(short_pages()).region("t").unwrap();
    let snapshot = t.snapshot().unwrap();
    t.put("a000", "new").unwrap();
    t.delete("z039").unwrap();
    assert_eq!(
        snapshot.get("a000").unwrap(),
        Some(b"value of a000".to_vec())
    );
    assert_eq!(snapshot.get("nothing").unwrap(), None);
    assert_eq!(keys(snapshot.scan(..)), all);
    let back = keys(snapshot.scan_rev("y".."z001"));
    assert_eq!((back.len(), back[0].as_str()), (41, "z000"));
    scene.world.move_group(1, Some(3), true);
    assert_eq!(snapshot.get("a000").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(
        snapshot.get("z039").unwrap(),
        Some(b"value of z039".to_vec())
    );
    let error = snapshot.scan(..).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Closed);
    drop(snapshot);
    assert_eq!(t.get("z039").unwrap(), None);
    assert_eq!(
        scene.world.groups.lock()[&2].snapshots.len(),
        0,
        "it was released"
    );
}
