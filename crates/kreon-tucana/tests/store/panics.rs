//! Threads that panic in the middle of their work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use tucana::{ErrorKind, Maintenance, Options};

use crate::hooked_device::HookedDevice;
use crate::one_region::OneRegion;
use crate::world::{device, options};

fn open(options: &Options) -> (Arc<HookedDevice>, OneRegion) {
    let (device, _stop) = HookedDevice::new(device(), usize::MAX);
    let store = OneRegion::open(Arc::clone(&device) as _, options).unwrap();
    store.put(b"key", b"value").unwrap();
    (device, store)
}

/// What it was about to make durable is lost to the next commit.
#[test]
fn a_commit_that_panics_ends_all_writing() {
    let (device, store) = open(&options());
    device.panics.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| store.commit())).is_err());
    device.panics.store(false, SeqCst);
    for outcome in [store.commit(), store.sync(), store.put(b"a", b"").map(drop)] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
    }
    assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    drop(store);
    let store = OneRegion::open(Arc::clone(&device) as _, &options()).unwrap();
    store.verify().unwrap();
}

#[test]
fn nobody_waits_for_a_leader_that_panics() {
    let (device, store) = open(&options());
    let store = Arc::new(store);
    device.panics.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| store.sync())).is_err());
    device.panics.store(false, SeqCst);
    let (tell, told) = channel();
    thread::spawn({
        let store = Arc::clone(&store);
        move || tell.send(store.sync())
    });
    let outcome = told.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn writers_do_not_wait_for_a_thread_that_has_panicked() {
    let threaded = Options {
        maintenance: Maintenance::Thread,
        commit_interval: Duration::from_millis(20),
        ..options()
    };
    let (device, store) = open(&threaded);
    device.panics.store(true, SeqCst);
    let start = Instant::now();
    let error = loop {
        match store.put(b"key", b"another") {
            Ok(_) => assert!(start.elapsed() < Duration::from_secs(30)),
            Err(error) => break error,
        }
        thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(error.kind(), ErrorKind::Poisoned);
}
