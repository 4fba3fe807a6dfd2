//! Collection beside writers, in a certain order.

use std::sync::Arc;
use std::time::Duration;

use kreon_sim::{SimDevice, SimOptions};
use tucana::{Maintenance, Options};

use crate::hooked_device::HookedDevice;
use crate::one_region::OneRegion;
use crate::world::options;

const SEGMENT_BYTES: usize = 2 << 20;
const PAGE_BYTES: usize = 4096;

/// Seven records fill a segment behind its header.
const RECORDS: u8 = 7;
const RECORD_HEADER_BYTES: usize = 16;
/// The number of the region before each key.
const NUMBER_BYTES: usize = 4;
const RECORD_BYTES: usize = (SEGMENT_BYTES - PAGE_BYTES) / RECORDS as usize;

/// Writes the records of one segment: one of `first`, and others that every segment has.
fn write_segment(store: &OneRegion, first: &[u8; 4], round: u8) {
    write_record(store, first, round);
    for other in 1..RECORDS {
        write_record(store, &[other; 4], round);
    }
}

fn write_record(store: &OneRegion, key: &[u8; 4], round: u8) {
    let value = vec![round; RECORD_BYTES - RECORD_HEADER_BYTES - NUMBER_BYTES - key.len()];
    store.put(key, &value).unwrap();
}

/// The thread that collects has read a segment; before it goes on, writers replace what was live there, and write so much that
/// the segment would come to take records again: one of the same key and length where the old one was.
#[test]
fn a_segment_that_is_being_collected_takes_no_new_records() {
    let sim = Arc::new(SimDevice::new(SimOptions {
        record: false,
        ..SimOptions::default()
    }));
    let (device, stop) = HookedDevice::new(Arc::clone(&sim), SEGMENT_BYTES);
    let options = Options {
        maintenance: Maintenance::Thread,
        commit_interval: Duration::from_millis(10),
        ..options()
    };
    let store = OneRegion::open(Arc::clone(&device) as _, &options).unwrap();
    // If the test fails, this goes first: the store waits for the thread that stands there.
    let stop = stop;
    // The first segment has the region's name, durably, at its front, and is not to be collected: all of it stays.
    for number in 1..RECORDS {
        write_record(&store, &[200 + number; 4], 0);
    }
    store
        .put(&[200; 4], &vec![0; RECORD_BYTES - 2 * PAGE_BYTES])
        .unwrap();
    // Each other segment has one record that stays: they are dead for the most part, but not too much for writers to go on.
    for number in 0..10 {
        write_segment(&store, &[100 + number; 4], 0);
    }
    store.commit().unwrap();
    let victim = stop.read.recv_timeout(Duration::from_secs(60)).unwrap();
    let place = victim + PAGE_BYTES as u64;
    let front = sim
        .image()
        .bytes(place, RECORD_HEADER_BYTES + NUMBER_BYTES + 4);
    let key: [u8; 4] = *front.last_chunk().unwrap();
    assert!((100..110).any(|number| key == [number; 4]), "{front:?}");

    device.take_written(victim);
    let (mut round, mut came_back) = (0, false);
    while round < 30 && !came_back {
        round += 1;
        write_record(&store, &key, round);
        store.sync().unwrap();
        came_back = device.take_written(victim);
        if !came_back {
            for other in 1..RECORDS {
                write_record(&store, &[other; 4], round);
            }
            store.commit().unwrap();
        }
    }
    stop.go_on.send(()).unwrap();
    // Waits for the round.
    drop(store);
    let store = OneRegion::open(Arc::clone(&device) as _, &options).unwrap();
    let found = store.get(&key).unwrap().unwrap();
    assert_eq!((found[0], came_back), (round, false));
    store.verify().unwrap();
}
