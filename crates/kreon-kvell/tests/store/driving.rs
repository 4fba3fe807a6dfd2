//! Threads that drive futures, and work as workers meanwhile.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Poll, Waker};

use kreon_sim::SimDevice;
use kvell::Durability::{Buffered, Sync};
use kvell::{ErrorKind, Options, Region, Store};
use parking_lot::Mutex;

use crate::world::{after_power_cut, new_store, open, options, simulated, value};

/// Something that happens once.
#[derive(Default)]
struct Event {
    has_happened: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Event {
    fn happen(&self) {
        self.has_happened.store(true, SeqCst);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|context| {
            *self.waker.lock() = Some(context.waker().clone());
            match self.has_happened.load(SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

/// A store with one worker.
fn store_of_one_worker() -> (Arc<SimDevice>, Store, Region) {
    let device = simulated(1 << 40);
    let options = Options {
        workers: Some(1),
        ..options()
    };
    let store = open(&device, &options);
    let region = store.region("r").expect("a region");
    (device, store, region)
}

/// Starts a thread that drives until the event; it has begun when this returns.
fn start_driver(store: &Store, event: &Arc<Event>) -> (std::thread::JoinHandle<()>, Receiver<()>) {
    let (store, event) = (store.clone(), Arc::clone(event));
    let (began, begins) = channel();
    let thread = std::thread::spawn(move || {
        let future = async {
            began.send(()).expect("the test waits");
            event.wait().await;
        };
        store.drive(future).expect("it drives");
    });
    begins.recv().expect("it has begun");
    (thread, begins)
}

async fn put_and_get(region: &Region, keys: std::ops::Range<u64>) {
    let puts: Vec<_> = keys
        .clone()
        .map(|key| region.put_async(key.to_be_bytes(), value(key, 900), Sync))
        .collect();
    for put in puts {
        put.await.expect("a put");
    }
    let gets: Vec<_> = keys
        .clone()
        .map(|key| region.get_async(key.to_be_bytes()))
        .collect();
    for (key, get) in keys.zip(gets) {
        assert_eq!(get.await.expect("a get"), Some(value(key, 900)));
    }
}

#[test]
fn a_driven_future_has_its_requests_answered() {
    for (device, store, region) in [new_store(), store_of_one_worker()] {
        store
            .drive(put_and_get(&region, 0..300))
            .expect("it drives");
        let (_store, after) = after_power_cut(&device);
        assert_eq!(
            after.get(7_u64.to_be_bytes()).expect("a get"),
            Some(value(7, 900))
        );
    }
}

#[test]
fn more_threads_than_workers_may_drive() {
    let (_, store, region) = new_store();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (store, region) = (&store, &region);
            scope.spawn(move || {
                let keys = thread * 1000..thread * 1000 + 200;
                store.drive(put_and_get(region, keys)).expect("it drives");
            });
        }
    });
    store.close().expect("a close");
}

#[test]
fn a_driver_answers_others() {
    let (_, store, region) = store_of_one_worker();
    let event = Arc::default();
    let (driver, _begun) = start_driver(&store, &event);
    for key in 0..50_u64 {
        region
            .put(key.to_be_bytes(), value(key, 700), Sync)
            .expect("a put");
    }
    store.sync().expect("a sync");
    event.happen();
    driver.join().expect("it ends");
    assert_eq!(
        region.get(3_u64.to_be_bytes()).expect("a get"),
        Some(value(3, 700))
    );
}

#[test]
fn the_worker_goes_on_after_a_driver_that_panics() {
    let (_, store, region) = store_of_one_worker();
    let future = async {
        region.put_async("a", "1", Sync).await.expect("a put");
        // Under way when the driver leaves.
        drop(region.put_async("b", "2", Sync));
        panic!("planned");
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| store.drive(future)));
    assert!(outcome.is_err());
    region.put("c", "3", Sync).expect("a put");
    store.close().expect("a close");
}

#[test]
fn a_store_closes_beside_a_driver() {
    let (device, store, region) = store_of_one_worker();
    let event = Arc::default();
    let (driver, _begun) = start_driver(&store, &event);
    region.put("key", "value", Buffered).expect("a put");
    store.close().expect("a close");
    let again = open(&device, &options());
    let region = again.region("r").expect("the region");
    assert_eq!(region.get("key").expect("a get"), Some(b"value".to_vec()));
    event.happen();
    driver.join().expect("it ends");
}

#[test]
fn a_driven_future_that_would_wait_for_the_store_is_refused() {
    let (_, store, region) = store_of_one_worker();
    let refused = |outcome: kvell::Result<()>| {
        let kind = outcome.expect_err("it would wait for itself").kind();
        assert_eq!(kind, ErrorKind::InvalidArgument);
    };
    let future = async {
        refused(region.put("key", "value", Buffered));
        refused(region.get("key").map(drop));
        refused(store.sync());
        refused(store.drive(async {}));
    };
    store.drive(future).expect("it drives");
    region
        .put("key", "value", Buffered)
        .expect("a driver no longer");
}
