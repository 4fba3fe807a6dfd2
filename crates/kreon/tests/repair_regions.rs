//! Repair of a store whose regions are only in the log.
#![allow(missing_docs)]

use std::fs;
use std::path::Path;

use kreon::{Options, Repair, Store};

fn options() -> Options {
    Store::options().memory_bytes(16 << 20).background_inline()
}

/// A store whose regions are in no checkpoint, as a killed process leaves it.
fn write_store(path: &Path) {
    let store = options().open(path).unwrap();
    store.region("old").unwrap().put("key", "old").unwrap();
    store.checkpoint().unwrap();
    for name in ["alpha", "beta", "empty"] {
        let region = store.region(name).unwrap();
        if name != "empty" {
            region.put("key", name).unwrap();
        }
    }
    store.sync().unwrap();
}

fn repaired(path: &Path, target: &Path) -> Store {
    Repair::new().target(options()).run(path, target).unwrap();
    options().open(target).unwrap()
}

fn check(store: &Store) {
    assert_eq!(store.region_names(), ["alpha", "beta", "empty", "old"]);
    for name in ["alpha", "beta", "old"] {
        let region = store.existing_region(name).unwrap();
        assert_eq!(region.get("key").unwrap().as_deref(), Some(name.as_bytes()));
    }
    assert_eq!(store.existing_region("empty").unwrap().iter().count(), 0);
}

#[test]
fn regions_that_the_log_alone_has_are_salvaged_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("store"), folder.path().join("target"));
    write_store(&path);
    check(&repaired(&path, &target));
}

#[test]
fn without_any_catalogue_the_log_tells_the_names_of_its_regions() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("store"), folder.path().join("target"));
    write_store(&path);
    let mut bytes = fs::read(&path).unwrap();
    for page in bytes.chunks_exact_mut(4096) {
        // Catalogue pages have this magic behind their checksum.
        if page[4..6] == *b"kC" {
            page.fill(0);
        }
    }
    fs::write(&path, bytes).unwrap();
    let store = repaired(&path, &target);
    check(&store);
}
