//! Bulk loads: their guarantees and their effect on other data.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kreon::{Error, ErrorKind, Options, Region, Store};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Store::options().memory_bytes(16 << 20).l0_bytes(256 << 10)
}

fn open(path: &Path) -> (Store, Region) {
    let store = options().open(path).unwrap();
    let region = store.region("region").unwrap();
    (store, region)
}

fn key(n: u32) -> Vec<u8> {
    format!("key-{n:08}").into_bytes()
}

/// Alternates short and long values.
fn value(n: u32, salt: u8) -> Vec<u8> {
    let len = [10, 900, 40, 2000][n as usize % 4];
    vec![n as u8 ^ salt; len]
}

fn pairs(numbers: impl Iterator<Item = u32>, salt: u8) -> Map {
    numbers.map(|n| (key(n), value(n, salt))).collect()
}

fn content(region: &Region) -> Map {
    let pairs = region.iter().map(|pair| pair.unwrap());
    pairs.map(|(k, v)| (k.into(), v.into())).collect()
}

fn assert_holds(store: &Store, region: &Region, expected: &Map) {
    assert!(content(region) == *expected, "the content differs");
    let backward: Vec<Vec<u8>> = region
        .iter()
        .keys()
        .rev()
        .map(|k| k.unwrap().into())
        .collect();
    assert!(backward.iter().eq(expected.keys().rev()));
    for (key, value) in expected.iter().step_by(97) {
        assert_eq!(region.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn a_load_into_an_empty_region_is_there_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (store, region) = open(&path);
    let expected = pairs(0..20_000, 1);
    assert_eq!(region.ingest(&expected).unwrap(), 20_000);
    assert_holds(&store, &region, &expected);
    assert_eq!(store.stats().levels.len(), 1, "{}", store.stats());
    assert!(store.stats().replay_bytes < 4096, "{}", store.stats());
    store.close().unwrap();
    drop((store, region));
    let (store, region) = open(&path);
    assert_holds(&store, &region, &expected);
}

#[test]
fn a_load_replaces_what_was_written_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    let mut expected = pairs((0..9000).step_by(3), 1);
    for (key, value) in &expected {
        region.put(key, value).unwrap();
    }
    for n in (0..9000).step_by(5) {
        region.delete(key(n)).unwrap();
        expected.remove(&key(n));
    }
    let snapshot = store.snapshot();
    let before = expected.clone();
    let load = pairs((0..9000).step_by(2), 7);
    region.ingest(&load).unwrap();
    expected.extend(load);
    assert_holds(&store, &region, &expected);
    let seen: Map = snapshot
        .iter(&region)
        .map(|pair| pair.unwrap())
        .map(|(k, v)| (k.into(), v.into()))
        .collect();
    assert!(seen == before, "a snapshot sees the load");
    drop(snapshot);
    let again = pairs(4000..12_000, 9);
    region.ingest(&again).unwrap();
    expected.extend(again);
    store.checkpoint().unwrap();
    assert_holds(&store, &region, &expected);
    assert_eq!(store.stats().levels.len(), 1, "{}", store.stats());
}

#[test]
fn what_is_written_while_a_load_runs_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (store, region) = open(&path);
    let mut expected = pairs(0..3000, 1);
    for (key, value) in &expected {
        region.put(key, value).unwrap();
    }
    let load = pairs(0..6000, 5);
    let handed_in = load.iter().inspect(|(at, _)| match at.as_slice() {
        at if at == key(10) => {
            region.put(key(4000), "put meanwhile").unwrap();
            region.delete(key(77)).unwrap();
            store.checkpoint().unwrap();
        }
        at if at == key(5000) => {
            region.put(key(3), "put behind it").unwrap();
            assert_eq!(region.get(key(9)).unwrap().as_deref(), Some(&*value(9, 1)));
            assert!(
                !region.contains(key(4999)).unwrap(),
                "a part of a load is seen"
            );
        }
        _ => {}
    });
    region.ingest(handed_in).unwrap();
    expected.extend(load.clone());
    expected.insert(key(4000), b"put meanwhile".to_vec());
    expected.insert(key(3), b"put behind it".to_vec());
    expected.remove(&key(77));
    assert_holds(&store, &region, &expected);
    store.close().unwrap();
    drop((store, region));
    let (store, region) = open(&path);
    assert_holds(&store, &region, &expected);
}

#[test]
fn a_deletion_beside_a_load_into_an_empty_region_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    let load = pairs(0..1000, 5).into_iter().enumerate();
    let handed_in = load.map(|(n, pair)| {
        if n == 500 {
            region.delete(key(900)).unwrap();
            // Nothing beneath has the key yet.
            store.checkpoint().unwrap();
        }
        pair
    });
    region.ingest(handed_in).unwrap();
    let expected = pairs((0..1000).filter(|n| *n != 900), 5);
    assert_holds(&store, &region, &expected);
    store.checkpoint().unwrap();
    assert_holds(&store, &region, &expected);
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    let expected = pairs(0..500, 1);
    region.ingest(&expected).unwrap();
    store.checkpoint().unwrap();
    let before = store.stats();
    let refused = |load: Vec<(Vec<u8>, Vec<u8>)>| region.ingest(load).unwrap_err().kind();
    let long = |n: u32| (key(n), vec![1; 100_000]);
    let mut unsorted: Vec<_> = (600..700).map(long).collect();
    unsorted.push(long(650));
    assert_eq!(refused(unsorted), ErrorKind::InvalidArgument);
    let mut twice: Vec<_> = (600..700).map(long).collect();
    twice.push(long(699));
    assert_eq!(refused(twice), ErrorKind::InvalidArgument);
    assert_eq!(
        refused(vec![(vec![0; 65 << 10], vec![])]),
        ErrorKind::InvalidArgument
    );
    let cut = (600..700u32).map(|n| match n {
        680 => Err(Error::new(ErrorKind::NotFound, "no more")),
        _ => Ok(long(n)),
    });
    assert_eq!(
        region.try_ingest(cut).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_holds(&store, &region, &expected);
    let after = store.stats();
    // The four loads were 33 MiB. Some segments are reserved ahead.
    assert!(
        after.log_bytes <= before.log_bytes + (14 << 20),
        "{before}\n{after}"
    );
    assert_eq!(after.log_live_bytes, before.log_live_bytes);
    assert_eq!(after.levels, before.levels);
    region.put("x", "the store is as good as before").unwrap();
}

#[test]
fn a_load_that_does_not_fit_gives_all_its_space_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = options().volume_bytes_max(88 << 20).open(&path).unwrap();
    let region = store.region("region").unwrap();
    let mut expected = pairs(0..2000, 1);
    region.ingest(&expected).unwrap();
    let before = store.stats();
    for len in [64, 4000] {
        // Too many leaves, then too much log.
        let load = (0..u32::MAX).map(|n| (key(n), vec![n as u8; len]));
        assert_eq!(
            region.ingest(load).unwrap_err().kind(),
            ErrorKind::OutOfSpace
        );
        assert_holds(&store, &region, &expected);
        let after = store.stats();
        assert!(
            after.free_bytes + (4 << 20) >= before.free_bytes,
            "{before}\n{after}"
        );
    }
    let load = pairs(1000..20_000, 2);
    region.ingest(&load).unwrap();
    expected.extend(load);
    assert_holds(&store, &region, &expected);
    region.put("deletions", "and puts go on").unwrap();
}

#[test]
fn an_empty_load_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    let nothing: [(&str, &str); 0] = [];
    assert_eq!(region.ingest(nothing).unwrap(), 0);
    region.put("a", "1").unwrap();
    assert_eq!(region.ingest(nothing).unwrap(), 0);
    assert_holds(
        &store,
        &region,
        &Map::from([(b"a".to_vec(), b"1".to_vec())]),
    );
}

#[test]
fn an_iterator_that_panics_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    let bad = pairs(0..5000, 1).into_iter().enumerate();
    let bad = bad.map(|(n, pair)| if n == 4000 { panic!("meant to") } else { pair });
    assert!(catch_unwind(AssertUnwindSafe(|| region.ingest(bad))).is_err());
    assert!(content(&region).is_empty());
    let expected = pairs(0..100, 2);
    region.ingest(&expected).unwrap();
    store.checkpoint().unwrap();
    assert_holds(&store, &region, &expected);
}

#[test]
fn keys_and_values_of_all_lengths_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (store, region) = open(&path);
    let mut expected = Map::from([(vec![], vec![]), (vec![0], vec![1; 5 << 20])]);
    for n in 0..6u8 {
        let mut key = vec![n / 2; 64 << 10];
        *key.last_mut().unwrap() = n;
        expected.insert(key, vec![n; [0, 64, 65, 4096, 1 << 20, 70_000][n as usize]]);
    }
    for n in 0..60u8 {
        let mut key = vec![b'k'; 1500];
        key.push(n);
        expected.insert(key, vec![n; n as usize]);
    }
    region.put(vec![0], "old").unwrap();
    region.ingest(&expected).unwrap();
    assert_holds(&store, &region, &expected);
    drop((store, region));
    let (store, region) = open(&path);
    assert_holds(&store, &region, &expected);
}

#[test]
fn a_load_ends_with_its_region_or_store() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    let load = || pairs(0..2000, 1).into_iter().enumerate();
    let dropped = load().map(|(n, pair)| {
        if n == 1000 {
            store.drop_region("region").unwrap();
        }
        pair
    });
    assert_eq!(
        region.ingest(dropped).unwrap_err().kind(),
        ErrorKind::Closed
    );
    assert!(store.verify().unwrap().is_clean());
    let region = store.region("another").unwrap();
    let inner = region.clone();
    let nested = load().map(|(n, pair)| {
        if n == 500 {
            let error = inner.ingest([("a", "b")]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert_eq!(
                store.region("other").unwrap().ingest([("a", "b")]).unwrap(),
                1
            );
        }
        pair
    });
    region.ingest(nested).unwrap();
    assert_holds(&store, &region, &pairs(0..2000, 1));
    let closed = load().map(|(n, pair)| {
        if n == 1000 {
            store.close().unwrap();
        }
        pair
    });
    assert_eq!(region.ingest(closed).unwrap_err().kind(), ErrorKind::Closed);
    drop((store, region, inner));
    let store = options().open(folder.path().join("store")).unwrap();
    let region = store.region("another").unwrap();
    assert_holds(&store, &region, &pairs(0..2000, 1));
}

#[test]
fn readers_see_all_of_a_load_or_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    region.ingest(pairs(0..400, 0)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut newest = 0;
                while !is_over.load(Ordering::Relaxed) {
                    // Each value of a load starts with the number of its round, except keys that other threads write.
                    let mut rounds = BTreeMap::new();
                    for pair in region.prefix("key-") {
                        let (key, value) = pair.unwrap();
                        let n: u32 = std::str::from_utf8(&key[4..]).unwrap().parse().unwrap();
                        *rounds.entry(value[0] ^ n as u8).or_insert(0u32) += 1;
                    }
                    assert_eq!(rounds.len(), 1, "{rounds:?}");
                    let (round, count) = rounds.into_iter().next().unwrap();
                    assert!(round >= newest && count == 400);
                    newest = round;
                    let got = region.get(key(7)).unwrap().unwrap()[0] ^ 7;
                    assert!(got >= newest, "a get went back");
                    newest = got;
                }
            });
        }
        scope.spawn(|| {
            for n in 0..u32::MAX {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                region
                    .put(format!("beside-{:04}", n % 3000), [7; 400])
                    .unwrap();
            }
        });
        for round in 1..12 {
            region.ingest(pairs(0..400, round)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn a_writer_that_races_a_load_is_never_undone() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"));
    for round in 0..6u8 {
        let has_begun = AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let begin = |_: &_| has_begun.store(true, Ordering::Release);
                region.ingest(pairs(0..3000, round).into_iter().inspect(begin))
            });
            while !has_begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let mut written = Map::new();
            let mut n = 0;
            while !load.is_finished() {
                n = (n + 617) % 3000;
                let value = format!("{round} beside {n}").into_bytes();
                region.put(key(n), &value).unwrap();
                assert_eq!(region.get(key(n)).unwrap().as_deref(), Some(&*value));
                written.insert(key(n), value);
            }
            load.join().unwrap().unwrap();
            written
        });
        let mut expected = pairs(0..3000, round);
        expected.extend(written);
        assert_holds(&store, &region, &expected);
        store.checkpoint().unwrap();
        assert_holds(&store, &region, &expected);
    }
}
