//! Keys and values at their limits, and paths that cannot hold a store.

use std::path::Path;

use kreon::{Durability, ErrorKind, Store, WriteBatch};

fn small(path: &Path) -> Store {
    Store::options()
        .memory_bytes(16 << 20)
        .l0_bytes(256 << 10)
        .open(path)
        .unwrap()
}

fn reopened(store: Store, path: &Path) -> Store {
    store.close().unwrap();
    drop(store);
    small(path)
}

/// Bytes that depend on their position, so that a shifted or swapped part shows.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[test]
fn keys_of_every_shape_come_back_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = small(&path);
    let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0, 0], vec![0xff], vec![0xff; 3]];
    keys.extend([
        b"a".to_vec(),
        b"aa".to_vec(),
        b"a\0".to_vec(),
        b"a\xff".to_vec(),
        b"ab".to_vec(),
    ]);
    for last in [0, 1, 0xff] {
        for len in [1023, 1024, 1025, 4095, 4096, 65535] {
            keys.push([vec![b'x'; len], vec![last]].concat());
        }
    }
    keys.sort();
    keys.dedup();
    for round in 0..3u64 {
        let region = store.region("shapes").unwrap();
        for (index, key) in keys.iter().enumerate() {
            region.put(key, pattern(index * 37 % 300, round)).unwrap();
        }
        for (index, key) in keys.iter().enumerate() {
            let value = region.get(key).unwrap().unwrap();
            assert_eq!(value, pattern(index * 37 % 300, round).as_slice());
        }
        let scanned: Vec<_> = region
            .iter()
            .keys()
            .map(|key| Vec::from(key.unwrap()))
            .collect();
        assert_eq!(scanned, keys);
        let mut backward: Vec<_> = region
            .iter()
            .keys()
            .rev()
            .map(|key| Vec::from(key.unwrap()))
            .collect();
        backward.reverse();
        assert_eq!(backward, keys);
        match round {
            0 => store.checkpoint().unwrap(),
            _ => {
                drop(region);
                store = reopened(store, &path);
            }
        }
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
}

#[test]
fn values_around_page_and_segment_borders_survive_spill_and_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = small(&path);
    let mib = 1 << 20;
    let lens = [
        0,
        1,
        63,
        64,
        65,
        511,
        512,
        513,
        4095,
        4096,
        4097,
        65_535,
        65_537,
        2 * mib - 4096,
        2 * mib,
        2 * mib + 1,
        5 * mib + 3,
    ];
    let region = store.region("lens").unwrap();
    for len in lens {
        region
            .put(format!("{len:010}"), pattern(len, len as u64))
            .unwrap();
    }
    drop(region);
    for _ in 0..3 {
        let region = store.region("lens").unwrap();
        for len in lens {
            let value = region.get(format!("{len:010}")).unwrap().unwrap();
            assert!(
                value == pattern(len, len as u64).as_slice(),
                "value of {len} bytes differs"
            );
        }
        assert_eq!(region.iter().count(), lens.len());
        drop(region);
        store.checkpoint().unwrap();
        store = reopened(store, &path);
    }
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn a_64_mib_value_grows_shrinks_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = small(&path);
    for (round, len) in [10usize, 64 << 20, 100, 3 << 20, 0].into_iter().enumerate() {
        let region = store.region("r").unwrap();
        let value = pattern(len, round as u64);
        region.put_with("big", &value, Durability::Sync).unwrap();
        assert!(region.get("big").unwrap().unwrap() == value.as_slice());
        drop(region);
        store = reopened(store, &path);
        assert!(store.region("r").unwrap().get("big").unwrap().unwrap() == value.as_slice());
    }
    store.checkpoint().unwrap();
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn over_long_keys_values_and_names_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = small(&folder.path().join("store"));
    let region = store.region("r").unwrap();
    region.put("k", "v").unwrap();
    let long = vec![0u8; kreon::KEY_BYTES_MAX + 1];
    assert_eq!(
        region.put(&long, "v").unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        region.delete(&long).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let mut batch = WriteBatch::new();
    batch.put(&region, "other", "v");
    batch.put(&region, &long, "v");
    let refused = store.write(batch, Durability::Buffered).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(!region.contains("other").unwrap());
    assert!(!region.contains(&long).unwrap());
    assert_eq!(
        store.region("").unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        store.region(&"n".repeat(256)).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(store.region_names(), ["r"]);
}

#[test]
fn a_second_open_is_busy_until_the_first_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let first = small(&path);
    assert_eq!(Store::open(&path).unwrap_err().kind(), ErrorKind::Busy);
    first.close().unwrap();
    let second = small(&path);
    assert_eq!(first.sync().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(first.region("r").unwrap_err().kind(), ErrorKind::Closed);
    second.region("r").unwrap().put("k", "v").unwrap();
}

#[test]
fn paths_that_cannot_be_a_store_say_why_and_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/store");
    assert_eq!(
        Store::open(&missing).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        Store::open(folder.path()).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let absent = folder.path().join("absent");
    let refused = Store::options().create(false).open(&absent).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    assert!(!absent.exists());
    let text = folder.path().join("text");
    let content = "not a store\n".repeat(20_000);
    std::fs::write(&text, &content).unwrap();
    let foreign = Store::open(&text).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::InvalidArgument);
    assert!(
        foreign.to_string().contains(&text.display().to_string()),
        "{foreign}"
    );
    assert_eq!(std::fs::read_to_string(&text).unwrap(), content);
    std::fs::write(&text, "short").unwrap();
    assert_eq!(
        Store::open(&text).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "short");
}

#[test]
fn a_region_dropped_and_made_again_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = small(&path);
    for round in 0..4 {
        let region = store.region("again").unwrap();
        assert_eq!(region.iter().count(), 0, "round {round}");
        for n in 0..3000u32 {
            region
                .put(n.to_be_bytes(), pattern(200, u64::from(n)))
                .unwrap();
        }
        if round % 2 == 0 {
            store.checkpoint().unwrap();
        }
        assert_eq!(region.iter().count(), 3000);
        store.drop_region("again").unwrap();
        assert_eq!(region.put("k", "v").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(region.get("k").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(
            store.drop_region("again").unwrap_err().kind(),
            ErrorKind::NotFound
        );
        if round == 1 {
            drop(region);
            store = reopened(store, &path);
            assert!(store.region_names().is_empty());
        }
        assert!(store.verify().unwrap().is_clean());
    }
}

#[test]
fn regions_do_not_see_each_others_keys() {
    let folder = tempfile::tempdir().unwrap();
    let store = small(&folder.path().join("store"));
    let regions: Vec<_> = (0..20)
        .map(|n| store.region(&format!("r{n}")).unwrap())
        .collect();
    for (n, region) in regions.iter().enumerate() {
        for key in 0..=n {
            region.put(format!("{key:03}"), format!("{n}")).unwrap();
        }
    }
    for _ in 0..2 {
        for (n, region) in regions.iter().enumerate() {
            assert_eq!(region.iter().count(), n + 1);
            assert_eq!(region.iter().rev().count(), n + 1);
            assert!(
                region
                    .iter()
                    .all(|pair| pair.unwrap().1 == n.to_string().as_bytes())
            );
        }
        store.checkpoint().unwrap();
    }
}

#[test]
fn in_a_batch_the_last_change_of_a_key_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = small(&path);
    let region = store.region("r").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&region, "a", "1");
    batch.put(&region, "a", "2");
    batch.delete(&region, "b");
    batch.put(&region, "b", "3");
    batch.put(&region, "c", "4");
    batch.delete(&region, "c");
    store.write(batch, Durability::Buffered).unwrap();
    drop(region);
    for _ in 0..2 {
        let region = store.region("r").unwrap();
        assert_eq!(region.get("a").unwrap().unwrap(), b"2".as_slice());
        assert_eq!(region.get("b").unwrap().unwrap(), b"3".as_slice());
        assert!(region.get("c").unwrap().is_none());
        drop(region);
        store = reopened(store, &path);
    }
}

#[test]
fn regions_of_another_store_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (
        small(&folder.path().join("one")),
        small(&folder.path().join("other")),
    );
    let (region, foreign) = (one.region("r").unwrap(), other.region("r").unwrap());
    region.put("k", "one").unwrap();
    foreign.put("k", "other").unwrap();
    let snapshot = one.snapshot();
    assert_eq!(
        snapshot.get(&foreign, "k").unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let mut scan = snapshot.iter(&foreign);
    assert_eq!(
        scan.next().unwrap().unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert!(scan.next().is_none());
    let mut batch = WriteBatch::new();
    batch.put(&region, "k", "new");
    batch.put(&foreign, "k", "new");
    let refused = one.write(batch, Durability::Buffered).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert_eq!(region.get("k").unwrap().unwrap(), b"one".as_slice());
}

#[test]
fn a_scan_keeps_the_store_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    small(&path).region("r").unwrap().put("k", "v").unwrap();
    let mut scan = small(&path).region("r").unwrap().iter();
    assert_eq!(scan.next().unwrap().unwrap().0, b"k");
    drop(scan);
    assert!(small(&path).region("r").unwrap().contains("k").unwrap());
}
