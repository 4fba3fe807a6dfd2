//! A store in a forked child: all calls are refused, and the parent is not disturbed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use kreon_base::ErrorKind;
use kvell::Durability::Sync;
use kvell::{Options, Region, Store};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

const NO_HANG: i32 = 1;

/// Runs `work` in a forked child, and waits for it.
fn in_child(work: impl FnOnce() -> Result<(), String>) {
    // SAFETY: the child has only this thread. Besides the store it uses the allocator, whose locks the C library makes
    // usable in a child, and standard error.
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
    let (start, mut status) = (Instant::now(), -1);
    loop {
        // SAFETY: `status` is a valid place for an `int`; the child is one of this process.
        let ended = unsafe { waitpid(child, &raw mut status, NO_HANG) };
        if ended == child {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the child hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the child failed");
}

fn refused<T>(what: &str, outcome: kreon_base::Result<T>) -> Result<(), String> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::Closed && error.to_string().contains("forked") => {
            Ok(())
        }
        Err(error) => Err(format!("{what}: {error}")),
        Ok(_) => Err(format!("{what} did something")),
    }
}

/// Every call of both handles, then their end.
fn all_refused(store: Store, region: Region) -> Result<(), String> {
    refused("get", region.get("key"))?;
    refused("get of nothing", region.get("absent"))?;
    refused("contains", region.contains("key"))?;
    refused("multi_get", region.multi_get(&["key", "other"]))?;
    refused("put", region.put("key", "child", Sync))?;
    refused("delete", region.delete("key", Sync))?;
    refused(
        "write_many",
        region.write_many(&[("key", Some("child"))], Sync),
    )?;
    refused("region", store.region("other"))?;
    refused("sync", store.sync())?;
    refused("verify", store.verify())?;
    if store.stats() != kvell::Stats::default() {
        return Err("there are figures".into());
    }
    refused("close", store.clone().close())?;
    // What is dropped closes nothing.
    drop((region, store));
    Ok(())
}

#[test]
fn a_forked_child_is_refused_everything_and_the_parent_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        memory_bytes: 8 << 20,
        workers: Some(2),
        ..Options::default()
    };
    let path = folder.path().join("store");
    let store = options.open(&path).expect("a store");
    let region = store.region("r").expect("a region");
    region.put("key", "value", Sync).expect("a put");
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                if is_over.load(SeqCst) {
                    break;
                }
                let bytes = u64::to_be_bytes(number);
                region.put(bytes, bytes, Sync).expect("a put");
                written.store(number, SeqCst);
            }
        });
        for _ in 0..5 {
            let (store, region) = (store.clone(), region.clone());
            in_child(move || all_refused(store, region));
        }
        let before = written.load(SeqCst);
        while written.load(SeqCst) <= before {
            std::thread::yield_now();
        }
        is_over.store(true, SeqCst);
    });
    drop(region);
    store.close().expect("a close");
    let store = options.open(&path).expect("it is unlocked");
    let region = store.region("r").expect("the region");
    assert_eq!(region.get("key").expect("a get"), Some(b"value".to_vec()));
    for number in 1..=written.load(SeqCst) {
        let bytes = u64::to_be_bytes(number);
        assert_eq!(region.get(bytes).expect("a get"), Some(bytes.to_vec()));
    }
    assert!(store.verify().expect("a verification").is_clean());
}
