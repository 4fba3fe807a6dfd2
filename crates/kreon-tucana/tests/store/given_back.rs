//! When space that was freed can be had.

use std::thread;
use std::time::{Duration, Instant};

use kreon_sim::Keep;
use tucana::{ErrorKind, Maintenance, Options};

use crate::one_region::OneRegion;
use crate::world::{device, device_of, open_with, options};

const KEYS: u32 = 3000;

fn write_all(store: &OneRegion, value: &[u8]) -> tucana::Result<()> {
    for number in 0..KEYS {
        store.put(&number.to_be_bytes(), value)?;
    }
    Ok(())
}

#[test]
fn what_a_commit_frees_can_be_had_when_it_returns() {
    let device = device();
    let store = open_with(&device, &options()).unwrap();
    let empty = store.used_bytes();
    write_all(&store, &[1; 2000]).unwrap();
    store.commit().unwrap();
    for number in 0..KEYS {
        store.delete(&number.to_be_bytes()).unwrap();
    }
    assert!(store.used_bytes() - empty >= 6 << 20);
    store.commit().unwrap();
    let left = store.used_bytes() - empty;
    // The segment that the log is in, and its first one, which has the region's name.
    assert!(left <= 4 << 20, "{left} bytes");
}

#[test]
fn a_full_volume_takes_new_data_when_the_snapshot_that_fills_it_is_dropped() {
    let device = device();
    let options = Options {
        volume_bytes_max: 48 << 20,
        ..options()
    };
    let store = open_with(&device, &options).unwrap();
    write_all(&store, &[1; 3000]).unwrap();
    let snapshot = store.snapshot();
    let refused = (0..8).find_map(|round| write_all(&store, &[round; 3000]).err());
    assert_eq!(refused.unwrap().kind(), ErrorKind::OutOfSpace);
    let again = store.put(b"another", &[9; 3000]);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::OutOfSpace);
    drop(snapshot);
    store.put(b"another", &[9; 3000]).unwrap();
    write_all(&store, &[9; 3000]).unwrap();
    store.verify().unwrap();
}

#[test]
fn a_store_that_is_left_alone_gives_back_what_a_snapshot_held() {
    let device = device();
    let options = Options {
        maintenance: Maintenance::Thread,
        commit_interval: Duration::from_millis(20),
        ..options()
    };
    let store = open_with(&device, &options).unwrap();
    write_all(&store, &[1; 3000]).unwrap();
    let snapshot = store.snapshot();
    write_all(&store, &[2; 3000]).unwrap();
    store.commit().unwrap();
    // A commit of the thread that is under way would give it back.
    thread::sleep(Duration::from_millis(300));
    let held = store.used_bytes();
    drop(snapshot);
    let start = Instant::now();
    while store.used_bytes() + (6 << 20) > held {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{held} bytes are held"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// Deletions take of the reserve, and an opening needs segments for its log, and pages for what it replays.
#[test]
fn a_full_store_that_is_being_emptied_can_be_opened_at_any_moment() {
    for (volume_bytes_max, value) in [(24 << 20, &[][..]), (48 << 20, &[5; 2000][..])] {
        let device = device();
        let options = Options {
            volume_bytes_max,
            ..options()
        };
        let store = open_with(&device, &options).unwrap();
        let key = |number: u32| number.wrapping_mul(2_654_435_761).to_be_bytes();
        let full = (0..).find(|number| store.put(&key(*number), value).is_err());
        let (full, mut opened) = (full.unwrap(), 0);
        let mut deletions = (0..full).filter(|number| number % 4 != 0);
        for number in &mut deletions {
            store.delete(&key(number)).unwrap();
            if number % (full / 10) < 2 {
                store.sync().unwrap();
                let image = device.history().crash().image(&mut Keep::Nothing);
                let again = open_with(&device_of(image), &options)
                    .unwrap_or_else(|error| panic!("{number} of {full}: {error}"));
                let kept = u64::from(full - (0..=number).filter(|n| n % 4 != 0).count() as u32);
                assert_eq!(again.verify().unwrap().keys, kept);
                opened += 1;
            }
        }
        assert!(opened >= 8, "{opened} of {full}");
    }
}
