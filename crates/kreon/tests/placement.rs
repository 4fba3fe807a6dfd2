//! Placement of values: short ones in the leaves of the index, long ones only in the log; and the live bytes of the log
//! when values change their sizes.

use std::collections::BTreeMap;
use std::path::Path;

use kreon::{Region, Store};

const KEYS: usize = 40;

/// Lengths of the values, and deletions (`None`), that follow each other under each key; each key starts at another
/// position.
const LENGTHS: [Option<usize>; 14] = [
    Some(0),
    Some(64),
    Some(65),
    Some(10),
    Some(256),
    Some(257),
    None,
    Some(300),
    Some(64),
    None,
    Some(1),
    Some(3000),
    Some(256),
    Some(65),
];

/// Longest inline value of each opening in turn.
const THRESHOLDS: [usize; 4] = [64, 0, 256, 64];

fn open(path: &Path, threshold: usize) -> (Store, Region) {
    let store = Store::options()
        .memory_bytes(8 << 20)
        .inline_value_bytes_max(threshold)
        .background_inline()
        .open(path)
        .unwrap();
    let region = store.region("r").unwrap();
    (store, region)
}

fn key(number: usize) -> String {
    format!("key-{number:02}")
}

fn value(number: usize, round: usize, len_bytes: usize) -> Vec<u8> {
    (0..len_bytes)
        .map(|at| (number * 31 + round * 7 + at) as u8)
        .collect()
}

/// Live bytes of the log for one value that is not inline, measured with a store that has nothing else.
fn logged_bytes(len_bytes: usize) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = open(&folder.path().join("store"), 0);
    region.put(key(0), value(0, 0, len_bytes)).unwrap();
    store.checkpoint().unwrap();
    let bytes = store.stats().log_live_bytes;
    // An empty value is inline even at a limit of 0.
    assert_eq!(bytes > len_bytes as u64, len_bytes > 0, "{bytes}");
    bytes
}

#[test]
fn a_value_that_changes_its_size_changes_its_place_and_the_log_counts_it_exactly() {
    let costs: BTreeMap<usize, u64> = LENGTHS
        .iter()
        .flatten()
        .map(|len_bytes| (*len_bytes, logged_bytes(*len_bytes)))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut round = 0;
    // Live bytes of each key: a value stays where a spill put it, whatever later openings set.
    let mut live = BTreeMap::new();
    for threshold in THRESHOLDS {
        let (store, region) = open(&path, threshold);
        for _ in 0..LENGTHS.len() {
            round += 1;
            // Every third key keeps its value.
            for number in (0..KEYS).filter(|number| (number + round) % 3 > 0) {
                let len_bytes = LENGTHS[(number + round) % LENGTHS.len()];
                match len_bytes {
                    Some(len_bytes) => region.put(key(number), value(number, round, len_bytes)),
                    None => region.delete(key(number)),
                }
                .unwrap();
                let logged = len_bytes.filter(|len_bytes| *len_bytes > threshold);
                let cost = logged.map_or(0, |len_bytes| costs[&len_bytes]);
                live.insert(number, (len_bytes.map(|len| (round, len)), cost));
            }
            store.checkpoint().unwrap();
            let expected: u64 = live.values().map(|(_, cost)| cost).sum();
            let found = store.stats().log_live_bytes;
            assert_eq!(found, expected, "round {round}, threshold {threshold}");
            for (number, (last, _)) in &live {
                let wanted = last.map(|(round, len_bytes)| value(*number, round, len_bytes));
                let found = region.get(key(*number)).unwrap();
                assert_eq!(found.as_deref(), wanted.as_deref(), "{}", key(*number));
            }
        }
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        store.close().unwrap();
    }
    let (store, region) = open(&path, 64);
    for number in 0..KEYS {
        region.delete(key(number)).unwrap();
    }
    store.checkpoint().unwrap();
    assert_eq!(store.stats().log_live_bytes, 0);
    assert!(store.verify().unwrap().is_clean());
}
