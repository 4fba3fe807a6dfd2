//! What a store in use tells other processes.
#![cfg(all(target_os = "linux", not(feature = "portable")))]

use std::io::{BufRead, BufReader};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kreon::{ErrorKind, Store, StoreStatus};

const STORE: &str = "KREON_TEST_STORE";

fn open(path: &Path) -> Store {
    Store::options()
        .memory_bytes(16 << 20)
        .status(true)
        .open(path)
        .unwrap()
}

/// The part of a child process: has the store open until it is killed or its input ends.
#[test]
fn child() {
    let Ok(path) = std::env::var(STORE) else {
        return;
    };
    let store = open(path.as_ref());
    let region = store.region("of the child").unwrap();
    region.put("key", "value").unwrap();
    println!("\nopen");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

fn opened_by_a_child(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(STORE, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(
        lines
            .map_while(std::io::Result::ok)
            .any(|line| line == "open")
    );
    child
}

#[test]
fn another_process_learns_the_figures_of_an_open_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut child = opened_by_a_child(&path);
    let link = folder.path().join("link");
    std::fs::hard_link(&path, &link).unwrap();
    for path in [&path, &link] {
        let status = StoreStatus::of(path).unwrap().expect("a status");
        assert!(status.json().contains(r#""regions":["of the child"]"#));
        assert!(status.prometheus().contains("\nkreon_store_l0_entries 1\n"));
        assert!(status.table().contains("memory budget"));
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(StoreStatus::of(&path).unwrap(), None);
}

#[test]
fn a_killed_process_leaves_nothing_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for _ in 0..2 {
        let mut child = opened_by_a_child(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(StoreStatus::of(&path).unwrap(), None);
    }
    let _store = open(&path);
    assert!(StoreStatus::of(&path).unwrap().is_some());
}

#[test]
fn nobody_is_told_without_the_option_nor_by_readers_nor_after_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let status = || StoreStatus::of(&path).unwrap();
    assert_eq!(
        StoreStatus::of(&path).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let store = Store::options().memory_bytes(16 << 20).open(&path).unwrap();
    assert_eq!(status(), None);
    drop(store);
    let reader = Store::options().read_only(true).status(true);
    let reader = reader.open(&path).unwrap();
    assert_eq!(status(), None);
    drop(reader);
    let store = open(&path);
    assert!(status().is_some());
    store.close().unwrap();
    assert_eq!(status(), None);
    // The name is free again.
    drop(store);
    let store = open(&path);
    assert!(status().is_some());
    drop(store);
    assert_eq!(status(), None);
}

#[test]
fn who_asks_and_reads_nothing_holds_up_no_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path);
    // An answer that no socket buffer holds.
    for number in 0..4000 {
        let name = format!("{number}{}", "n".repeat(200));
        store.region(&name).unwrap();
    }
    let about = std::fs::metadata(&path).unwrap();
    let name = format!("kreon-status-{:x}-{:x}", about.dev(), about.ino());
    let name = SocketAddr::from_abstract_name(name).unwrap();
    let idle: Vec<_> = (0..3)
        .map(|_| UnixStream::connect_addr(&name).unwrap())
        .collect();
    let region = store.region("r").unwrap();
    region.put("key", "value").unwrap();
    let begun = std::time::Instant::now();
    store.close().unwrap();
    // Each of the three would be given up after five seconds.
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    drop(idle);
}
