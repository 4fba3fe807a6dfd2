//! Scans over many deleted keys: their results, and the number of dead entries that they visit.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kreon::{Durability, Region, Snapshot, Store};

/// Dead entries that a first scan may visit: those deleted between two checks of a deletion, and a run too short to be
/// remembered.
const PASSED_MAX: u64 = 64 + 16;

const DELETED: u32 = 10_000;

fn open(folder: &tempfile::TempDir, l0_bytes: usize, inline_bytes: usize) -> (Store, Region) {
    let options = Store::options()
        .memory_bytes(32 << 20)
        .l0_bytes(l0_bytes)
        .inline_value_bytes_max(inline_bytes);
    let store = options.open(folder.path().join("store")).unwrap();
    let region = store.region("region").unwrap();
    (store, region)
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn put(region: &Region, number: u32) {
    let put = region.put_with(key(number), [7; 40], Durability::Buffered);
    put.unwrap();
}

fn delete(region: &Region, number: u32) {
    region
        .delete_with(key(number), Durability::Buffered)
        .unwrap();
}

fn number(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().unwrap())
}

/// The first pair, and the number of dead entries that the scan visited.
fn first(store: &Store, region: &Region) -> (Option<u32>, u64) {
    let before = store.stats().scanned_dead;
    let pair = region.first().unwrap();
    let passed = store.stats().scanned_dead - before;
    (pair.map(|(key, _)| number(&key)), passed)
}

fn last(store: &Store, region: &Region) -> (Option<u32>, u64) {
    let before = store.stats().scanned_dead;
    let pair = region.iter().next_back().transpose().unwrap();
    let passed = store.stats().scanned_dead - before;
    (pair.map(|(key, _)| number(&key)), passed)
}

/// Puts keys, of which the first and the last `DELETED` will be deleted.
fn fill(region: &Region) -> u32 {
    let keys = 2 * DELETED + 10;
    (0..keys).for_each(|number| put(region, number));
    keys
}

fn check_ends(store: &Store, region: &Region, passed_max: u64) {
    for _ in 0..3 {
        let (found, passed) = first(store, region);
        assert_eq!(found, Some(DELETED));
        assert!(passed <= passed_max, "{passed} from the front");
        let (found, passed) = last(store, region);
        assert_eq!(found, Some(DELETED + 9));
        assert!(passed <= passed_max, "{passed} from the back");
    }
}

#[test]
fn the_first_pair_behind_deleted_keys_is_near_wherever_the_entries_are() {
    for is_spilled in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, region) = open(&folder, 8 << 20, 64);
        let keys = fill(&region);
        if is_spilled {
            store.checkpoint().unwrap();
        }
        // Ascending on one side, descending on the other.
        (0..DELETED).for_each(|number| delete(&region, number));
        let upper = (keys - DELETED..keys).rev();
        upper.for_each(|number| delete(&region, number));
        check_ends(&store, &region, PASSED_MAX);
        // The known gaps outlast a spill.
        store.checkpoint().unwrap();
        check_ends(&store, &region, PASSED_MAX);
    }
}

/// The basis of the other tests: few dead entries are not remembered, and each one visited is counted.
#[test]
fn dead_entries_that_a_scan_passes_are_counted() {
    const FEW: u32 = 12;
    for is_spilled in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, region) = open(&folder, 8 << 20, 64);
        (0..FEW + 1).for_each(|number| put(&region, number));
        if is_spilled {
            store.checkpoint().unwrap();
        }
        (0..FEW).for_each(|number| delete(&region, number));
        for _ in 0..3 {
            assert_eq!(first(&store, &region), (Some(FEW), FEW.into()));
        }
    }
}

#[test]
fn a_deleted_range_is_passed_at_once_from_both_sides() {
    for is_spilled in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, region) = open(&folder, 8 << 20, 64);
        let keys = fill(&region);
        if is_spilled {
            store.checkpoint().unwrap();
        }
        region.delete_range(key(0)..key(DELETED)).unwrap();
        region.delete_range(key(keys - DELETED)..).unwrap();
        check_ends(&store, &region, 1);
        store.checkpoint().unwrap();
        check_ends(&store, &region, 1);
        // A pair put into the range is visible.
        put(&region, 100);
        put(&region, keys - 100);
        assert_eq!(first(&store, &region).0, Some(100));
        assert_eq!(last(&store, &region).0, Some(keys - 100));
    }
}

#[test]
fn a_second_scan_passes_nothing_of_what_was_deleted_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder, 8 << 20, 64);
    fill(&region);
    for at in 0..DELETED {
        delete(&region, at * 7919 % DELETED);
    }
    // The first scan has the keys watched, the second finds the gap.
    let passed: Vec<u64> = (0..4)
        .map(|_| {
            put(&region, 3 * DELETED);
            let (found, passed) = first(&store, &region);
            assert_eq!(found, Some(DELETED));
            passed
        })
        .collect();
    assert!(passed[2] <= 1 && passed[3] <= 1, "{passed:?}");
}

#[test]
fn a_queue_passes_few_dead_entries_for_each_pop() {
    for (inline_bytes, value_bytes) in [(64, 40), (0, 200)] {
        const POPS: u32 = 12_000;
        const LENGTH: u32 = 1500;
        let folder = tempfile::tempdir().unwrap();
        // Some spills, and a queue longer than L0.
        let (store, region) = open(&folder, 128 << 10, inline_bytes);
        let value = vec![3; value_bytes];
        let mut passed = Vec::new();
        for at in 0..POPS {
            let put = region.put_with(key(at), &value, Durability::Buffered);
            put.unwrap();
            if at < LENGTH {
                continue;
            }
            let pair = match at % 2 {
                0 => region.iter().next(),
                _ => region.range(key(1)..).next(),
            };
            let (found, shown) = pair.unwrap().unwrap();
            let oldest = at - LENGTH;
            assert_eq!((number(&found), &shown[..]), (oldest, &value[..]));
            delete(&region, oldest);
            if at % 1000 == 0 {
                passed.push(store.stats().scanned_dead);
            }
        }
        let stats = store.stats();
        assert!(stats.spills >= 2, "{}", stats.spills);
        let each: Vec<u64> = passed.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(each.iter().all(|passed| *passed <= 40_000), "{each:?}");
        assert!(stats.volume_bytes < 400 << 20, "{}", stats.volume_bytes);
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

type Map = BTreeMap<u32, u32>;

fn check_scan(snapshot: Option<&Snapshot>, region: &Region, map: &Map, dice: &mut Dice) {
    let start = dice.below(KEYS);
    let length = 1 + dice.below(40) as usize;
    let bounds = (Bound::Included(key(start)), Bound::Unbounded);
    let scan = |bounds| match snapshot {
        Some(snapshot) => snapshot.range(region, bounds),
        None => region.range(bounds),
    };
    let found = scan(bounds).take(length).map(|pair| pair.unwrap());
    let expected = map.range(start..).take(length);
    assert!(
        found.map(pair).eq(expected.map(|(k, v)| (*k, *v))),
        "from {start}"
    );
    let bounds = (Bound::Unbounded, Bound::Excluded(key(start)));
    let found = scan(bounds).rev().take(length).map(|pair| pair.unwrap());
    let expected = map.range(..start).rev().take(length);
    assert!(
        found.map(pair).eq(expected.map(|(k, v)| (*k, *v))),
        "down from {start}"
    );
}

fn pair<K: AsRef<[u8]>>((found, value): (K, K)) -> (u32, u32) {
    (number(found.as_ref()), number(value.as_ref()))
}

const KEYS: u32 = 2500;

#[test]
fn scans_over_dense_deletions_say_what_a_map_says_at_every_snapshot() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let (store, region) = open(&folder, 64 << 10, 64);
        let (mut dice, mut map) = (Dice(seed), Map::new());
        let mut snapshots: Vec<(Snapshot, Map)> = Vec::new();
        for step in 0..160u32 {
            match dice.below(9) {
                0..2 => {
                    let from = dice.below(KEYS);
                    for number in from..(from + 300).min(KEYS) {
                        let put = region.put_with(key(number), key(step), Durability::Buffered);
                        put.unwrap();
                        map.insert(number, step);
                    }
                }
                2..4 => {
                    let from = dice.below(KEYS);
                    let is_down = dice.below(2) == 0;
                    let numbers = from..(from + 500).min(KEYS);
                    for at in 0..numbers.len() as u32 {
                        let number = if is_down {
                            numbers.end - 1 - at
                        } else {
                            from + at
                        };
                        delete(&region, number);
                        map.remove(&number);
                    }
                }
                4 => {
                    let from = dice.below(KEYS);
                    let to = from + dice.below(KEYS - from);
                    region.delete_range(key(from)..key(to)).unwrap();
                    map.retain(|number, _| !(from..to).contains(number));
                }
                5 => {
                    for _ in 0..5 {
                        let number = dice.below(KEYS);
                        let put = region.put_with(key(number), key(step), Durability::Buffered);
                        put.unwrap();
                        map.insert(number, step);
                    }
                }
                6 if snapshots.len() < 4 => snapshots.push((store.snapshot(), map.clone())),
                6 => drop(snapshots.swap_remove(dice.below(4) as usize)),
                7 if dice.below(4) == 0 => store.checkpoint().unwrap(),
                _ => {}
            }
            for _ in 0..3 {
                check_scan(None, &region, &map, &mut dice);
                for (snapshot, map) in &snapshots {
                    check_scan(Some(snapshot), &region, map, &mut dice);
                }
            }
        }
    }
}

/// Each thread has keys of its own between the dead ones of all threads, and must find its puts at once.
#[test]
fn what_is_put_among_dead_keys_is_found_whatever_others_delete_and_scan() {
    const THREADS: u32 = 3;
    const ROUNDS: u32 = 400;
    let folder = tempfile::tempdir().unwrap();
    let (_store, region) = open(&folder, 256 << 10, 64);
    for number in 0..KEYS {
        put(&region, number);
        delete(&region, number);
    }
    put(&region, KEYS);
    let (is_over, scans) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let scanner = || {
            while !is_over.load(Ordering::Relaxed) {
                assert!(region.first().unwrap().is_some());
                assert!(region.last().unwrap().is_some());
                scans.fetch_add(1, Ordering::Relaxed);
            }
        };
        let work = |thread: u32| {
            let region = &region;
            move || {
                let mut dice = Dice(u64::from(thread));
                for _ in 0..ROUNDS {
                    let own = dice.below(KEYS / THREADS) * THREADS + thread;
                    put(region, own);
                    let found = region.range(key(own)..).next().unwrap().unwrap().0;
                    assert_eq!(number(&found), own);
                    let bounds = ..=key(own);
                    let found = region.range(bounds).next_back().unwrap().unwrap().0;
                    assert_eq!(number(&found), own);
                    delete(region, own);
                }
            }
        };
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(work(thread)))
            .collect();
        let scanner = scope.spawn(scanner);
        for worker in workers {
            worker.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        scanner.join().unwrap();
    });
    assert!(scans.load(Ordering::Relaxed) > 0);
    assert_eq!(number(&region.first().unwrap().unwrap().0), KEYS);
}
