//! Stores in files: who makes one where, and what is left untouched.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tucana::{Creation, ErrorKind, Options, Store};

const PAGE_BYTES: usize = 4096;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    (folder, path)
}

fn open(path: &Path, creation: Creation) -> tucana::Result<Store> {
    let options = Options {
        memory_bytes: 2 << 20,
        ..Options::default()
    };
    Store::open_file(path, &options, creation)
}

fn kind(outcome: tucana::Result<Store>) -> ErrorKind {
    outcome.err().expect("no store").kind()
}

/// A whole store with a key.
fn make(path: &Path) {
    let store = open(path, Creation::IfEmpty).unwrap();
    store.region("r").unwrap().put("key", "value").unwrap();
    store.close().unwrap();
}

#[test]
fn a_store_is_made_only_on_demand_and_is_there_again() {
    let (_folder, path) = folder();
    assert!(!Store::is_at(&path).unwrap());
    assert_eq!(kind(open(&path, Creation::Never)), ErrorKind::NotFound);
    assert!(!path.exists());
    fs::write(&path, b"").unwrap();
    assert_eq!(kind(open(&path, Creation::Never)), ErrorKind::NotFound);
    assert_eq!(fs::read(&path).unwrap(), b"");
    make(&path);
    assert!(Store::is_at(&path).unwrap());
    for creation in [Creation::Never, Creation::IfEmpty, Creation::OverContent] {
        let store = open(&path, creation).unwrap();
        let value = store.existing_region("r").unwrap().get("key").unwrap();
        assert_eq!(value.as_deref(), Some(&b"value"[..]), "{creation:?}");
    }
}

#[test]
fn other_content_is_overwritten_on_demand_only() {
    for content in [vec![7; 1 << 20], vec![0; 1 << 20], b"text".to_vec()] {
        let (_folder, path) = folder();
        fs::write(&path, &content).unwrap();
        assert!(!Store::is_at(&path).unwrap());
        for creation in [Creation::Never, Creation::IfEmpty] {
            let error = open(&path, creation).err().expect("no store");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains("--format-store"), "{error}");
            assert!(fs::read(&path).unwrap() == content);
        }
        let store = open(&path, Creation::OverContent).unwrap();
        store.region("r").unwrap().put("key", "value").unwrap();
        store.close().unwrap();
        let store = open(&path, Creation::Never).unwrap();
        assert!(
            store
                .existing_region("r")
                .unwrap()
                .get("key")
                .unwrap()
                .is_some()
        );
        store.verify().unwrap();
    }
}

#[test]
fn a_store_of_any_engine_is_never_overwritten() {
    // The label, at byte 8 of a page that an engine has for its superblock.
    for (label, page, expected) in [
        (b"KreonVol", 8, ErrorKind::InvalidArgument),
        (b"KvellVol", 0, ErrorKind::InvalidArgument),
        (b"KvellVol", 2, ErrorKind::InvalidArgument),
        (b"TucanVol", 16, ErrorKind::Corruption),
    ] {
        let (_folder, path) = folder();
        let mut content = vec![0; 1 << 20];
        content[page * PAGE_BYTES + 8..][..8].copy_from_slice(label);
        fs::write(&path, &content).unwrap();
        let outcome = open(&path, Creation::OverContent);
        assert!(fs::read(&path).unwrap() == content, "{page}");
        assert_eq!(kind(outcome), expected, "{page}");
        assert_eq!(Store::is_at(&path).unwrap(), label == b"TucanVol");
    }
}

#[test]
fn a_damaged_store_is_recognised_and_told() {
    let (_folder, path) = folder();
    make(&path);
    let mut content = fs::read(&path).unwrap();
    for page in [0, 8, 16, 24] {
        content[page * PAGE_BYTES + 100] ^= 1;
    }
    fs::write(&path, &content).unwrap();
    assert!(Store::is_at(&path).unwrap());
    for creation in [Creation::Never, Creation::OverContent] {
        assert_eq!(kind(open(&path, creation)), ErrorKind::Corruption);
    }
    assert!(fs::read(&path).unwrap() == content);
}

#[test]
fn a_store_is_open_once() {
    let (_folder, path) = folder();
    make(&path);
    let store = open(&path, Creation::Never).unwrap();
    assert_eq!(kind(open(&path, Creation::Never)), ErrorKind::Busy);
    assert!(Store::is_at(&path).unwrap());
    store.close().unwrap();
    open(&path, Creation::Never).unwrap();
}
