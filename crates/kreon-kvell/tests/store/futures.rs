//! Requests that are not waited for.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use kvell::Answer;
use kvell::Durability::{Buffered, Sync};
use parking_lot::Mutex;

use crate::world::{after_power_cut, new_store, options, value};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for all, in one thread. Their outcomes, in their order.
fn wait_for_all<T>(answers: Vec<Answer<T>>) -> Vec<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut found: Vec<Option<T>> = answers.iter().map(|_| None).collect();
    let mut answers: Vec<_> = answers.into_iter().map(Some).collect();
    while found.iter().any(Option::is_none) {
        for (answer, found) in answers.iter_mut().zip(&mut found) {
            let Some(pending) = answer else {
                continue;
            };
            if let Poll::Ready(outcome) = Pin::new(pending).poll(&mut context) {
                *found = Some(outcome.expect("an outcome"));
                *answer = None;
            }
        }
        if found.iter().any(Option::is_none) {
            std::thread::park();
        }
    }
    found.into_iter().flatten().collect()
}

#[test]
fn one_thread_has_many_requests_in_flight() {
    let (device, _store, region) = new_store();
    let puts = (0..500_u64).map(|key| region.put_async(key.to_be_bytes(), value(key, 900), Sync));
    wait_for_all(puts.collect());
    let deletions = (0..500_u64).step_by(5);
    let deletions = deletions.map(|key| region.delete_async(key.to_be_bytes(), Sync));
    wait_for_all(deletions.collect());
    let (_after_store, after) = after_power_cut(&device);
    for region in [&region, &after] {
        let gets = (0..500_u64).map(|key| region.get_async(key.to_be_bytes()));
        let values = wait_for_all(gets.collect());
        for (key, found) in (0..500_u64).zip(values) {
            assert_eq!(found, (key % 5 != 0).then(|| value(key, 900)));
        }
    }
}

#[test]
fn what_memory_answers_is_ready_at_once() {
    let (_, _store, region) = new_store();
    region.put("key", "value", Sync).expect("a put");
    let mut context = Context::from_waker(Waker::noop());
    for (key, expected) in [("key", Some(b"value".to_vec())), ("absent", None)] {
        let mut answer = region.get_async(key);
        match Pin::new(&mut answer).poll(&mut context) {
            Poll::Ready(found) => assert_eq!(found.expect("a get"), expected),
            Poll::Pending => panic!("{key} waits"),
        }
    }
}

#[test]
fn a_dropped_future_leaves_its_request_running() {
    let (device, store, region) = new_store();
    for key in 0..100_u64 {
        drop(region.put_async(key.to_be_bytes(), value(key, 600), Buffered));
        drop(region.get_async(key.to_be_bytes()));
    }
    store.close().expect("a close");
    let (_store, after) = after_power_cut(&device);
    for key in 0..100_u64 {
        let found = after.get(key.to_be_bytes()).expect("a get");
        assert_eq!(found, Some(value(key, 600)));
    }
}

/// Holds a handle until it is woken.
struct LastHandle(Mutex<Option<kvell::Region>>);

impl Wake for LastHandle {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().take());
    }
}

#[test]
fn what_a_worker_wakes_may_drop_the_last_handle() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = options().open(&path).expect("a store");
    let region = store.region("r").expect("a region");
    drop(store);
    let mut answer = region.put_async("key", "value", Sync);
    let waker = Waker::from(Arc::new(LastHandle(Mutex::new(Some(region)))));
    let mut context = Context::from_waker(&waker);
    let _ = Pin::new(&mut answer).poll(&mut context);
    // If the reply came before the poll, the handle goes with the waker.
    drop(waker);
    let store = options().open(&path).expect("it was closed");
    let region = store.region("r").expect("the region");
    assert_eq!(region.get("key").expect("a get"), Some(b"value".to_vec()));
}

/// A wake-up that goes wrong.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("planned");
    }
}

#[test]
fn a_wake_up_that_panics_harms_nobody() {
    let (_, store, region) = new_store();
    let waker = Waker::from(Arc::new(Panics));
    for key in 0..10_u64 {
        let mut answer = region.put_async(key.to_be_bytes(), "value", Sync);
        let _ = Pin::new(&mut answer).poll(&mut Context::from_waker(&waker));
    }
    store.sync().expect("a sync");
    region.put("key", "value", Sync).expect("a put");
}

/// Gets the value of a key on the thread that wakes it, and tells how that went.
struct Gets {
    region: kvell::Region,
    outcome: Sender<kreon_base::Result<Option<Vec<u8>>>>,
}

impl Wake for Gets {
    fn wake(self: Arc<Self>) {
        let _ = self.outcome.send(self.region.get("key"));
    }
}

#[test]
fn a_wake_up_on_a_worker_cannot_wait_for_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = options().open(folder.path().join("store"));
    let region = store.expect("a store").region("r").expect("a region");
    let (outcome, outcomes) = channel();
    let waker = Waker::from(Arc::new(Gets {
        region: region.clone(),
        outcome,
    }));
    // A reply that comes before the poll wakes nobody: then another one.
    loop {
        let mut answer = region.put_async("key", "value", Sync);
        let polled = Pin::new(&mut answer).poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            break;
        }
    }
    let refused = outcomes.recv().expect("a wake-up").map(|_| ());
    let kind = refused.map_err(|error| error.kind());
    assert_eq!(kind, Err(kreon_base::ErrorKind::InvalidArgument));
}
