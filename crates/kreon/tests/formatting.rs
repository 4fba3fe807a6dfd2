//! Where a store is created: where there is nothing, and over other content only with `format`.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use kreon::{Durability, ErrorKind, Repair, Store};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn options() -> kreon::Options {
    Store::options()
        .memory_bytes(16 << 20)
        .l0_bytes(256 << 10)
        .background_inline()
}

fn put(path: &Path, options: kreon::Options, key: &str) -> kreon::Result<()> {
    let store = options.open(path)?;
    let region = store.region("r")?;
    region.put_with(key, "value", Durability::Sync)?;
    drop(region);
    store.close()
}

fn keys(path: &Path) -> Vec<String> {
    let store = options().create(false).open(path).unwrap();
    let region = store.existing_region("r").unwrap();
    let keys = region.iter().keys();
    keys.map(|key| String::from_utf8(key.unwrap().to_vec()).unwrap())
        .collect()
}

/// A store with keys in a tree and in the log behind it.
fn make(path: &Path) {
    let store = options().open(path).unwrap();
    let region = store.region("r").unwrap();
    for key in 0..3000 {
        region.put(format!("old{key:04}"), vec![3; 200]).unwrap();
    }
    store.checkpoint().unwrap();
    region.put_with("old-last", "v", Durability::Sync).unwrap();
    drop(region);
    store.close().unwrap();
}

fn zero(path: &Path, len_bytes: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; len_bytes as usize], 0).unwrap();
}

/// An opening of `path` fails with `kind` and changes nothing; with `format` it creates a store there.
fn is_formatted_on_demand_only(path: &Path, kind: ErrorKind, words: &[&str]) {
    let before = fs::read(path).unwrap();
    for create in [true, false] {
        let error = put(path, options().create(create), "k").unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        for word in words.iter().chain(&["Options::format(true)"]) {
            assert!(error.to_string().contains(word), "no `{word}` in {error}");
        }
    }
    let error = put(path, options().create(false).format(true), "k").unwrap_err();
    assert_ne!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(fs::read(path).unwrap() == before, "something was written");

    put(path, options().format(true), "new").unwrap();
    assert_eq!(keys(path), ["new"]);
    // Now there is a store, which is opened.
    put(path, options().format(true), "newer").unwrap();
    assert_eq!(keys(path), ["new", "newer"]);
}

#[test]
fn what_is_no_store_is_formatted_on_demand_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let text = b"the only copy of something".to_vec();
    let behind_zeroes = [vec![0; 128 << 10], text.clone()].concat();
    let contents: [Vec<u8>; 7] = [
        text.clone(),
        text.repeat(20_000),
        behind_zeroes,
        // Zeroes, as a preallocation leaves them.
        vec![0; 1],
        vec![0; 4096],
        vec![0; (128 << 10) + 1],
        vec![0; 300 << 10],
    ];
    for content in contents {
        fs::write(&path, content).unwrap();
        is_formatted_on_demand_only(&path, ErrorKind::InvalidArgument, &["not a Kreon store"]);
    }
    for len_bytes in [MIB, 100 * MIB] {
        fs::remove_file(&path).unwrap();
        let file = fs::File::create(&path).unwrap();
        file.set_len(len_bytes).unwrap();
        is_formatted_on_demand_only(&path, ErrorKind::InvalidArgument, &["not a Kreon store"]);
    }
}

#[test]
fn a_file_without_bytes_is_formatted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    fs::write(&path, "").unwrap();
    let error = put(&path, options().create(false), "k").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    put(&path, options(), "k").unwrap();
    assert_eq!(keys(&path), ["k"]);
}

#[test]
fn a_store_that_lost_its_start_is_told_as_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole"), folder.path().join("copy"));
    make(&whole);
    for len_bytes in [100 * KIB, 128 * KIB, 256 * KIB, MIB, 2 * MIB] {
        fs::copy(&whole, &path).unwrap();
        zero(&path, len_bytes);
        let repaired = folder.path().join(format!("repaired-{len_bytes}"));
        let report = Repair::new().run(&path, &repaired).unwrap();
        let pairs: u64 = report.regions.iter().map(|region| region.pairs).sum();
        assert_eq!(pairs, 3001, "after {len_bytes} zeroes: {report:?}");
        is_formatted_on_demand_only(&path, ErrorKind::Corruption, &["kreon repair"]);
    }
}

#[test]
fn a_store_of_one_epoch_that_lost_its_superblocks_is_told_as_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(options().open(&path).unwrap());
    // The store has only its first checkpoint and that of its first opening.
    zero(&path, 100 * KIB);
    is_formatted_on_demand_only(&path, ErrorKind::Corruption, &["kreon repair"]);
}

#[test]
fn a_store_that_opens_or_has_a_superblock_is_never_formatted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    make(&path);
    put(&path, options().format(true), "another").unwrap();
    assert_eq!(keys(&path).len(), 3002);
    // A superblock is valid, its catalogue is not.
    let len_bytes = fs::metadata(&path).unwrap().len();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(len_bytes / 2).unwrap();
    let before = fs::read(&path).unwrap();
    let error = put(&path, options().format(true), "k").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(fs::read(&path).unwrap() == before);
    // And a file that ends among the superblocks.
    file.set_len(40 * KIB).unwrap();
    is_formatted_on_demand_only(&path, ErrorKind::Corruption, &["cut off"]);
}

#[test]
fn what_stood_there_before_a_format_never_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    make(&path);
    zero(&path, 256 * KIB);
    put(&path, options().format(true), "new").unwrap();
    for len_bytes in [0, 100 * KIB, 256 * KIB, MIB] {
        let copy = folder.path().join(format!("copy-{len_bytes}"));
        fs::copy(&path, &copy).unwrap();
        zero(&copy, len_bytes);
        let repaired = folder.path().join(format!("repaired-{len_bytes}"));
        let report = Repair::new().run(&copy, &repaired).unwrap();
        assert_eq!(keys_of(&repaired), ["new"], "{report:?}");
    }
}

/// The keys of all regions.
fn keys_of(path: &Path) -> Vec<String> {
    let store = options().create(false).open(path).unwrap();
    let mut keys = Vec::new();
    for name in store.region_names() {
        for key in store.existing_region(&name).unwrap().iter().keys() {
            keys.push(String::from_utf8(key.unwrap().to_vec()).unwrap());
        }
    }
    keys
}

/// A file as a block device, detached at the end.
struct Loop(PathBuf);

impl Loop {
    /// `None`, with a message, where loop devices are not permitted.
    fn attach(file: &Path) -> Option<Self> {
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Self(
                String::from_utf8(output.stdout).unwrap().trim().into(),
            )),
            _ => {
                eprintln!("skipped: loop devices are not permitted here");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .output();
    }
}

#[test]
fn a_block_device_is_formatted_on_demand_only() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let backing = folder.path().join("backing");
    let file = fs::File::create(&backing).unwrap();
    file.set_len(64 * MIB).unwrap();
    let Some(disk) = Loop::attach(&backing) else {
        return;
    };
    let fails = |kind| {
        let error = put(&disk.0, options(), "k").unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(
            error.to_string().contains("Options::format(true)"),
            "{error}"
        );
    };
    fails(ErrorKind::InvalidArgument);
    let store = options().format(true).open(&disk.0).unwrap();
    let region = store.region("r").unwrap();
    for key in 0..3000 {
        region.put(format!("old{key}"), vec![1; 1000]).unwrap();
    }
    store.checkpoint().unwrap();
    drop(region);
    store.close().unwrap();
    drop(store);
    put(&disk.0, options(), "another").unwrap();
    // As `dd if=/dev/zero bs=1M count=1` leaves the disk.
    zero(&disk.0, MIB);
    fails(ErrorKind::Corruption);
    put(&disk.0, options().format(true), "new").unwrap();
    assert_eq!(keys(&disk.0), ["new"]);
    zero(&disk.0, 100 * KIB);
    let repaired = folder.path().join("repaired");
    Repair::new().run(&disk.0, &repaired).unwrap();
    assert_eq!(keys_of(&repaired), ["new"]);
}
