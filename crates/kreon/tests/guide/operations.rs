//! Operation: backups, statistics, verification, repair.

#[path = "../../examples/backup.rs"]
#[allow(dead_code, reason = "an example has a main")]
mod backup;

use std::path::{Path, PathBuf};

use kreon::{Repair, Store};

use crate::Place;

#[test]
fn the_example_of_backups_runs() {
    let folder = tempfile::tempdir().unwrap();
    backup::work(folder.path()).unwrap();
}

fn look(store: &Store) -> kreon::Result<()> {
    let report = store.verify()?;
    for problem in &report.problems {
        eprintln!("{problem}");
    }
    let stats = store.stats();
    println!("{} bytes on the volume", stats.volume_bytes);
    let metrics = stats.to_prometheus(); // to be served under a path of your own
    assert!(metrics.contains("kreon_store_volume_bytes"));
    Ok(())
}

fn repair(damaged: &Path, repaired: &Path) -> kreon::Result<()> {
    let report = Repair::new().run(damaged, repaired)?;
    if !report.is_complete() {
        eprintln!("something is lost: {report:?}");
    }
    Ok(())
}

#[test]
fn a_store_is_looked_at_and_salvaged() {
    let place = Place::new();
    place.region(&[("chania", "53910")]);
    look(&place.store).unwrap();
    place.store.close().unwrap();
    let [from, to] = ["data.kreon", "repaired"].map(|name| place.folder.path().join(name));
    drop(place.store);
    repair(&from, &to).unwrap();
    let repaired = Store::open(&to).unwrap();
    assert!(
        repaired
            .region("cities")
            .unwrap()
            .contains("chania")
            .unwrap()
    );
}

fn open_and_tell(path: PathBuf) -> kreon::Result<(Store, PathBuf)> {
    let store = Store::options().status(true).open(&path)?;
    Ok((store, path))
}

fn open_to_read(path: PathBuf) -> kreon::Result<(Store, PathBuf)> {
    let store = Store::options().read_only(true).open(&path)?;
    Ok((store, path))
}

#[test]
fn two_read_a_store_that_one_has_written() {
    let place = Place::new();
    place.region(&[("chania", "53910")]);
    place.store.close().unwrap();
    let path = place.folder.path().join("data.kreon");
    drop(place.store);
    let (store, path) = open_and_tell(path).unwrap();
    store.close().unwrap();
    let (first, path) = open_to_read(path).unwrap();
    let (second, _) = open_to_read(path).unwrap();
    for reader in [first, second] {
        let cities = reader.existing_region("cities").unwrap();
        assert!(cities.contains("chania").unwrap());
    }
}
