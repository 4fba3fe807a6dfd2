//! Scans whose store changes between two pairs, and scans with a limit.

use kreon::{Durability, Region, Store};

const RECORDS: u64 = 6000;

fn value(number: u64, version: u8) -> Vec<u8> {
    let mut value = number.to_be_bytes().to_vec();
    value.resize(700, version);
    value
}

fn put_all(region: &Region, version: u8) {
    for number in 0..RECORDS {
        let put = region.put_with(
            number.to_be_bytes(),
            value(number, version),
            Durability::Buffered,
        );
        put.unwrap();
    }
}

fn filled(folder: &tempfile::TempDir) -> (Store, Region) {
    let options = Store::options().memory_bytes(8 << 20);
    let store = options.open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    put_all(&region, 0);
    store.checkpoint().unwrap();
    (store, region)
}

#[test]
fn a_scan_shows_its_moment_while_what_it_found_ahead_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder);
    let (mut scan, mut back) = (region.iter(), region.iter().rev());
    for number in 0..RECORDS {
        let (key, shown) = scan.next().unwrap().unwrap();
        assert_eq!(
            (&key[..], &shown[..]),
            (&number.to_be_bytes()[..], &value(number, 0)[..])
        );
        let (key, shown) = back.next().unwrap().unwrap();
        let from_end = RECORDS - 1 - number;
        assert_eq!(
            (&key[..], &shown[..]),
            (&from_end.to_be_bytes()[..], &value(from_end, 0)[..])
        );
        if [100, 1000, 3000].contains(&number) {
            // In the middle of a step: new pages, and log segments that only these scans keep.
            put_all(&region, 1);
            store.checkpoint().unwrap();
        }
    }
    assert!(scan.next().is_none() && back.next().is_none());
}

#[test]
fn a_limit_ends_a_scan_from_either_end_or_both() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, region) = filled(&folder);
    for limit in [0, 1, 15, 16, 17, 100, 700] {
        let keys: Vec<_> = region
            .iter()
            .limit(limit)
            .map(|pair| pair.unwrap().0)
            .collect();
        let expected: Vec<_> = (0..limit as u64).map(u64::to_be_bytes).collect();
        assert_eq!(keys, expected);
        let keys = region.iter().limit(limit).rev().map(|pair| pair.unwrap().0);
        let expected = (0..limit as u64).map(|n| (RECORDS - 1 - n).to_be_bytes());
        assert!(keys.eq(expected), "from the back, limit {limit}");
        let mut both = region.range(7_u64.to_be_bytes()..).limit(limit).keys();
        let mut shown = 0;
        while let Some(front) = both.next() {
            front.unwrap();
            shown += 1 + usize::from(both.next_back().is_some());
        }
        assert_eq!(shown, limit);
    }
    assert_eq!(region.range(..10_u64.to_be_bytes()).limit(50).count(), 10);
}

#[test]
fn a_scan_with_a_limit_reads_no_more_than_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder);
    let start = 3000_u64.to_be_bytes();
    // The index is in memory from here on.
    assert_eq!(region.range(start..).keys().take(200).count(), 200);
    let before = store.stats();
    assert_eq!(region.range(start..).limit(40).count(), 40);
    let after = store.stats();
    // Records in key order are contiguous.
    let bytes = after.device_read_bytes - before.device_read_bytes;
    assert!(bytes <= 40 * 740 + 3 * 4096, "{bytes} bytes were read");
    assert!(after.device_reads - before.device_reads <= 3);
}
