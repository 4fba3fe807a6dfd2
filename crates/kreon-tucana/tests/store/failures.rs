//! Failed calls of the device, and damage.

use kreon_sim::{Call, Effect, Fault};
use tucana::ErrorKind;

use crate::world::{Model, Random, change, device, device_of, open, pairs};

#[test]
fn a_failed_commit_poisons_the_store_and_loses_nothing_that_was_committed() {
    let mut met = 0;
    for nth in 0..24 {
        for call in [Call::Write, Call::Flush] {
            let device = device();
            let (mut model, mut random) = (Model::new(), Random(nth));
            let store = open(&device).unwrap();
            change(&store, &mut model, &mut random, 400).unwrap();
            store.commit().unwrap();
            let before = model.clone();
            change(&store, &mut model, &mut random, 20).unwrap();
            device.inject(Fault::nth(nth, call, Effect::Io));
            let committed = store.commit();
            device.clear_faults();
            if committed.is_ok() {
                continue;
            }
            met += 1;
            assert_eq!(
                store.put(b"a", b"").unwrap_err().kind(),
                ErrorKind::Poisoned
            );
            assert_eq!(store.delete(b"a").unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(store.commit().unwrap_err().kind(), ErrorKind::Poisoned);
            // Reads go on.
            assert!(pairs(&store).unwrap() == model, "{call:?} {nth}");
            drop(store);
            let found = pairs(&open(&device).unwrap()).unwrap();
            assert!(found == before || found == model, "{call:?} {nth}");
        }
    }
    assert!(met > 8, "{met} commits failed");
}

#[test]
fn a_volume_without_room_refuses_writes_and_keeps_what_it_has() {
    let device = device();
    let store = open(&device).unwrap();
    store.put(b"first", b"value").unwrap();
    store.commit().unwrap();
    device.set_space_bytes_max(device.space_bytes() + (3 << 20));
    let mut kept = Model::from([(b"first".to_vec(), b"value".to_vec())]);
    let error = loop {
        let key = format!("key {:06}", kept.len()).into_bytes();
        match store.put(&key, &[7; 5000]) {
            Ok(_) => drop(kept.insert(key, vec![7; 5000])),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
    assert!(kept.len() > 100);
    assert!(pairs(&store).unwrap() == kept);
    device.set_space_bytes_max(u64::MAX);
    store.put(b"behind", b"it").unwrap();
    kept.insert(b"behind".to_vec(), b"it".to_vec());
    store.commit().unwrap();
    drop(store);
    assert!(pairs(&open(&device).unwrap()).unwrap() == kept);
}

/// Any flipped bit is an error or without effect: never another answer.
#[test]
fn damage_is_told_or_does_not_matter() {
    let device = device();
    let (mut model, mut random) = (Model::new(), Random(3));
    let store = open(&device).unwrap();
    change(&store, &mut model, &mut random, 1500).unwrap();
    store.close().unwrap();
    let image = device.image();
    let (mut told, mut harmless) = (0, 0);
    for _ in 0..400 {
        let mut damaged = image.clone();
        damaged.flip_bit(random.below(image.len_bytes()), random.below(8) as u8);
        let found = open(&device_of(damaged)).and_then(|store| pairs(&store));
        match found {
            Ok(found) => {
                assert!(found == model);
                harmless += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                told += 1;
            }
        }
    }
    assert!(told > 5 && harmless > 5, "{told} told, {harmless} harmless");
}
