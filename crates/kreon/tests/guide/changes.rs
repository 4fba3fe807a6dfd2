//! Pieces of `docs/guide/changes.md`.

use std::collections::BTreeMap;
use std::path::Path;

use kreon::{Changed, Result, Store};

#[test]
fn a_copy_follows_and_its_position_is_kept() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (copy, position) = follow(folder.path())?;
    assert_eq!(copy.len(), 1);
    assert!(position > 0);
    Ok(())
}

/// The copy of a follower.
type Copied = BTreeMap<Vec<u8>, Vec<u8>>;

fn follow(folder: &Path) -> Result<(Copied, u64)> {
    let store = Store::options()
        .changes_kept_bytes(256 << 20)
        .open(folder.join("followed.kreon"))?;
    let cities = store.region("cities")?;
    // A new follower: a position, then a copy, made durable, then what came behind the position.
    let mut changes = store.changes(store.changes_end()?)?;
    let mut copy: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for pair in cities.iter() {
        let (key, value) = pair?;
        copy.insert(key.to_vec(), value.to_vec());
    }
    store.sync()?;

    cities.put("gr/chania", "53910")?;
    store.sync()?;
    for unit in &mut changes {
        for change in unit?.changes {
            match change.what {
                Changed::Put { key, value, .. } => _ = copy.insert(key, value),
                Changed::Delete { key } => _ = copy.remove(&key),
                _ => {}
            }
        }
    }
    // Kept with the copy, in one step: here a later run goes on.
    let position = u64::from(changes.position());
    Ok((copy, position))
}
