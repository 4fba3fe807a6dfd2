//! Drops of regions: cut short, beside writers, and what they give back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use kreon_sim::{Call, Effect, Fault, Keep, SimDevice};
use tucana::{Direction, ErrorKind, Maintenance, Options, Recovery, Store};

use crate::world::{device, device_of, options};

/// Commits come in the middle of a drop.
fn eager() -> Options {
    Options {
        commit_log_bytes: 64 << 10,
        ..options()
    }
}

fn open(device: &Arc<SimDevice>, options: &Options) -> Store {
    Store::open(Arc::clone(device) as _, options).unwrap()
}

const KEYS: u32 = 4000;

fn fill(store: &Store, name: &str) {
    let region = store.region(name).unwrap();
    for number in 0..KEYS {
        region.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
}

#[test]
fn a_power_cut_in_a_drop_leaves_the_whole_region_or_nothing_of_it() {
    for recovery in [Recovery::ReplayLog, Recovery::LastCommit] {
        let options = Options {
            recovery,
            ..eager()
        };
        let device = device();
        let store = open(&device, &options);
        fill(&store, "kept");
        fill(&store, "dropped");
        store.commit().unwrap();
        let began = device.events();
        store.drop_region("dropped").unwrap();
        let ended = device.events();
        store.commit().unwrap();
        let history = device.history();
        let mut crash = history.crash_after(began);
        let (mut there, mut gone) = (0, 0);
        loop {
            let events = crash.events();
            for mut keep in [Keep::Nothing, Keep::All, Keep::SomeSectors { seed: 7 }] {
                let told = format!("{recovery:?}, {events} events, {keep:?}");
                let store = open(&device_of(crash.image(&mut keep)), &options);
                let names = store.region_names().unwrap();
                let is_there = names == ["dropped", "kept"];
                assert!(is_there || names == ["kept"], "{told}: {names:?}");
                assert!(!is_there || events < ended, "{told}");
                let keys = u64::from(KEYS) * (1 + u64::from(is_there));
                assert_eq!(store.verify().unwrap().keys, keys, "{told}");
                let region = store.region("dropped").unwrap();
                let found = region.scan(.., Direction::Forward).count();
                assert_eq!(found, KEYS as usize * usize::from(is_there), "{told}");
                (there, gone) = (there + u32::from(is_there), gone + u32::from(!is_there));
            }
            if !crash.advance() {
                break;
            }
        }
        assert!(there > 0 && gone > 20, "{there} {gone}");
    }
}

#[test]
fn a_region_that_is_made_after_a_power_cut_has_no_number_of_another() {
    let device = device();
    let store = open(&device, &options());
    let began = device.events();
    for name in ["a", "b"] {
        store.region(name).unwrap();
    }
    let history = device.history();
    let mut crash = history.crash_after(began);
    let mut had = 0;
    loop {
        for mut keep in [Keep::Nothing, Keep::All] {
            let store = open(&device_of(crash.image(&mut keep)), &options());
            let before = store.region_names().unwrap();
            store.region("new").unwrap().put("key", "value").unwrap();
            for name in &before {
                let region = store.existing_region(name).unwrap();
                assert_eq!(region.get("key").unwrap(), None, "{name} of {before:?}");
            }
            had = had.max(before.len());
        }
        if !crash.advance() {
            break;
        }
    }
    assert_eq!(had, 2);
}

#[test]
fn a_handle_of_a_dropped_region_is_refused_also_when_another_has_its_name() {
    let store = open(&device(), &options());
    fill(&store, "r");
    let old = store.region("r").unwrap();
    let mut scan = old.scan(.., Direction::Forward);
    scan.next().unwrap().unwrap();
    store.drop_region("r").unwrap();
    let new = store.region("r").unwrap();
    new.put("key", "value").unwrap();
    for outcome in [
        old.put("key", "").map(drop),
        old.delete("key").map(drop),
        old.delete_range(..),
        old.get("key").map(drop),
        old.contains("none").map(drop),
        scan.next().unwrap().map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(
            error.to_string().contains("region \"r\" was dropped"),
            "{error}"
        );
    }
    assert!(scan.next().is_none());
    assert_eq!(new.scan(.., Direction::Forward).count(), 1);
    assert_eq!(store.verify().unwrap().keys, 1);
}

/// No write comes into a region that is dropped, and no get or scan shows a part of it.
#[test]
fn writers_and_readers_beside_drops_see_a_region_or_none() {
    let device = device();
    let threaded = Options {
        maintenance: Maintenance::Thread,
        commit_interval: std::time::Duration::from_millis(2),
        ..options()
    };
    let store = open(&device, &threaded);
    let goes_on = AtomicBool::new(true);
    let is_closed = |error: tucana::Error| assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    thread::scope(|scope| {
        for thread in 0..2_u8 {
            let (store, goes_on) = (&store, &goes_on);
            scope.spawn(move || {
                while goes_on.load(SeqCst) {
                    let region = store.region("r").unwrap();
                    for number in 0..400_u32 {
                        let key = [&[thread][..], &number.to_be_bytes()].concat();
                        match region.put(&key, "value") {
                            Ok(_) => {}
                            Err(error) => {
                                is_closed(error);
                                break;
                            }
                        }
                        // What this thread put is there as long as the region.
                        match region.contains(&key) {
                            Ok(is_there) => assert!(is_there),
                            Err(error) => {
                                is_closed(error);
                                break;
                            }
                        }
                        if number % 50 == 0 {
                            let own = region.scan([thread]..[thread + 1], Direction::Reverse);
                            let found: Result<Vec<_>, _> = own.collect();
                            match found {
                                Ok(found) => assert!(found.len() > number as usize),
                                Err(error) => {
                                    is_closed(error);
                                    break;
                                }
                            }
                        }
                    }
                }
            });
        }
        for _ in 0..150 {
            thread::sleep(std::time::Duration::from_micros(300));
            match store.drop_region("r") {
                Ok(()) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
            }
        }
        goes_on.store(false, SeqCst);
    });
    let names = store.region_names().unwrap();
    let count = |name: &String| {
        let region = store.existing_region(name).unwrap();
        region.scan(.., Direction::Forward).count() as u64
    };
    assert_eq!(
        store.verify().unwrap().keys,
        names.iter().map(count).sum::<u64>()
    );
}

#[test]
fn what_a_drop_left_because_of_an_error_is_deleted_by_the_next_one_and_by_an_opening() {
    let device = device();
    let store = open(&device, &options());
    for name in ["a", "b", "c"] {
        fill(&store, name);
    }
    store.close().unwrap();
    // Records must be read, and cannot.
    let little = Options {
        memory_bytes: 512 << 10,
        ..options()
    };
    for finishes in ["drop", "opening"] {
        let device = crate::world::device_of(device.image());
        let store = open(&device, &little);
        let number = device.calls(Call::Read);
        device.inject(Fault::nth(20, Call::Read, Effect::Io));
        let error = store.drop_region("a").unwrap_err();
        assert!(device.calls(Call::Read) > number);
        assert!(
            error
                .to_string()
                .contains("region \"a\" was dropped, but not all"),
            "{error}"
        );
        device.clear_faults();
        assert_eq!(store.region_names().unwrap(), ["b", "c"]);
        assert!(store.verify().unwrap().keys > 2 * u64::from(KEYS));
        let store = match finishes {
            "drop" => {
                store.drop_region("b").unwrap();
                assert_eq!(store.verify().unwrap().keys, u64::from(KEYS));
                store
            }
            _ => {
                store.close().unwrap();
                open(&device, &little)
            }
        };
        let regions = store.region_names().unwrap().len() as u64;
        assert_eq!(store.verify().unwrap().keys, regions * u64::from(KEYS));
    }
}

#[test]
fn an_opening_with_names_that_cannot_be_read_deletes_nothing() {
    // A leaf has so much of no key: it stands in the log only.
    const NAME: &str = "region whose name is long";
    let device = device();
    let store = open(&device, &options());
    fill(&store, NAME);
    store.close().unwrap();
    let image = device.image();
    let bytes = image.bytes(0, image.len_bytes() as usize);
    let at = bytes
        .windows(NAME.len())
        .position(|found| found == NAME.as_bytes());
    let at = at.expect("the record of the name") as u64;
    let mut damaged = image;
    damaged.flip_bit(at, 1);
    let device = device_of(damaged);
    let store = open(&device, &options());
    let kind = |outcome: Result<(), tucana::Error>| outcome.unwrap_err().kind();
    assert_eq!(kind(store.region(NAME).map(drop)), ErrorKind::Corruption);
    assert_eq!(kind(store.drop_region(NAME)), ErrorKind::Corruption);
    assert_eq!(kind(store.region_names().map(drop)), ErrorKind::Corruption);
    assert_eq!(kind(store.verify().map(drop)), ErrorKind::Corruption);
    let other = store.region("another").unwrap();
    other.put("key", "value").unwrap();
    store.close().unwrap();
    // Whole again, it has all of its keys.
    let mut mended = device.image();
    mended.flip_bit(at, 1);
    let store = open(&device_of(mended), &options());
    assert_eq!(store.region_names().unwrap(), ["another", NAME]);
    assert_eq!(store.verify().unwrap().keys, u64::from(KEYS) + 1);
    let region = store.existing_region(NAME).unwrap();
    assert_eq!(region.scan(.., Direction::Forward).count(), KEYS as usize);
}

#[test]
fn a_drop_whose_flush_fails_says_that_the_region_is_gone_and_how_long() {
    let device = device();
    let store = open(&device, &options());
    fill(&store, "r");
    store.commit().unwrap();
    let old = store.region("r").unwrap();
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    let error = store.drop_region("r").unwrap_err();
    let told = "region \"r\" was dropped, but whether that is durable is unknown";
    assert!(error.to_string().contains(told), "{error}");
    assert_eq!(old.get("key").unwrap_err().kind(), ErrorKind::Closed);
    assert!(store.region_names().unwrap().is_empty());
    device.clear_faults();
    drop((old, store));
    let store = open(&device, &options());
    let names = store.region_names().unwrap();
    assert!(names.is_empty() || names == ["r"], "{names:?}");
    let keys = u64::from(KEYS) * names.len() as u64;
    assert_eq!(store.verify().unwrap().keys, keys);
}

#[test]
fn a_drop_beside_an_earlier_one_that_cannot_be_finished_succeeds() {
    let device = device();
    let store = open(&device, &options());
    for name in ["a", "b"] {
        fill(&store, name);
    }
    let lost = store.region("a").unwrap();
    lost.put("the key that is damaged", "").unwrap();
    drop(lost);
    store.close().unwrap();
    let mut image = device.image();
    let bytes = image.bytes(0, image.len_bytes() as usize);
    let key = b"the key that is damaged";
    let at = bytes.windows(key.len()).position(|found| found == key);
    image.flip_bit(at.expect("its record") as u64, 1);
    let store = open(&device_of(image), &options());
    let error = store.drop_region("a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("region \"a\" was dropped, but"));
    store.drop_region("b").unwrap();
    assert!(store.region_names().unwrap().is_empty());
    store.region("b").unwrap().put("key", "value").unwrap();
}
