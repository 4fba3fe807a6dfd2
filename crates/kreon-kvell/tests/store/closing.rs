//! The end of a store.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use kreon_base::ErrorKind;
use kvell::Durability::{Buffered, Sync};

use crate::world::{after_power_cut, new_store, open, options, value};

#[test]
fn a_closed_store_refuses_everything_by_all_its_handles() {
    let (_, store, region) = new_store();
    region.put("key", "value", Sync).expect("a put");
    store.clone().close().expect("a close");
    let closed = Err(ErrorKind::Closed);
    let kind = |outcome: kreon_base::Result<()>| outcome.map_err(|error| error.kind());
    assert_eq!(kind(region.put("key", "", Sync)), closed);
    assert_eq!(kind(region.get("key").map(drop)), closed);
    assert_eq!(kind(region.get("absent").map(drop)), closed);
    assert_eq!(kind(region.multi_get(&["key", "other"]).map(drop)), closed);
    assert_eq!(kind(region.write_many(&[("key", Some(""))], Sync)), closed);
    assert_eq!(kind(store.sync()), closed);
    assert_eq!(kind(store.region("r").map(drop)), closed);
    assert_eq!(store.stats().keys, 3);
    store.close().expect("a second close");
}

#[test]
fn a_close_beside_writers_keeps_all_that_was_acknowledged_and_nothing_is_written_after_it() {
    for round in 0..5 {
        let (device, store, region) = new_store();
        let last = [const { AtomicU64::new(0) }; 4];
        std::thread::scope(|scope| {
            for (thread, last) in last.iter().enumerate() {
                let region = &region;
                scope.spawn(move || {
                    for number in 1.. {
                        let durability = if number % 2 == 0 { Sync } else { Buffered };
                        let value = value(number, 50 + 400 * thread);
                        match region.put([thread as u8], value, durability) {
                            Ok(()) => last.store(number, Relaxed),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Closed);
                                return;
                            }
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(5 + 10 * round));
            store.close().expect("a close");
            let events = device.events();
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(
                device.events(),
                events,
                "something was written after the close"
            );
        });
        let (_store, after) = after_power_cut(&device);
        for (thread, last) in last.iter().enumerate() {
            let last = last.load(Relaxed);
            let expected = (last > 0).then(|| value(last, 50 + 400 * thread));
            assert_eq!(after.get([thread as u8]).expect("a get"), expected);
        }
    }
}

#[test]
fn all_closes_have_one_outcome_and_the_first_ends_before_the_others_return() {
    let (device, store, region) = new_store();
    region.put("key", "value", Buffered).expect("a put");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (device, store) = (&device, store.clone());
            scope.spawn(move || {
                store.close().expect("a close");
                let (_store, after) = after_power_cut(device);
                let found = after.get("key").expect("a get");
                assert_eq!(found, Some(b"value".to_vec()));
            });
        }
    });
    drop((store, region));
    // What the closed store wrote last tells that it was closed, so it opens again as it is.
    let store = open(&device, &options());
    let region = store.region("r").expect("the region");
    assert_eq!(region.get("key").expect("a get"), Some(b"value".to_vec()));
}

#[test]
fn the_drop_of_the_last_handle_closes_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = options().open(&path).expect("a store");
    let region = store.region("r").expect("a region");
    drop(store);
    region.put("key", "value", Buffered).expect("a put");
    drop(region);
    let store = options().open(&path).expect("it is closed");
    let region = store.region("r").expect("the region");
    assert_eq!(region.get("key").expect("a get"), Some(b"value".to_vec()));
}

#[test]
fn a_close_unlocks_the_volume_while_handles_are_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = options().open(&path).expect("a store");
    let region = store.region("r").expect("a region");
    store.close().expect("a close");
    let again = options().open(&path).expect("it is unlocked");
    again.region("r").expect("the region");
    assert_eq!(region.get("key").unwrap_err().kind(), ErrorKind::Closed);
}
