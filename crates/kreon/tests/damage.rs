//! Reads of damaged bytes return the right value or `Corruption` with a place, never a wrong value.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use kreon::{ErrorKind, Store};

const SLOT_PAGES: [u64; 4] = [0, 8, 16, 24];
const KEYS: u32 = 3000;

fn open(path: &Path) -> kreon::Result<Store> {
    Store::options()
        .memory_bytes(16 << 20)
        .l0_bytes(256 << 10)
        .background_inline()
        .open(path)
}

fn value(key: u32) -> Vec<u8> {
    key.to_le_bytes()
        .repeat(if key.is_multiple_of(3) { 5 } else { 100 })
}

fn make(path: &Path) {
    let store = open(path).unwrap();
    let region = store.region("r").unwrap();
    for key in 0..KEYS {
        region.put(format!("key{key:06}"), value(key)).unwrap();
    }
    store.checkpoint().unwrap();
    // Some records stay behind the marker, to be replayed.
    for key in 0..50 {
        region.put(format!("key{key:06}"), value(key)).unwrap();
    }
    store.close().unwrap();
}

fn flip(path: &Path, offset: u64) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 0x40], offset).unwrap();
}

/// Number of unreadable keys of the store at `path`; a wrong value fails the test.
fn unreadable(path: &Path) -> usize {
    let store = match open(path) {
        Ok(store) => store,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            return KEYS as usize;
        }
    };
    let region = store.region("r").unwrap();
    let mut lost = 0;
    for key in 0..KEYS {
        match region.get(format!("key{key:06}")) {
            Ok(Some(got)) => assert_eq!(got, value(key).as_slice()),
            Ok(None) => panic!("key {key} vanished without an error"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                lost += 1;
            }
        }
    }
    if lost > 0 {
        assert!(!store.verify().unwrap().is_clean());
        let scanned: kreon::Result<Vec<_>> = region.iter().collect();
        assert_eq!(scanned.unwrap_err().kind(), ErrorKind::Corruption);
    }
    lost
}

#[test]
fn any_one_good_superblock_slot_opens_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, copy) = (folder.path().join("whole"), folder.path().join("copy"));
    make(&whole);
    for damaged in 1..16u32 {
        fs::copy(&whole, &copy).unwrap();
        for (slot, page) in SLOT_PAGES.iter().enumerate() {
            if damaged & 1 << slot != 0 {
                flip(&copy, page * 4096 + 20);
            }
        }
        if damaged == 15 {
            let error = open(&copy).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(error.to_string().contains("superblock"), "{error}");
        } else {
            assert_eq!(unreadable(&copy), 0, "slots {damaged:04b}");
            // The opening has rewritten all slots.
            assert_eq!(unreadable(&copy), 0);
        }
    }
}

#[test]
fn a_flipped_byte_anywhere_is_harmless_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, copy) = (folder.path().join("whole"), folder.path().join("copy"));
    make(&whole);
    let len = fs::metadata(&whole).unwrap().len();
    let bytes = fs::read(&whole).unwrap();
    let mut state = 0x1234_5678_9abc_def1u64;
    let (mut harmful, mut tries) = (0, 0);
    while tries < 60 {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let offset = (state >> 20) % len;
        // Damage to pages that were never written proves nothing.
        let page = (offset / 4096 * 4096) as usize;
        if bytes[page..page + 4096].iter().all(|byte| *byte == 0) {
            continue;
        }
        tries += 1;
        fs::copy(&whole, &copy).unwrap();
        flip(&copy, offset);
        harmful += usize::from(unreadable(&copy) > 0);
    }
    assert!(
        harmful > 10,
        "only {harmful} of {tries} flips hit something in use"
    );
}
