//! Space: what dead records take, and volumes without room.

use kreon_device::Device;
use kreon_sim::Keep;
use tucana::{Direction, Durability, ErrorKind, Options};

use crate::history::History;
use crate::one_region::OneRegion;
use crate::world::{Model, Random, device, device_of, open_with, options, pairs};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Collection has much to do in a little store.
fn eager() -> Options {
    Options {
        commit_log_bytes: 1 << 20,
        ..options()
    }
}

#[test]
fn what_is_overwritten_ten_times_takes_little_more_than_once() {
    let device = device();
    let store = open_with(&device, &eager()).unwrap();
    let (keys, mut random) = (8000_u64, Random(3));
    let empty = store.used_bytes();
    for number in 0..keys {
        store.put(&key(number), &[1; 1000]).unwrap();
    }
    for _ in 0..10 * keys {
        let number = random.below(keys);
        store.put(&key(number), &[2; 1000]).unwrap();
    }
    store.commit().unwrap();
    let live = keys * 1032;
    let used = store.used_bytes() - empty;
    // A quarter of the live bytes and 8 MiB are left alone; one round of 8 MiB is under way, and 1 MiB behind the commit.
    let most = live * 125 / 100 + (24 << 20);
    assert!(used <= most, "{used} bytes for {live}");
    assert_eq!(store.verify().unwrap().keys, keys);
    assert_eq!(pairs(&store).unwrap().len() as u64, keys);
    drop(store);
    let store = open_with(&device, &eager()).unwrap();
    assert_eq!(store.verify().unwrap().keys, keys);
    assert_eq!(pairs(&store).unwrap().len() as u64, keys);
}

/// The log's pages are in frames since they were written.
#[test]
fn collection_reads_nothing_that_is_in_memory() {
    let device = device();
    let options = Options {
        memory_bytes: 128 << 20,
        ..eager()
    };
    let store = open_with(&device, &options).unwrap();
    let (keys, mut random) = (4000_u64, Random(3));
    for number in 0..keys {
        store.put(&key(number), &[1; 1000]).unwrap();
    }
    let before = device.stats().reads.bytes;
    for _ in 0..10 * keys {
        let number = random.below(keys);
        store.put(&key(number), &[2; 1000]).unwrap();
    }
    store.commit().unwrap();
    assert!(
        store.used_bytes() < 10 * keys * 1000,
        "nothing was collected"
    );
    assert_eq!(device.stats().reads.bytes, before);
}

#[test]
fn what_is_deleted_gives_its_space_back() {
    let device = device();
    let store = open_with(&device, &eager()).unwrap();
    let empty = store.used_bytes();
    for number in 0..12_000_u64 {
        store.put(&key(number), &[1; 1500]).unwrap();
    }
    store.commit().unwrap();
    let full = store.used_bytes() - empty;
    assert!(full > 17 << 20);
    for number in 0..12_000_u64 {
        assert!(store.delete(&key(number)).unwrap());
    }
    store.commit().unwrap();
    let left = store.used_bytes() - empty;
    assert!(left <= 6 << 20, "{left} bytes of {full}");
    assert!(pairs(&store).unwrap().is_empty());
    store.verify().unwrap();
}

const HELD_KEYS: u64 = 4000;

/// Overwrites everything several times.
fn overwrite(store: &OneRegion, value: &[u8]) {
    let mut random = Random(5);
    let some = (0..7 * HELD_KEYS).map(|_| random.below(HELD_KEYS));
    for number in some.chain(0..HELD_KEYS) {
        store.put(&key(number), value).unwrap();
    }
    store.commit().unwrap();
}

#[test]
fn a_snapshot_keeps_its_records_from_being_thrown_away() {
    let device = device();
    let store = open_with(&device, &eager()).unwrap();
    for number in 0..HELD_KEYS {
        store.put(&key(number), &[1; 1000]).unwrap();
    }
    let snapshot = store.snapshot();
    overwrite(&store, &[2; 1000]);
    let held = store.used_bytes();
    let all = store.all_in(&snapshot, Direction::Reverse);
    let values: Vec<_> = all.map(|pair| pair.unwrap().1).collect();
    assert_eq!(values.len() as u64, HELD_KEYS);
    assert!(values.iter().all(|value| value == &[1; 1000]));
    drop(snapshot);
    store.put(b"another", b"").unwrap();
    store.commit().unwrap();
    let free = store.used_bytes();
    assert!(free < held, "{free} bytes, {held} while they were held");
    store.verify().unwrap();
}

#[test]
fn a_scan_keeps_the_records_of_its_leaf_from_being_thrown_away() {
    let device = device();
    let store = open_with(&device, &eager()).unwrap();
    for number in 0..HELD_KEYS {
        store.put(&key(number), &[1; 1000]).unwrap();
    }
    let mut scan = store.own().unwrap().scan(.., Direction::Forward);
    assert_eq!(scan.next().unwrap().unwrap().1, [1; 1000]);
    overwrite(&store, &[2; 1000]);
    let rest: Vec<_> = scan.map(|pair| pair.unwrap().1[0]).collect();
    assert_eq!(rest.len() as u64, HELD_KEYS - 1);
    // The rest of its leaf as it was, and then what is newest.
    assert!(rest[0] == 1 && rest.is_sorted() && rest.ends_with(&[2]));
}

#[test]
fn a_full_volume_refuses_new_data_takes_deletions_and_goes_on() {
    let device = device();
    let options = Options {
        volume_bytes_max: 64 << 20,
        ..options()
    };
    let mut store = open_with(&device, &options).unwrap();
    let (mut model, mut random, mut next) = (Model::new(), Random(6), 0_u64);
    for round in 0..4 {
        let error = loop {
            let value = vec![round; 500 + random.below(3000) as usize];
            // Keys in no order, each another one.
            let key = key(next.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            match store.put(&key, &value) {
                Ok(_) => drop(model.insert(key.to_vec(), value)),
                Err(error) => break error,
            }
            next += 1;
        };
        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
        assert!(store.put(b"large", &[0; 9000]).is_err(), "it is full still");
        let records = model
            .iter()
            .map(|(key, value)| 32 + key.len() + value.len());
        let bytes: u64 = records.sum::<usize>() as u64;
        assert!(bytes > 24 << 20, "round {round}: full with {bytes} bytes");
        assert!(pairs(&store).unwrap() == model);
        if round % 2 == 1 {
            // It can be opened while it is full.
            drop(store);
            store = open_with(&device, &options).unwrap();
            let found = pairs(&store).unwrap();
            let lost = model.len() - found.len();
            assert!(lost < 60_000, "{lost} of {}", model.len());
            model = found;
        }
        let keys = model.keys();
        let doomed: Vec<_> = keys.filter(|_| random.below(2) == 0).cloned().collect();
        for key in &doomed {
            let deleted = store.delete(key);
            assert!(deleted.unwrap_or_else(|error| panic!("round {round}: {error}")));
            model.remove(key);
        }
        assert_eq!(store.verify().unwrap().keys, model.len() as u64);
    }
    store.close().unwrap();
    assert!(pairs(&open_with(&device, &options).unwrap()).unwrap() == model);
}

#[test]
fn a_power_cut_in_collection_loses_nothing() {
    let options = Options {
        commit_log_bytes: 512 << 10,
        ..options()
    };
    let (device, mut random) = (device(), Random(12));
    let mut history = History::default();
    let store = history.reopen(&device, &options);
    // Long values that are overwritten: most of the log is dead.
    let mut last = vec![Vec::new(); 24];
    for round in 0..400_u64 {
        let number = random.below(24);
        let mut value = round.to_le_bytes().to_vec();
        value.resize(70_000 + random.below(8000) as usize, 9);
        store.put(&key(number), &value).unwrap();
        last[number as usize] = value;
    }
    store.put_with(b"end", b"", Durability::Sync).unwrap();
    drop(store);
    let events = device.history();
    let count = events.events.len();
    // What is known is the end: cuts there keep all; cuts before leave a store that is whole.
    for _ in 0..15 {
        let at = count - random.below(count as u64 / 2) as usize;
        let dice = random.below(1 << 30);
        for mut keep in [Keep::Nothing, Keep::SomeSectors { seed: dice }] {
            let again = device_of(events.crash_after(at).image(&mut keep));
            let store = open_with(&again, &options).unwrap();
            store.verify().unwrap();
            let found = pairs(&store).unwrap();
            assert!(found.len() >= 24, "{at} of {count}: {} pairs", found.len());
            if at == count {
                let kept = last.iter().enumerate();
                for (number, value) in kept {
                    assert!(found[&key(number as u64)[..]] == *value);
                }
            }
        }
    }
    let end = device_of(events.crash().image(&mut Keep::Nothing));
    let store = open_with(&end, &options).unwrap();
    for (number, value) in last.iter().enumerate() {
        assert_eq!(
            store.get(&key(number as u64)).unwrap().as_ref(),
            Some(value)
        );
    }
}
