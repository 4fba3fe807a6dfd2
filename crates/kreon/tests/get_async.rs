//! Gets as futures, over files.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream::FuturesUnordered};
use kreon::{Durability, ErrorKind, GetAsync, Options, Region, Store};

const RECORDS: u64 = 20_000;

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(number: u64, version: u64) -> Vec<u8> {
    [number, version].map(u64::to_le_bytes).concat().repeat(50)
}

/// A store with 16 MB of values in 8 MiB of memory, all of them on the device.
fn filled(folder: &tempfile::TempDir, io_uring: bool) -> (Store, Region) {
    filled_with(folder, Store::options().io_uring(io_uring))
}

fn filled_with(folder: &tempfile::TempDir, options: Options) -> (Store, Region) {
    let path = folder.path().join("store");
    let store = options.memory_bytes(8 << 20).open(path).unwrap();
    let region = store.region("r").unwrap();
    for number in 0..RECORDS {
        region
            .put_with(key(number), value(number, 0), Durability::Buffered)
            .unwrap();
    }
    store.checkpoint().unwrap();
    (store, region)
}

struct Unpark(std::thread::Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, SeqCst);
        self.0.unpark();
    }
}

/// A minimal executor; a future that is never woken fails the test.
fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Arc::clone(&unpark).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let start = Instant::now();
        while !unpark.1.swap(false, SeqCst) {
            assert!(start.elapsed() < Duration::from_secs(30), "never woken");
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
}

/// Gets `count` records, `in_flight` at a time.
async fn get_many(region: &Region, seed: u64, count: u64, in_flight: usize) {
    let mut numbers = (0..count).map(|n| n.wrapping_mul(seed | 1) % (RECORDS + 10));
    let get = |number: u64| {
        let get = region.get_async(key(number));
        async move { (number, get.await.unwrap()) }
    };
    let mut gets: FuturesUnordered<_> = numbers.by_ref().take(in_flight).map(get).collect();
    while let Some((number, found)) = gets.next().await {
        match found {
            Some(found) => assert_eq!(found[..8], number.to_le_bytes(), "record {number}"),
            None => assert!(number >= RECORDS, "record {number} was not found"),
        }
        gets.extend(numbers.next().map(get));
    }
}

#[test]
fn futures_of_gets_are_sent_and_outlive_what_made_them() {
    fn check<T: Send + 'static>(_: &T) {}
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    region.put("k", "v").unwrap();
    let snapshot = store.snapshot();
    region.put("k", "w").unwrap();
    let old = snapshot.get_async(&region, "k");
    let new = region.get_async(String::from("k"));
    check(&old);
    check(&new);
    drop((store, region, snapshot));
    assert_eq!(block_on(old).unwrap().as_deref(), Some(b"v".as_slice()));
    assert_eq!(block_on(new).unwrap().as_deref(), Some(b"w".as_slice()));
}

#[test]
fn every_executor_gets_what_was_put_at_any_depth() {
    for io_uring in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (store, region) = filled(&folder, io_uring);
        for in_flight in [1, 7, 400] {
            block_on(get_many(&region, 77_777, 1500, in_flight));
            store.drive(get_many(&region, 99_991, 1500, in_flight));
        }
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (store, region) = (&store, &region);
                scope.spawn(move || match thread % 2 {
                    0 => block_on(get_many(region, 1009 + thread, 1000, 32)),
                    _ => store.drive(get_many(region, 1009 + thread, 1000, 32)),
                });
            }
            for number in (0..RECORDS).step_by(23) {
                let found = region.get(key(number)).unwrap().unwrap();
                assert_eq!(found, value(number, 0).as_slice());
            }
        });
    }
}

#[test]
fn gets_see_one_version_or_the_other_while_spills_replace_pages() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder, true);
    let before = store.snapshot();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..4 {
                for number in 0..RECORDS {
                    let put =
                        region.put_with(key(number), value(number, version), Durability::Buffered);
                    put.unwrap();
                }
                store.checkpoint().unwrap();
            }
            done.store(true, SeqCst);
        });
        let mut seed = 1;
        while !done.load(SeqCst) {
            seed += 2;
            store.drive(get_many(&region, seed, 500, 64));
            let number = seed % RECORDS;
            let old = block_on(before.get_async(&region, key(number))).unwrap();
            assert_eq!(old.unwrap(), value(number, 0).as_slice());
        }
    });
    let newest = store.drive(region.get_async(key(5))).unwrap().unwrap();
    assert_eq!(newest, value(5, 3).as_slice());
}

/// Polls a get until it has been woken `polls` times; returns the result if it completes.
fn poll_times(get: &mut GetAsync<[u8; 8]>, polls: usize) -> Option<kreon::Value> {
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Arc::clone(&unpark).into();
    for _ in 0..polls {
        if let Poll::Ready(found) = Pin::new(&mut *get).poll(&mut Context::from_waker(&waker)) {
            return Some(found.unwrap().unwrap());
        }
        while !unpark.1.swap(false, SeqCst) {
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
    None
}

#[test]
fn a_get_may_be_dropped_or_forgotten_at_any_point() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder, true);
    let mut noop = Context::from_waker(Waker::noop());
    for number in 0..600 {
        let mut get = region.get_async(key(number));
        if let Some(found) = poll_times(&mut get, number as usize % 4) {
            assert_eq!(found, value(number, 0).as_slice());
            continue;
        }
        // One more poll, with a waker that wakes nobody; the get is not polled again.
        let _ = Pin::new(&mut get).poll(&mut noop);
        match number % 3 {
            0 => std::mem::forget(get),
            1 => drop(get),
            _ => assert_eq!(block_on(get).unwrap().unwrap(), value(number, 0).as_slice()),
        }
    }
    store.drive(get_many(&region, 31, 2000, 100));
    store.close().unwrap();
}

#[test]
fn closing_ends_gets_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder, true);
    let mut noop = Context::from_waker(Waker::noop());
    let mut gets: Vec<_> = (0..300)
        .map(|number| region.get_async(key(number * 7)))
        .collect();
    for get in &mut gets {
        let _ = Pin::new(get).poll(&mut noop);
    }
    store.close().unwrap();
    for get in gets {
        let closed = block_on(get).unwrap_err();
        assert_eq!(closed.kind(), ErrorKind::Closed);
    }
    drop((store, region));
    let store = Store::open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    assert_eq!(region.get(key(3)).unwrap().unwrap(), value(3, 0).as_slice());
}

#[test]
fn a_drive_waits_for_other_things_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let (store, region) = filled(&folder, true);
    let flag = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&flag);
    let waits = std::future::poll_fn(move |context| {
        if other.load(SeqCst) {
            return Poll::Ready(());
        }
        let (other, waker) = (Arc::clone(&other), context.waker().clone());
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            other.store(true, SeqCst);
            waker.wake();
        });
        Poll::Pending
    });
    store.drive(async {
        get_many(&region, 5, 200, 16).await;
        waits.await;
    });
    assert!(flag.load(SeqCst));
}

#[cfg(feature = "comparison")]
#[test]
fn what_is_kept_without_its_pages_is_not_read_again_by_any_kind_of_read() {
    let folder = tempfile::tempdir().unwrap();
    let modes = kreon::MappingModes {
        records: kreon::KeepRecords::Always,
        ..kreon::MappingModes::default()
    };
    let (store, region) = filled_with(&folder, Store::options().mapping_modes(modes));
    let key = key(5);
    // Twice: the index is read as pages, then the record alone.
    for _ in 0..2 {
        assert_eq!(region.get(key).unwrap().unwrap(), value(5, 0).as_slice());
    }
    let (before, expected) = (store.stats().mapping, value(5, 0));
    assert!(before.record_hits > 0, "not kept");
    let get = block_on(region.get_async(key)).unwrap();
    assert_eq!(get.unwrap(), expected.as_slice());
    let many = region.multi_get(&[key, key]).unwrap();
    for found in many {
        assert_eq!(found.unwrap(), expected.as_slice());
    }
    let (_, scanned) = region.range(key..).limit(1).next().unwrap().unwrap();
    assert_eq!(scanned, expected.as_slice());
    let after = store.stats().mapping;
    assert_eq!(after.pages_read, before.pages_read);
    assert_eq!(after.record_hits, before.record_hits + 4);
}
