//! Several threads, each with a model of its own keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_sim::Dice;
use kvell::Durability::{Buffered, Sync};
use kvell::{Options, Region};

use crate::world::{after_power_cut, open, options, simulated, value};

const THREADS: u64 = 8;
const KEYS: u64 = 60;
const ACTIONS: u64 = 500;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A thread's requests, each compared with the model.
fn use_region(region: &Region, thread: u64) -> Model {
    let mut dice = Dice::new(thread);
    let mut model = Model::new();
    let key = |dice: &mut Dice| {
        let number = dice.below(KEYS);
        // Some are too long to stand whole in the index.
        let tail = vec![b'x'; 40 * (number % 2) as usize];
        [&thread.to_be_bytes()[..], &tail, &number.to_be_bytes()].concat()
    };
    for number in 0..ACTIONS {
        let durability = if dice.below(3) == 0 { Sync } else { Buffered };
        match dice.below(8) {
            0 => {
                let key = key(&mut dice);
                region.delete(&key, durability).expect("a deletion");
                model.remove(&key);
            }
            1 => {
                let changes: Vec<_> = (0..10)
                    .map(|_| {
                        let len_bytes = dice.below(2000) as usize;
                        let put = dice.below(4) > 0;
                        (key(&mut dice), put.then(|| value(number, len_bytes)))
                    })
                    .collect();
                region.write_many(&changes, durability).expect("changes");
                for (key, value) in changes {
                    match value {
                        Some(value) => model.insert(key, value),
                        None => model.remove(&key),
                    };
                }
            }
            2 => {
                let keys: Vec<_> = (0..20).map(|_| key(&mut dice)).collect();
                let values = region.multi_get(&keys).expect("values");
                for (key, value) in keys.iter().zip(values) {
                    assert_eq!(value.as_ref(), model.get(key), "thread {thread}, {number}");
                }
            }
            3 | 4 => {
                let key = key(&mut dice);
                let len_bytes = [30, 300, 3000, 20_000][dice.below(4) as usize];
                let value = value(number, len_bytes);
                region.put(&key, &value, durability).expect("a put");
                model.insert(key, value);
            }
            _ => {
                let key = key(&mut dice);
                let found = region.get(&key).expect("a get");
                assert_eq!(found.as_ref(), model.get(&key), "thread {thread}, {number}");
            }
        }
    }
    model
}

fn use_by_threads(region: &Region) -> Model {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || use_region(region, thread)))
            .collect();
        let models = threads.into_iter().map(|it| it.join().expect("a model"));
        models.flatten().collect()
    })
}

fn compare(region: &Region, model: &Model) {
    for thread in 0..THREADS {
        for number in 0..KEYS {
            let tail = vec![b'x'; 40 * (number % 2) as usize];
            let key = [&thread.to_be_bytes()[..], &tail, &number.to_be_bytes()].concat();
            let found = region.get(&key).expect("a get");
            assert_eq!(found.as_ref(), model.get(&key), "{thread}: {number}");
        }
    }
}

/// So little memory that most gets read.
fn small() -> Options {
    Options {
        memory_bytes: 1 << 20,
        depth: 6,
        workers: Some(3),
        ..options()
    }
}

#[test]
fn threads_see_their_own_changes_and_all_of_them_survive_a_power_cut_after_a_sync() {
    let device = simulated(1 << 40);
    let store = open(&device, &small());
    let region = store.region("r").expect("a region");
    let model = use_by_threads(&region);
    store.sync().expect("a sync");
    compare(&region, &model);
    let (_store, region) = after_power_cut(&device);
    compare(&region, &model);
}

#[test]
fn threads_see_their_own_changes_on_a_file_and_all_of_them_are_there_after_a_close() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = small().open(&path).expect("a store");
    let region = Arc::new(store.region("r").expect("a region"));
    let model = use_by_threads(&region);
    store.close().expect("a close");
    let store = options().open(&path).expect("the store");
    compare(&store.region("r").expect("the region"), &model);
}

#[test]
fn a_device_that_loses_nothing_needs_no_flush() {
    let device = simulated(1 << 40);
    let lossless = Options {
        assume_power_loss_protection: true,
        ..small()
    };
    let store = open(&device, &lossless);
    let region = store.region("r").expect("a region");
    // An extent needs flushes before it is used, so it is there already.
    region.put("key", value(0, 100), Sync).expect("a put");
    let before = device.calls(kreon_sim::Call::Flush);
    for number in 0..50 {
        region.put("key", value(number, 100), Sync).expect("a put");
        region
            .put("key", value(number, 100), Buffered)
            .expect("a put");
        store.sync().expect("a sync");
    }
    assert_eq!(device.calls(kreon_sim::Call::Flush), before);
}
