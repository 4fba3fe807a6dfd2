//! A migration: pairs of another store, in the order of its iterator.

use kreon::{Region, Result, Store};

/// Loads the pairs of an ordered source, all of them or none.
fn move_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    region: &Region,
    source: impl IntoIterator<Item = Result<(K, V)>>,
) -> Result<u64> {
    region.try_ingest(source)
}

/// Whether both have the same pairs.
fn is_same<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    region: &Region,
    source: impl IntoIterator<Item = Result<(K, V)>>,
) -> Result<bool> {
    let mut ours = region.iter();
    for pair in source {
        let (key, value) = pair?;
        let is_next = ours.next_with(|k, v| (k, v) == (key.as_ref(), value.as_ref()))?;
        if is_next != Some(true) {
            return Ok(false);
        }
    }
    Ok(ours.next().is_none())
}

#[test]
fn what_was_moved_is_what_was_there() {
    // The other store; its iterator ends with an error of ours if it fails.
    let other: std::collections::BTreeMap<_, _> = (0..1000_u32)
        .map(|number| (number.to_be_bytes(), format!("value {number}")))
        .collect();
    let source = || other.iter().map(Ok);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let region = store.region("default").unwrap();
    assert!(!is_same(&region, source()).unwrap());
    assert_eq!(move_sorted(&region, source()).unwrap(), 1000);
    assert!(is_same(&region, source()).unwrap());
    region.put("another", "").unwrap();
    assert!(!is_same(&region, source()).unwrap());
}
