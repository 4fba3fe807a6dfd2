//! A store in a forked child: all calls are refused, and the parent is not disturbed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kreon::{Durability, Durable, ErrorKind, Region, Scan, Snapshot, Store, WriteBatch};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn kill(process: i32, signal: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// One test at a time: a forked child inherits the open stores of other tests in this process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const NO_HANG: i32 = 1;
const KILL: i32 = 9;

/// A forked child, killed on drop if it has not ended.
struct Child(i32);

impl Child {
    /// Forks a child that runs `work` and exits, with 0 if the result is `Ok`.
    fn running(work: impl FnOnce() -> Result<(), String>) -> Self {
        // SAFETY: the child has only this thread. Besides the store it uses the allocator, whose locks the C library
        // makes usable in a child, and standard error.
        let child = unsafe { fork() };
        if child == 0 {
            let outcome = work();
            if let Err(what) = &outcome {
                eprintln!("in the child: {what}");
            }
            // Not `exit`, because the exit handlers of the standard library take locks.
            // SAFETY: ends the child at once.
            unsafe { _exit(i32::from(outcome.is_err())) }
        }
        assert!(child > 0);
        Self(child)
    }

    /// Waits for the child to end, soon and with success.
    fn join(self) {
        let start = Instant::now();
        let mut status = -1;
        loop {
            // SAFETY: `status` is a valid place for an `int`; the child is one of this process.
            let ended = unsafe { waitpid(self.0, &raw mut status, NO_HANG) };
            if ended == self.0 {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "the child hangs");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(status, 0, "the child failed");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // SAFETY: the process is a child of this one that was not waited for, so its number is not in use by
            // another.
            unsafe { kill(self.0, KILL) };
        }
    }
}

fn open(path: &Path) -> Store {
    Store::options()
        .memory_bytes(16 << 20)
        .l0_bytes(256 << 10)
        .durability(Durability::Sync)
        .open(path)
        .unwrap()
}

/// `Ok` if the call was refused as it must be in a child.
fn refused<T>(what: &str, outcome: kreon::Result<T>) -> Result<(), String> {
    match outcome {
        Ok(_) => Err(format!("{what} did something")),
        Err(error)
            if error.kind() != ErrorKind::Closed || !error.to_string().contains("forked") =>
        {
            Err(format!("{what}: {error}"))
        }
        Err(_) => Ok(()),
    }
}

/// Calls everything that a region and a snapshot can do.
fn region_is_refused(store: &Store, region: &Region, snapshot: &Snapshot) -> Result<(), String> {
    for durability in [Durability::Buffered, Durability::Sync] {
        refused("put", region.put_with("k", "child", durability))?;
        refused("delete", region.delete_with("k", durability))?;
        let mut batch = WriteBatch::new();
        batch.put(region, "k", "child");
        refused("write", store.write(batch, durability))?;
    }
    refused("delete_range", region.delete_range("a".."z"))?;
    refused("get", region.get("k"))?;
    refused("contains", region.contains("k"))?;
    refused("multi_get", region.multi_get(&["k", "l"]))?;
    refused("ingest", region.ingest([("a", "b")]))?;
    refused("compact", region.compact())?;
    refused("put_async", store.drive(region.put_async("k", "child")))?;
    refused("get_async", store.drive(region.get_async("k")))?;
    refused("first", region.iter().next().transpose())?;
    refused("last", region.iter().next_back().transpose())?;
    refused("snapshot", store.snapshot().get(region, "k"))?;
    refused("get of a snapshot", snapshot.get(region, "k"))?;
    refused(
        "scan of a snapshot",
        snapshot.iter(region).next().transpose(),
    )
}

/// Calls everything that a store can do.
fn store_is_refused(store: &Store) -> Result<(), String> {
    refused("region", store.region("r"))?;
    refused("new region", store.region("new"))?;
    refused("existing_region", store.existing_region("r"))?;
    refused("drop_region", store.drop_region("r"))?;
    refused("sync", store.sync())?;
    refused("sync_async", store.drive(store.sync_async()))?;
    refused("checkpoint", store.checkpoint())?;
    refused("checkpoint_l0", store.checkpoint_l0())?;
    refused("verify", store.verify())?;
    refused("close", store.close())?;
    match (store.region_names().len(), store.stats().epoch) {
        (0, 0) => Ok(()),
        shown => Err(format!("names and statistics: {shown:?}")),
    }
}

/// All kinds of handles.
struct Handles {
    store: Store,
    region: Region,
    snapshot: Snapshot,
    front: Scan,
    back: Scan,
    durable: Durable,
}

#[test]
fn a_child_is_refused_everything_and_the_parent_loses_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path);
    let region = store.region("r").unwrap();
    for key in 0..200 {
        region.put(format!("key{key:04}"), vec![7; key]).unwrap();
    }
    // Both scans have read ahead, short values and long ones.
    let (mut front, mut back) = (region.iter(), region.iter());
    front.next().unwrap().unwrap();
    back.next_back().unwrap().unwrap();
    let mut handles = Some(Handles {
        snapshot: store.snapshot(),
        durable: region.put_async("async", "parent"),
        front,
        back,
        region,
        store,
    });
    let child = Child::running(|| {
        let mut inherited = handles.take().ok_or("nothing inherited")?;
        let (store, region) = (&inherited.store, &inherited.region);
        region_is_refused(store, region, &inherited.snapshot)?;
        store_is_refused(store)?;
        refused("next", inherited.front.next().transpose())?;
        refused("next_back", inherited.back.next_back().transpose())?;
        refused("durable", store.drive(&mut inherited.durable))?;
        drop(inherited);
        refused("open of its own", Store::open(folder.path().join("own")))
    });
    child.join();
    assert!(!folder.path().join("own").exists());

    // The child had a copy of the handles.
    let of_parent = handles.take().unwrap();
    let again = Store::open(&path).unwrap_err();
    assert_eq!(
        again.kind(),
        ErrorKind::Busy,
        "the child gave up the lock: {again}"
    );
    assert_eq!(
        (of_parent.front.count(), of_parent.back.count()),
        (199, 199)
    );
    of_parent.store.drive(of_parent.durable).unwrap();
    of_parent.region.put("after", "parent").unwrap();
    drop((of_parent.snapshot, of_parent.region));
    assert!(of_parent.store.verify().unwrap().is_clean());
    of_parent.store.close().unwrap();
    drop(of_parent.store);

    let store = open(&path);
    let region = store.region("r").unwrap();
    assert_eq!(region.iter().count(), 202);
    assert_eq!(region.get("after").unwrap().unwrap(), b"parent");
    assert!(!region.contains("k").unwrap());
}

#[test]
fn children_of_a_busy_store_end_whatever_its_threads_hold() {
    let _alone = alone();
    const CHILDREN: u32 = 25;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path);
    let region = store.region("r").unwrap();
    let (is_over, written) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (store, region, is_over, written) = (&store, &region, &is_over, &written);
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let durability = match number % 8 {
                        0 => Durability::Sync,
                        _ => Durability::Buffered,
                    };
                    let key = format!("{thread}/{number:08}");
                    region.put_with(key, vec![1; 300], durability).unwrap();
                    drop(store.snapshot());
                    number += 1;
                }
                written.fetch_add(number, Ordering::Relaxed);
            });
        }
        for _ in 0..CHILDREN {
            let (store, region) = (store.clone(), region.clone());
            let snapshot = store.snapshot();
            let child = Child::running(|| {
                region_is_refused(&store, &region, &snapshot)?;
                store_is_refused(&store)?;
                drop((snapshot, region, store));
                Ok(())
            });
            child.join();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let count = region.iter().count();
    assert_eq!(count, written.into_inner() as usize);
    drop(region);
    store.close().unwrap();
    drop(store);
    let store = open(&path);
    assert_eq!(store.region("r").unwrap().iter().count(), count);
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn a_child_forked_while_nothing_is_open_has_stores_of_its_own() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let put = |key: &str| -> kreon::Result<()> {
        let store = Store::options().memory_bytes(16 << 20).open(&path)?;
        store.region("r")?.put(key, "v")?;
        store.close()
    };
    put("parent").unwrap();
    let child = Child::running(|| {
        put("child").map_err(|error| error.to_string())?;
        put("again").map_err(|error| error.to_string())
    });
    child.join();
    put("after").unwrap();
    let store = open(&path);
    assert_eq!(store.region("r").unwrap().iter().count(), 4);
}

#[test]
fn a_child_that_lives_on_does_not_keep_the_lock_of_a_closed_store() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (path, end) = (folder.path().join("store"), folder.path().join("end"));
    let store = open(&path);
    let child = Child::running(|| {
        let start = Instant::now();
        while !end.exists() && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        refused("sync", store.sync())
    });
    store.close().unwrap();
    drop(store);
    let again = Store::options().memory_bytes(16 << 20).open(&path);
    std::fs::write(&end, "").unwrap();
    child.join();
    again.unwrap().region("r").unwrap().put("k", "v").unwrap();
}
