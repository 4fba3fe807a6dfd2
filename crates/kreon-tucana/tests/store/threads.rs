//! The threads of a store.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use kreon_sim::{Call, Effect, Fault, Keep, SimDevice};
use tucana::{Direction, Durability, ErrorKind, Maintenance, Options, Recovery};

use crate::one_region::OneRegion;
use crate::world::{Model, Random, change, device, device_of, open_with, options, pairs};

fn threaded() -> Options {
    Options {
        maintenance: Maintenance::Thread,
        commit_interval: Duration::from_millis(30),
        ..options()
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What the last commit holds.
fn committed(device: &SimDevice) -> Model {
    let image = device.history().crash().image(&mut Keep::Nothing);
    let options = Options {
        recovery: Recovery::LastCommit,
        ..options()
    };
    pairs(&open_with(&device_of(image), &options).unwrap()).unwrap()
}

#[test]
fn what_is_written_is_committed_after_a_while_without_a_call() {
    let device = device();
    let store = open_with(&device, &threaded()).unwrap();
    store.put(b"key", b"value").unwrap();
    wait_until("the key is committed", || committed(&device).len() == 1);
    // A store that is left alone does nothing.
    thread::sleep(Duration::from_millis(100));
    let events = device.events();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(device.events(), events);
    store.put(b"another", b"value").unwrap();
    wait_until("it is committed", || committed(&device).len() == 2);
}

#[test]
fn a_commit_is_made_for_the_log_before_its_time() {
    let device = device();
    let options = Options {
        commit_interval: Duration::from_secs(3600),
        commit_log_bytes: 1 << 20,
        ..threaded()
    };
    let store = open_with(&device, &options).unwrap();
    for number in 0..40_u32 {
        store.put(&number.to_be_bytes(), &[7; 60_000]).unwrap();
    }
    wait_until("a commit", || !committed(&device).is_empty());
}

#[test]
fn writers_beside_commits_and_collection_leave_what_each_of_them_wrote() {
    let device = device();
    let options = Options {
        commit_log_bytes: 1 << 20,
        commit_interval: Duration::from_millis(5),
        ..threaded()
    };
    let store = open_with(&device, &options).unwrap();
    let goes_on = AtomicBool::new(true);
    let models: Vec<Model> = thread::scope(|scope| {
        let writers: Vec<_> = (0..3_u8)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || write_own(store, thread))
            })
            .collect();
        scope.spawn(|| {
            while goes_on.load(SeqCst) {
                let snapshot = store.snapshot();
                let all = store.all_in(&snapshot, Direction::Forward);
                assert!(all.map(Result::unwrap).is_sorted_by(|a, b| a.0 < b.0));
                let all = store.own().unwrap().scan(.., Direction::Reverse);
                assert!(all.map(Result::unwrap).is_sorted_by(|a, b| a.0 > b.0));
            }
        });
        let models = writers.into_iter().map(|writer| writer.join().unwrap());
        let models = models.collect();
        goes_on.store(false, SeqCst);
        models
    });
    let all: Model = models.into_iter().flatten().collect();
    assert!(pairs(&store).unwrap() == all);
    let verified = store.verify().unwrap();
    assert_eq!(verified.keys, all.len() as u64);
    store.close().unwrap();
    assert!(pairs(&open_with(&device, &options).unwrap()).unwrap() == all);
}

/// Writes keys that no other thread writes, several times over.
fn write_own(store: &OneRegion, thread: u8) -> Model {
    let (mut model, mut random) = (Model::new(), Random(u64::from(thread)));
    for number in 0..6000_u32 {
        let key = [&[thread][..], &(random.below(400) as u32).to_be_bytes()].concat();
        if random.below(8) == 0 {
            assert_eq!(store.delete(&key).unwrap(), model.remove(&key).is_some());
            continue;
        }
        let mut value = number.to_le_bytes().to_vec();
        value.resize(4 + random.below(2000) as usize, thread);
        assert_eq!(store.put(&key, &value).unwrap(), model.contains_key(&key));
        model.insert(key, value);
    }
    model
}

#[test]
fn a_failed_commit_of_the_thread_is_told_to_writers() {
    let device = device();
    let store = open_with(&device, &threaded()).unwrap();
    let (mut model, mut random) = (Model::new(), Random(4));
    change(&store, &mut model, &mut random, 50).unwrap();
    device.inject(Fault::nth(0, Call::Flush, Effect::Io));
    wait_until("writers are refused", || {
        store
            .put(b"key", b"value")
            .is_err_and(|error| error.kind() == ErrorKind::Poisoned)
    });
    assert_eq!(store.sync().unwrap_err().kind(), ErrorKind::Poisoned);
    assert!(store.get(b"key").is_ok());
    drop(store);
    device.clear_faults();
    open_with(&device, &threaded()).unwrap().verify().unwrap();
}

#[test]
fn durable_writes_beside_the_threads_survive_a_power_cut() {
    let device = device();
    // A commit may end between any two writes.
    let options = Options {
        commit_interval: Duration::ZERO,
        ..threaded()
    };
    let store = open_with(&device, &options).unwrap();
    for round in 0..60_u32 {
        for number in 0..20_u32 {
            let value = vec![round as u8; 3000];
            store.put(&number.to_be_bytes(), &value).unwrap();
        }
        store
            .put_with(b"round", &round.to_be_bytes(), Durability::Sync)
            .unwrap();
        if round % 3 == 2 {
            let image = device.history().crash().image(&mut Keep::Nothing);
            let again = open_with(&device_of(image), &crate::world::options()).unwrap();
            let found = again.get(b"round").unwrap();
            assert_eq!(found.as_deref(), Some(&round.to_be_bytes()[..]));
            let all = pairs(&again).unwrap();
            assert_eq!(all.len(), 21);
            // All but the key with the number of the round.
            let mut others = all.values().filter(|value| value.len() > 4);
            assert!(others.all(|value| value[0] == round as u8));
        }
    }
}
