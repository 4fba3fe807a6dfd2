//! A full file system and a full volume: writes fail cleanly, nothing is lost, deletions make room.

use std::path::Path;
use std::process::Command;

use kreon::{Durability, ErrorKind, Store};

/// A small tmpfs; `None` where it may not be mounted.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .output();
        match status {
            Ok(output) if output.status.success() => Some(Self(folder)),
            _ => {
                eprintln!("skipped: mounting a tmpfs is not permitted here");
                None
            }
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn options() -> kreon::Options {
    Store::options().memory_bytes(16 << 20).l0_bytes(64 << 10)
}

fn value(n: u64) -> Vec<u8> {
    n.to_le_bytes().repeat(500)
}

/// Fills the store, checks that nothing is lost, deletes everything, and fills it again.
fn fill_empty_and_fill_again(path: &Path, open: impl Fn(&Path) -> Store) {
    let mut store = open(path);
    let mut counts = Vec::new();
    for round in 0..3u64 {
        let region = store.region("r").unwrap();
        let mut written = 0;
        let error = loop {
            match region.put(written.to_string(), value(written + round)) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
            assert!(written < 1_000_000, "the volume never becomes full");
        };
        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
        assert_eq!(region.iter().keys().count() as u64, written);
        drop(region);
        store.sync().unwrap();
        store.close().unwrap();
        drop(store);
        store = open(path);
        let region = store.region("r").unwrap();
        for n in 0..written {
            let got = region.get(n.to_string()).unwrap().unwrap();
            assert_eq!(got, value(n + round).as_slice());
        }
        for n in 0..written {
            region.delete(n.to_string()).unwrap();
        }
        region.delete_with("nothing", Durability::Sync).unwrap();
        assert_eq!(region.iter().count(), 0);
        store.checkpoint().unwrap();
        counts.push(written);
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
    let least = counts.iter().min().unwrap();
    assert!(
        *least * 10 >= counts[0] * 8,
        "room is lost from round to round: {counts:?}"
    );
}

// Other systems allocate nothing ahead: a write fails, and the store takes no more until it is opened again.
#[cfg_attr(feature = "portable", ignore = "needs allocation ahead")]
#[test]
fn a_full_file_system_loses_nothing_and_recovers() {
    let Some(tmpfs) = Tmpfs::mount("64m") else {
        return;
    };
    fill_empty_and_fill_again(&tmpfs.0.path().join("store"), |path| {
        options().open(path).unwrap()
    });
}

#[cfg(feature = "portable")]
#[test]
fn without_allocation_ahead_a_full_file_system_poisons_the_store_and_loses_nothing_durable() {
    let Some(tmpfs) = Tmpfs::mount("64m") else {
        return;
    };
    let path = tmpfs.0.path().join("store");
    let region = options().open(&path).unwrap().region("r").unwrap();
    let mut written = 0;
    let error = loop {
        match region.put_with(written.to_string(), value(written), Durability::Sync) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    let kinds = [ErrorKind::Poisoned, ErrorKind::OutOfSpace, ErrorKind::Io];
    assert!(kinds.contains(&error.kind()), "{error}");
    drop(region);
    // It opens again when there is room.
    let room = ["-o", "remount,size=256m"];
    let remounted = Command::new("mount")
        .args(room)
        .arg(tmpfs.0.path())
        .status();
    assert!(remounted.unwrap().success());
    let region = options().open(&path).unwrap().region("r").unwrap();
    for n in 0..written {
        let got = region.get(n.to_string()).unwrap().unwrap();
        assert_eq!(got, value(n).as_slice());
    }
}

#[test]
fn a_full_volume_loses_nothing_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    fill_empty_and_fill_again(&folder.path().join("store"), |path| {
        options().volume_bytes_max(64 << 20).open(path).unwrap()
    });
}

#[test]
fn a_store_that_does_not_fit_is_refused_and_leaves_no_trace_of_success() {
    let Some(tmpfs) = Tmpfs::mount("1m") else {
        return;
    };
    let error = options().open(tmpfs.0.path().join("store")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
}
