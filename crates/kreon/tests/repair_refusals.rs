//! Repairs that are refused, with nothing changed.

use std::fs;

use kreon::{ErrorKind, Repair, Store};

#[test]
fn what_is_no_store_is_refused_and_leaves_no_target() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    for bytes in [
        vec![],
        vec![7; 100],
        vec![0; 8 << 20],
        (0..3_000_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect(),
    ] {
        fs::write(&source, &bytes).unwrap();
        let error = Repair::new().run(&source, &target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(
            error.to_string().contains("nothing here verifies"),
            "{error}"
        );
        assert!(!target.exists() && fs::read(&source).unwrap() == bytes);
    }
    let missing = Repair::new()
        .run(folder.path().join("none"), &target)
        .unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn a_target_that_is_there_and_a_source_that_is_open_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let store = Store::options()
        .memory_bytes(16 << 20)
        .open(&source)
        .unwrap();
    let busy = Repair::new().run(&source, &target).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    store.close().unwrap();
    fs::write(&target, "mine").unwrap();
    let taken = Repair::new().run(&source, &target).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::InvalidArgument);
    assert_eq!(fs::read(&target).unwrap(), b"mine");
}
