//! Read-modify-write of one key.

use kreon::{ErrorKind, Region, Store, Update};

fn open(folder: &tempfile::TempDir) -> (Store, Region) {
    let options = Store::options().memory_bytes(16 << 20).l0_bytes(64 << 10);
    let store = options.open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    (store, region)
}

#[test]
fn concurrent_increments_are_all_counted_while_spills_run() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    region.increment("n", 1).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for number in 0..5000_u32 {
                region.put(number.to_be_bytes(), [1; 100]).unwrap();
                if number % 500 == 0 {
                    store.checkpoint().unwrap();
                }
            }
        });
    });
    assert_eq!(region.increment("n", 0).unwrap(), 4000);
}

#[test]
fn a_write_between_read_and_write_makes_an_update_read_again() {
    for is_spilled in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, region) = open(&folder);
        region.put("k", "1").unwrap();
        store.checkpoint().unwrap();
        let mut tries = 0;
        let before = region.update("k", |old| {
            tries += 1;
            if tries == 1 {
                region.put("k", "2").unwrap();
                if is_spilled {
                    store.checkpoint().unwrap();
                }
            }
            Update::Put([old.unwrap(), b"+"].concat())
        });
        assert_eq!(before.unwrap().as_deref(), Some(b"2".as_slice()));
        assert_eq!(region.get("k").unwrap().as_deref(), Some(b"2+".as_slice()));
        assert_eq!(tries, 2);
    }
}

#[test]
fn a_deleted_range_and_a_load_between_make_an_update_read_again() {
    for is_load in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (_store, region) = open(&folder);
        region.put("j", "1").unwrap();
        let mut seen = Vec::new();
        region
            .update("k", |old| {
                seen.push(old.map(<[u8]>::to_vec));
                match (seen.len(), is_load) {
                    (1, true) => drop(region.ingest([("k", "loaded")]).unwrap()),
                    (1, false) => region.delete_range("a"..).unwrap(),
                    _ => {}
                }
                Update::Put(b"mine".to_vec())
            })
            .unwrap();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[1].is_some(), is_load);
        assert_eq!(
            region.get("k").unwrap().as_deref(),
            Some(b"mine".as_slice())
        );
    }
}

#[test]
fn update_can_keep_and_delete() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, region) = open(&folder);
    region.put("k", "1").unwrap();
    region.update("k", |_| Update::Keep).unwrap();
    assert!(region.contains("k").unwrap());
    region.update("k", |_| Update::Delete).unwrap();
    assert!(!region.contains("k").unwrap());
}

#[test]
fn compare_and_swap_changes_what_was_expected_only() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, region) = open(&folder);
    assert!(region.put_if_absent("k", "1").unwrap());
    assert!(!region.put_if_absent("k", "2").unwrap());
    assert!(
        !region
            .compare_and_swap("k", Some(b"2"), Some(b"3"))
            .unwrap()
    );
    assert!(
        region
            .compare_and_swap("k", Some(b"1"), Some(b"3"))
            .unwrap()
    );
    assert_eq!(region.get("k").unwrap().as_deref(), Some(b"3".as_slice()));
    assert!(region.compare_and_swap("k", Some(b"3"), None).unwrap());
    assert!(!region.contains("k").unwrap());
}

#[test]
fn counters_are_little_endian_and_say_when_they_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, region) = open(&folder);
    region.put("n", [0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    assert_eq!(region.increment("n", -1).unwrap(), 255);
    assert_eq!(
        region.get("n").unwrap().as_deref(),
        Some(&[255, 0, 0, 0, 0, 0, 0, 0][..])
    );
    region.put("max", i64::MAX.to_le_bytes()).unwrap();
    region.put("word", "abc").unwrap();
    for key in ["max", "word"] {
        let before = region.get(key).unwrap();
        let error = region.increment(key, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(region.get(key).unwrap(), before);
    }
}
