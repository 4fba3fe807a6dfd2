//! Volumes that puts have filled, and deletions after them: they can be opened after a power cut at any moment, and emptied.

use std::sync::Arc;

use kreon_sim::{Keep, SimDevice};
use tucana::{ErrorKind, Options};

use crate::one_region::OneRegion;
use crate::world::{Random, device, device_of, open_with, options, pairs};

fn small() -> Options {
    Options {
        volume_bytes_max: 24 << 20,
        ..options()
    }
}

/// Keys in no order, each another one.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

/// Puts until the volume is full; returns how many keys it holds.
fn fill(store: &OneRegion, value: &[u8]) -> u32 {
    for number in 0.. {
        if let Err(error) = store.put(&key(number), value) {
            assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
            return number;
        }
    }
    unreachable!("a volume that is never full")
}

/// Deletes these; each is there.
fn delete(store: &OneRegion, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        let deleted = store.delete(&key(number));
        assert!(deleted.unwrap_or_else(|error| panic!("{number}: {error}")));
    }
}

fn keys(store: &OneRegion) -> u32 {
    store.verify().unwrap().keys as u32
}

/// A key that `fill` does not write.
fn other(number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    [b'o', a, b, c, d]
}

/// Puts others, from this one on, until the volume is full again; returns the first that is not there.
fn fill_with_others(store: &OneRegion, first: u32) -> u32 {
    let refused = (first..).find_map(|number| {
        let error = store.put(&other(number), &[1; 3000]).err()?;
        Some((number, error))
    });
    let (number, error) = refused.unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
    number
}

fn reopened(device: &SimDevice, keep: &mut Keep) -> (Arc<SimDevice>, OneRegion) {
    let cut = device_of(device.history().crash().image(keep));
    let store = open_with(&cut, &small()).unwrap();
    (cut, store)
}

/// Empties a store that was full and has lost its first `gone` keys since, and fills half of it again.
fn empty_and_go_on(store: &OneRegion, (gone, full): (u32, u32), value: &[u8]) {
    for number in (0..full).filter(|number| number % 8 != 0) {
        store.delete(&key(number)).unwrap();
    }
    store.commit().unwrap();
    for number in full..full + full / 2 {
        store
            .put(&key(number), value)
            .unwrap_or_else(|error| panic!("{number} behind {full}: {error}"));
    }
    let kept = (gone..full).filter(|number| number % 8 == 0).count() as u32;
    assert_eq!(keys(store), kept + full / 2);
}

fn cuts_wanted() -> u64 {
    let wanted = std::env::var("KREON_CRASH_STATES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(24)
}

/// All states between two events of the device, or as many as are wanted of them: a prefix of the deletions has happened, with all
/// that were durable.
fn check_cuts(device: &SimDevice, (first, full): (usize, u32), durable: &[(usize, u32)]) {
    let history = device.history();
    let every = ((history.events.len() - first) as u64 / cuts_wanted()).max(1);
    let (mut crash, mut random) = (history.crash_after(first), Random(u64::from(full)));
    loop {
        if random.below(every) == 0 {
            let seed = random.below(1 << 30);
            for mut keep in [Keep::Nothing, Keep::SomeSectors { seed }] {
                let told = format!("{} events, {keep:?}", crash.events());
                let cut = device_of(crash.image(&mut keep));
                let store = open_with(&cut, &small()).unwrap_or_else(|e| panic!("{told}: {e}"));
                let gone = full - keys(&store);
                let before = durable.iter().filter(|(at, _)| *at <= crash.events());
                let least = before.map(|(_, count)| *count).max().unwrap_or(0);
                assert!(gone >= least, "{told}: {gone} of {least} deletions");
                for number in [gone.saturating_sub(1), gone] {
                    let is_there = store.get(&key(number)).unwrap().is_some();
                    assert_eq!(is_there, number >= gone, "{told}: {number} of {gone}");
                }
            }
        }
        if !crash.advance() {
            return;
        }
    }
}

#[test]
fn a_volume_filled_by_puts_and_by_deletions_opens_after_a_power_cut_at_any_event() {
    for value in [&[5; 120][..], &[6; 20_000]] {
        let device = device();
        let store = open_with(&device, &small()).unwrap();
        let full = fill(&store, value);
        store.sync().unwrap();
        let first = device.events();
        let mut durable = vec![(first, 0)];
        for number in 0..full * 3 / 4 {
            delete(&store, [number].into_iter());
            if number % (full / 16) == 0 {
                store.sync().unwrap();
                durable.push((device.events(), number + 1));
            }
        }
        store.commit().unwrap();
        durable.push((device.events(), full * 3 / 4));
        drop(store);
        check_cuts(&device, (first, full), &durable);
        let (_, store) = reopened(&device, &mut Keep::Nothing);
        empty_and_go_on_from(&store, full, value);
    }
}

/// The first three quarters are deleted already.
fn empty_and_go_on_from(store: &OneRegion, full: u32, value: &[u8]) {
    for number in 0..full / 2 {
        store
            .put(&key(number), value)
            .unwrap_or_else(|error| panic!("{number} of {full}: {error}"));
    }
    assert_eq!(keys(store), full - full * 3 / 4 + full / 2);
    assert_eq!(pairs(store).unwrap().len() as u32, keys(store));
}

/// Each opening begins a log of its own, in a volume that has no room for it.
#[test]
fn a_full_volume_opens_after_one_power_cut_after_the_other() {
    for value in [&[5; 120][..], &[5; 600]] {
        let mut device = device();
        let mut store = open_with(&device, &small()).unwrap();
        let full = fill(&store, value);
        let (mut gone, mut others) = (0, 0);
        for round in 0..12_u32 {
            let some = [0, 1, 3, 40][round as usize % 4];
            delete(&store, gone..gone + some);
            gone += some;
            // What the opening or the commit before it has freed is filled again.
            others = fill_with_others(&store, others);
            match round % 3 {
                0 => store.commit().unwrap(),
                _ => store.sync().unwrap(),
            }
            drop(store);
            (device, store) = reopened(&device, &mut Keep::Nothing);
            assert_eq!(keys(&store), full - gone + others, "round {round}");
        }
        for number in 0..others {
            assert!(store.delete(&other(number)).unwrap(), "{number}");
        }
        empty_and_go_on(&store, (gone, full), value);
    }
}

/// Segments that openings reserve and do not use get their blocks before they are written.
#[test]
fn a_device_that_becomes_full_refuses_writes_to_segments_of_earlier_openings() {
    for openings in 0..4_u32 {
        let device = device();
        let mut store = open_with(&device, &options()).unwrap();
        for round in 0..openings {
            store.put(&key(round), &[1; 100]).unwrap();
            store.close().unwrap();
            store = open_with(&device, &options()).unwrap();
        }
        device.set_space_bytes_max(device.space_bytes());
        let refused = (10..).find_map(|number| store.put(&key(number), &[2; 5000]).err());
        assert_eq!(refused.unwrap().kind(), ErrorKind::OutOfSpace);
        // It is not poisoned: nothing that was acknowledged has met the lack of space.
        store.commit().unwrap();
        store.delete(&key(10)).unwrap();
        store.sync().unwrap();
        assert!(store.get(&key(11)).unwrap().is_some());
    }
}

#[test]
fn sixteen_mebibytes_take_data_and_less_refuses_it() {
    for (volume_bytes_max, is_enough) in [(14 << 20, false), (16 << 20, true)] {
        let device = device();
        let options = Options {
            volume_bytes_max,
            ..options()
        };
        let store = open_with(&device, &options).unwrap();
        match store.put(b"key", b"value") {
            Ok(_) => assert!(is_enough),
            Err(error) => assert_eq!((error.kind(), is_enough), (ErrorKind::OutOfSpace, false)),
        }
        let full = fill(&store, &[8; 1000]);
        assert_eq!(full > 500, is_enough, "{full} keys");
        store.close().unwrap();
        let store = open_with(&device, &options).unwrap();
        assert_eq!(keys(&store), full + u32::from(is_enough));
        delete(&store, 0..full);
    }
}
