//! Operation: backups, statistics, verification, repair.

#[path = "../../examples/backup.rs"]
#[allow(dead_code, reason = "an example has a main")]
mod backup;

use std::path::Path;

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
