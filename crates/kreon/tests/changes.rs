//! The change feed of a store in a file.

use std::time::Duration;

use kreon::{Changed, Durability, ErrorKind, Position, Result, Store, WriteBatch};

fn open(path: &std::path::Path) -> Result<Store> {
    let options = Store::options().memory_bytes(16 << 20);
    options.changes_kept_bytes(64 << 20).open(path)
}

/// Keys and lengths of the puts of a unit.
fn puts(unit: &kreon::ChangeUnit) -> Vec<(Vec<u8>, usize)> {
    let put = |change: &kreon::Change| match &change.what {
        Changed::Put { key, value, .. } => Some((key.clone(), value.len())),
        _ => None,
    };
    unit.changes.iter().filter_map(put).collect()
}

#[test]
fn a_follower_goes_on_at_its_position_in_a_later_run() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path)?;
    let region = store.region("r")?;
    region.put("first", "1")?;
    store.sync()?;
    let mut changes = store.changes(store.changes_start()?)?;
    assert_eq!(
        changes.by_ref().count(),
        2,
        "a region was made, a key was put"
    );
    let kept = u64::from(changes.position()).to_string();
    drop(changes);
    let mut batch = WriteBatch::new();
    batch.put(&region, "second", vec![2; 100]);
    batch.put(&region, "third", vec![3; 3000]);
    store.write(batch, Durability::Sync)?;
    store.close()?;
    drop((region, store));
    let store = open(&path)?;
    let position: Position = kept.parse().expect("it is a number");
    let units: Vec<_> = store.changes(position)?.collect::<Result<_>>()?;
    let shown: Vec<_> = units.iter().map(puts).collect();
    assert_eq!(
        shown,
        [[(b"second".to_vec(), 100), (b"third".to_vec(), 3000)]]
    );
    assert_eq!(units[0].changes[0].name.as_deref(), Some("r"));
    let ahead = store.changes((u64::from(store.changes_end()?) + 800).into());
    assert_eq!(ahead.unwrap_err().kind(), ErrorKind::InvalidArgument);
    Ok(())
}

#[test]
fn a_feed_keeps_its_store_open_and_ends_when_that_is_closed() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store"))?;
    let mut changes = store.changes(store.changes_start()?)?;
    drop(store.region("r")?);
    store.sync()?;
    let other = store.clone();
    drop(store);
    assert!(changes.wait(Duration::from_secs(60))?);
    assert_eq!(changes.by_ref().count(), 1);
    other.close()?;
    let ended = changes.next().expect("an error").unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Closed);
    assert_eq!(
        changes.wait(Duration::ZERO).unwrap_err().kind(),
        ErrorKind::Closed
    );
    Ok(())
}

#[test]
fn a_reader_shows_the_changes_of_a_closed_store() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path)?;
    store.region("r")?.put("key", "value")?;
    store.close()?;
    drop(store);
    let options = Store::options().memory_bytes(16 << 20).read_only(true);
    let reader = options.open(&path)?;
    let units: Vec<_> = reader
        .changes(reader.changes_start()?)?
        .collect::<Result<_>>()?;
    let shown: Vec<_> = units.iter().flat_map(puts).collect();
    assert_eq!(shown, [(b"key".to_vec(), 5)]);
    Ok(())
}
