//! Packed values: read the same in every way, wherever they are, and smaller.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use kreon::{Compression, Durability, Options, Region, RegionOptions, Store, WriteBatch};

const PACKING: &[Compression] = match cfg!(feature = "zstd") {
    true => &[Compression::Lz4, Compression::Zstd],
    false => &[Compression::Lz4],
};

fn options() -> Options {
    let options = Store::options().memory_bytes(16 << 20).l0_bytes(256 << 10);
    options.background_inline()
}

fn packing(compression: Compression) -> RegionOptions {
    RegionOptions::new().compression(compression)
}

/// Bytes that look like a document, of which no two are the same.
fn document(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = Vec::new();
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (id, active) = (state % 1000, state.is_multiple_of(2));
        text.extend(format!("{{\"id\":{id},\"city\":\"chania\",\"active\":{active}}},").bytes());
    }
    text.truncate(bytes);
    text
}

/// Bytes that nothing makes shorter.
fn noise(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Values of every form: empty, in leaves as they are and packed, in the log as they are and packed, of several segments.
fn values() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut values = BTreeMap::new();
    let lengths = [0, 1, 31, 32, 60, 200, 257, 1000, 5000, 70_000, 3 << 20];
    for (number, bytes) in (0..).zip(lengths) {
        values.insert(
            format!("document {bytes}").into_bytes(),
            document(number, bytes),
        );
        values.insert(format!("noise {bytes}").into_bytes(), noise(number, bytes));
        values.insert(format!("zeroes {bytes}").into_bytes(), vec![0; bytes]);
    }
    // A long key has its value in the log in any case.
    values.insert(vec![b'k'; 3000], vec![b'v'; 200]);
    values
}

/// Compares what each way to read says.
fn check(store: &Store, region: &Region, expected: &BTreeMap<Vec<u8>, Vec<u8>>, when: &str) {
    let snapshot = store.snapshot();
    let mut transaction = store.transaction();
    let mut buffer = Vec::new();
    for (key, value) in expected {
        let name = key.escape_ascii();
        assert!(
            region.get(key).unwrap().as_deref() == Some(value),
            "get {name} {when}"
        );
        assert!(
            snapshot.get(region, key).unwrap().as_deref() == Some(value),
            "{name} {when}"
        );
        assert!(
            region.get_into(key, &mut buffer).unwrap() && buffer == *value,
            "{name} {when}"
        );
        let length = region.get_with(key, <[u8]>::len).unwrap();
        assert_eq!(length, Some(value.len()), "{name} {when}");
        let own = transaction.get(region, key).unwrap();
        assert!(own.as_deref() == Some(value), "transaction {name} {when}");
        let mut reader = region.get_reader(key).unwrap().unwrap();
        let mut read = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut read).unwrap();
        assert!(read == *value, "read {name} {when}");
        let got = futures_util::FutureExt::now_or_never(region.get_async(key));
        if let Some(got) = got {
            assert!(
                got.unwrap().as_deref() == Some(value),
                "get_async {name} {when}"
            );
        }
    }
    let keys: Vec<_> = expected.keys().collect();
    let many = region.multi_get(&keys).unwrap();
    let wanted = expected.values().map(|value| Some(value.as_slice()));
    assert!(many.iter().map(Option::as_deref).eq(wanted), "{when}");
    let pair = |pair: kreon::Result<(kreon::Value, kreon::Value)>| {
        let (key, value) = pair.unwrap();
        (key.to_vec(), value.to_vec())
    };
    let scanned: Vec<_> = region.iter().map(pair).collect();
    let pairs = scanned.iter().zip(expected);
    assert_eq!(scanned.len(), expected.len(), "{when}");
    for ((key, value), (wanted, expected)) in pairs {
        assert!(key == wanted && value == expected, "scan {when}");
    }
    let back: Vec<_> = region.iter().rev().map(pair).collect();
    assert!(back.iter().eq(scanned.iter().rev()), "backward {when}");
}

#[test]
fn packed_values_read_the_same_in_every_way_wherever_they_are() {
    for &compression in PACKING {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let open = || options().open(&path).unwrap();
        let (store, expected) = (open(), values());
        let region = store.region_with("r", &packing(compression)).unwrap();
        let mut batch = WriteBatch::new();
        for (at, (key, value)) in expected.iter().enumerate() {
            match at % 2 {
                0 => region.put(key, value).unwrap(),
                _ => batch.put(&region, key, value),
            }
        }
        store.write(batch, Durability::Sync).unwrap();
        check(&store, &region, &expected, "in L0'");
        drop((region, store));
        let store = open();
        let region = store.existing_region("r").unwrap();
        check(&store, &region, &expected, "after a replay");
        store.checkpoint().unwrap();
        check(&store, &region, &expected, "in a level");
        store.compact().unwrap();
        check(&store, &region, &expected, "after a compaction");
        assert_eq!(store.verify().unwrap().problems, Vec::<String>::new());
        drop((region, store));
        let store = options().memory_bytes(12 << 20).open(&path).unwrap();
        let region = store.existing_region("r").unwrap();
        check(&store, &region, &expected, "cold");
        drop((region, store));
        let salvaged = folder.path().join("salvaged");
        kreon::Repair::new()
            .target(options())
            .run(&path, &salvaged)
            .unwrap();
        let store = options().open(&salvaged).unwrap();
        check(
            &store,
            &store.existing_region("r").unwrap(),
            &expected,
            "after a repair",
        );
        assert_eq!(
            store.existing_region("r").unwrap().options(),
            packing(compression)
        );
    }
}

#[test]
fn loaded_values_are_packed_too() {
    for &compression in PACKING {
        let folder = tempfile::tempdir().unwrap();
        let store = options().open(folder.path().join("store")).unwrap();
        let region = store.region_with("r", &packing(compression)).unwrap();
        let expected = values();
        region.ingest(expected.iter()).unwrap();
        check(&store, &region, &expected, "after a load");
        let live = store.stats().log_live_bytes;
        let given: u64 = expected.values().map(|value| value.len() as u64).sum();
        assert!(live < given * 2 / 3, "{live} of {given} bytes");
    }
}

#[test]
fn a_region_packs_what_is_written_from_now_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = options().open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    let mut expected = BTreeMap::new();
    let smallest = PACKING[PACKING.len() - 1];
    let codecs = [
        Compression::None,
        Compression::Lz4,
        smallest,
        Compression::None,
    ];
    let mut written = Vec::new();
    for (round, compression) in (0..).zip(codecs) {
        region.set_options(&packing(compression)).unwrap();
        let before = store.stats().log_live_bytes;
        for number in 0..500u64 {
            let (key, value) = (format!("{round} {number}"), document(number, 1000));
            region.put(&key, &value).unwrap();
            expected.insert(key.into_bytes(), value);
        }
        store.checkpoint().unwrap();
        written.push(store.stats().log_live_bytes - before);
        check(&store, &region, &expected, compression.name());
    }
    assert!(written[1] * 2 < written[0], "{written:?}");
    assert!(written[2] < written[1] || PACKING.len() == 1, "{written:?}");
    assert_eq!(written[3], written[0]);
}

/// Overwrites and collections move packed records as they are.
#[test]
fn packed_values_survive_collection_and_overwriting() {
    for &compression in PACKING {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let small = || options().space_amplification(1.2).open(&path).unwrap();
        let mut store = small();
        let mut region = store.region_with("r", &packing(compression)).unwrap();
        let mut expected = BTreeMap::new();
        for round in 0..40u64 {
            for number in 0..400u64 {
                let key = (number * 7919 + round * 31) % 2000;
                let value = match key % 4 {
                    0 => noise(key + round, 2000),
                    _ => document(key + round, 4000),
                };
                region.put(key.to_be_bytes(), &value).unwrap();
                expected.insert(key.to_be_bytes().to_vec(), value);
            }
            if round % 8 == 7 {
                drop((region, store));
                store = small();
                region = store.existing_region("r").unwrap();
            }
        }
        store.checkpoint().unwrap();
        store.compact().unwrap();
        check(&store, &region, &expected, compression.name());
        assert_eq!(store.verify().unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn a_backup_has_packed_values_and_its_region_goes_on_packing() {
    let folder = tempfile::tempdir().unwrap();
    let [path, backup, copy] = ["store", "backup", "copy"].map(|name| folder.path().join(name));
    let expected = values();
    let store = options().open(&path).unwrap();
    let region = store.region_with("r", &packing(Compression::Lz4)).unwrap();
    for (key, value) in &expected {
        region.put(key, value).unwrap();
    }
    kreon::Backup::at(&backup).make(&store).unwrap();
    kreon::Backup::at(&backup).restore(&copy).unwrap();
    read_only(&copy, &expected);
}

/// A reader unpacks as well, and replays into memory alone.
fn read_only(path: &Path, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let store = options().read_only(true).open(path).unwrap();
    let region = store.existing_region("r").unwrap();
    check(&store, &region, expected, "by a reader");
    let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(region.range(bounds).keys().count(), expected.len());
}
