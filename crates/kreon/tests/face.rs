//! The small parts of the public interface.

use std::ops::Bound;

use kreon::{Durability, ErrorKind, KeyRange, Region, Store, Value, WriteBatch};

fn store(folder: &tempfile::TempDir, name: &str) -> Store {
    let options = Store::options().memory_bytes(8 << 20);
    options.open(folder.path().join(name)).unwrap()
}

fn keys(region: &Region, range: impl KeyRange) -> String {
    let keys: kreon::Result<Vec<_>> = region.range(range).keys().collect();
    let keys = keys.unwrap().into_iter();
    keys.map(|key| String::from_utf8(key.to_vec()).unwrap())
        .collect()
}

#[test]
fn every_range_of_rust_is_a_range_of_keys() {
    let folder = tempfile::tempdir().unwrap();
    let region = store(&folder, "store").region("r").unwrap();
    for key in ["a", "b", "c", "d"] {
        region.put(key, "value").unwrap();
    }
    assert_eq!(keys(&region, ..), "abcd");
    assert_eq!(keys(&region, "b".."d"), "bc");
    assert_eq!(keys(&region, "b"..="d"), "bcd");
    assert_eq!(keys(&region, "b"..), "bcd");
    assert_eq!(keys(&region, .."c"), "ab");
    assert_eq!(keys(&region, ..="c"), "abc");
    let pair = (Bound::Excluded("a"), Bound::Included("c"));
    assert_eq!(keys(&region, pair), "bc");
    assert_eq!(keys(&region, (Bound::Unbounded, Bound::Excluded("b"))), "a");
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    let reversed = "d".."b";
    assert_eq!(keys(&region, reversed), "");
}

#[test]
fn a_snapshot_answers_as_the_region_did() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "store");
    let region = store.region("r").unwrap();
    region.put("aa", "old").unwrap();
    region.put("ab", "old").unwrap();
    region.put("b", "old").unwrap();
    let snapshot = store.snapshot();
    region.delete("aa").unwrap();
    region.put("ac", "new").unwrap();
    assert!(snapshot.contains(&region, "aa").unwrap());
    assert!(!snapshot.contains(&region, "ac").unwrap());
    assert_eq!(snapshot.prefix(&region, "a").keys().count(), 2);
    assert_eq!(region.prefix("a").keys().count(), 2);
    assert_eq!(snapshot.iter(&region).count(), 3);
    let other = self::store(&folder, "other").region("r").unwrap();
    let error = snapshot.contains(&other, "aa").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_buffer_is_used_again_and_emptied_if_nothing_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let region = store(&folder, "store").region("r").unwrap();
    region.put("key", "value").unwrap();
    let mut buffer = b"left from before".to_vec();
    assert!(region.get_into("key", &mut buffer).unwrap());
    assert_eq!(buffer, b"value");
    assert!(!region.get_into("none", &mut buffer).unwrap());
    assert!(buffer.is_empty());
}

#[test]
fn a_batch_that_was_cleared_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "store");
    let region = store.region("r").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&region, "a", "1");
    batch.delete(&region, "b");
    assert_eq!((batch.len(), batch.is_empty()), (2, false));
    batch.clear();
    assert!(batch.is_empty());
    batch.put(&region, "c", "3");
    store.write(batch, Durability::Sync).unwrap();
    assert_eq!(keys(&region, ..), "c");
}

#[test]
fn values_compare_with_and_become_bytes() {
    let value = Value::from(b"a\0b".as_slice());
    assert_eq!(value, Value::from(b"a\0b".to_vec()));
    assert_eq!(value, b"a\0b"[..]);
    assert_eq!(value, &b"a\0b"[..]);
    assert_eq!(value, *b"a\0b");
    assert_ne!(value, b"a\0c");
    assert_eq!(format!("{value:?}"), r#"b"a\x00b""#);
    assert_eq!((value.len(), value.as_ref()), (3, b"a\0b".as_slice()));
    assert_eq!(Vec::from(value), b"a\0b");
}

#[test]
fn handles_tell_what_they_are_and_never_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, "store");
    let region = store.region("cities").unwrap();
    region.put("secret", "secret").unwrap();
    let text = format!(
        "{store:?} {region:?} {:?} {:?}",
        store.snapshot(),
        region.iter()
    );
    assert!(text.contains(r#"Store { regions: ["cities"]"#), "{text}");
    assert!(text.contains(r#"Region { name: "cities""#), "{text}");
    assert!(text.contains("Snapshot") && text.contains("Scan"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn a_store_through_the_page_cache_without_a_ring_holds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for (round, (direct, ring)) in [(false, false), (true, false), (false, true), (true, true)]
        .into_iter()
        .enumerate()
    {
        let options = Store::options()
            .memory_bytes(8 << 20)
            .direct_io(direct)
            .io_uring(ring)
            .volume_bytes_max(1 << 30)
            .create(round == 0);
        let store = options.open(&path).unwrap();
        let region = store.region("r").unwrap();
        assert_eq!(region.iter().count(), round * 500);
        for key in 0..500 {
            let key = format!("{round}-{key}");
            region.put(&key, key.repeat(30)).unwrap();
        }
        store.checkpoint().unwrap();
        assert!(store.verify().unwrap().is_clean());
        store.close().unwrap();
    }
}
