//! Range deletions concurrent with writers, readers and spills. The model test covers a single thread.

use std::sync::atomic::{AtomicBool, Ordering};

use kreon::{Durability, Region, Store, WriteBatch};

const KEYS: u32 = 64;

fn open(folder: &tempfile::TempDir) -> (Store, Region) {
    let options = Store::options().memory_bytes(16 << 20).l0_bytes(64 << 10);
    let store = options.open(folder.path().join("store")).unwrap();
    let region = store.region("region").unwrap();
    (store, region)
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// In each round one batch deletes all keys and puts all keys with the number of the round.
#[test]
fn readers_see_a_batch_that_replaces_a_range_wholly_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder);
    let is_over = AtomicBool::new(false);
    let rounds = 300u32;
    let replace = |round: u32| {
        let mut batch = WriteBatch::new();
        // Must not become visible: the range covers it.
        batch.put(&region, key(KEYS + 1), [0xff; 4]);
        batch.delete_range(&region, ..).unwrap();
        for number in 0..KEYS {
            batch.put(&region, key(number), round.to_be_bytes());
        }
        store.write(batch, Durability::Buffered).unwrap();
    };
    replace(0);
    let reader = || {
        let mut last = 0;
        while !is_over.load(Ordering::SeqCst) {
            let pairs: Vec<_> = region.iter().map(Result::unwrap).collect();
            assert_eq!(pairs.len(), KEYS as usize);
            assert!(pairs.iter().all(|(_, value)| *value == pairs[0].1));
            let found = region.get(key(last % KEYS)).unwrap();
            let found = u32::from_be_bytes(
                found
                    .expect("deleted and put anew")
                    .as_ref()
                    .try_into()
                    .unwrap(),
            );
            assert!(found >= last, "{found} after {last}");
            last = found;
            assert!(region.get(key(KEYS + 1)).unwrap().is_none());
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        for round in 1..=rounds {
            replace(round);
            if round % 50 == 0 {
                store.checkpoint().unwrap();
            }
        }
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(store.verify().unwrap().is_clean());
}

/// Puts of ascending numbers race with deletions of everything. After a reopening the store must have what readers saw
/// last, in whatever order the writers reached memory.
#[test]
fn puts_that_race_a_range_are_seen_in_the_order_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder);
    for _ in 0..40 {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let region = &region;
                scope.spawn(move || {
                    for number in 0..KEYS {
                        let value = [thread as u8; 20];
                        region
                            .put_with(key(number), value, Durability::Buffered)
                            .unwrap();
                    }
                });
            }
            scope.spawn(|| {
                for start in (0..KEYS).step_by(8) {
                    let range = key(start)..key(start + 12);
                    region
                        .delete_range_with(range, Durability::Buffered)
                        .unwrap();
                }
            });
        });
    }
    let collect = |region: &Region| -> Vec<_> { region.iter().map(Result::unwrap).collect() };
    let seen = collect(&region);
    store.close().unwrap();
    drop((store, region));
    let (store, region) = open(&folder);
    assert!(collect(&region) == seen, "the order was another before");
    store.checkpoint().unwrap();
    assert!(collect(&region) == seen, "a spill took another order");
    assert!(store.verify().unwrap().is_clean());
}

/// One of a million keys is alive: neither the deletion nor a scan visits the others, and their leaves are gone.
#[test]
fn a_spill_leaves_nothing_of_a_deleted_range() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder);
    let long = |number: u32| [vec![b'k'; 1500], key(number).to_vec()].concat();
    for number in 0..5000u32 {
        region
            .put_with(key(number), [7; 100], Durability::Buffered)
            .unwrap();
    }
    for number in 0..40 {
        region
            .put_with(long(number), "long", Durability::Buffered)
            .unwrap();
    }
    store.checkpoint().unwrap();
    let snapshot = store.snapshot();
    region.delete_range(key(1)..).unwrap();
    store.checkpoint().unwrap();
    assert_eq!(region.iter().count(), 1);
    assert_eq!(snapshot.iter(&region).count(), 5040);
    assert!(store.verify().unwrap().is_clean());
    drop(snapshot);
    // One write near the versions kept for the snapshot rewrites their leaf, a range all of their leaves.
    region.delete_range(key(1)..).unwrap();
    store.checkpoint().unwrap();
    assert!(store.verify().unwrap().is_clean());
    let stats = store.stats();
    let entries: u64 = stats.levels.iter().map(|level| level.entries).sum();
    let pages: u64 = stats.levels.iter().map(|level| level.leaf_pages).sum();
    assert_eq!((entries, pages, stats.l0_ranges), (1, 1, 0));
}
