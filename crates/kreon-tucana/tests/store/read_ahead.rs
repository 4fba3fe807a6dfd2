//! Scans of records that are not in memory.

use std::sync::Arc;

use kreon_sim::{SimDevice, SimOptions};
use tucana::Direction;

use crate::hooked_device::HookedDevice;
use crate::one_region::OneRegion;
use crate::world::options;

const KEYS: u32 = 3000;
const VALUE_BYTES: usize = 2000;

/// Keys that follow each other are far from each other in the log.
fn fill(store: &OneRegion) {
    for number in 0..KEYS {
        let number = number * 1009 % KEYS;
        let value = vec![number as u8; VALUE_BYTES];
        store.put(&number.to_be_bytes(), &value).unwrap();
    }
}

#[test]
fn a_scan_reads_the_more_records_at_once_the_more_of_them_are_not_in_memory() {
    let sim = Arc::new(SimDevice::new(SimOptions::default()));
    let (device, _stop) = HookedDevice::new(sim, 0);
    let open = || OneRegion::open(Arc::clone(&device) as _, &options()).unwrap();
    let store = open();
    fill(&store);
    store.commit().unwrap();
    drop(store);
    let store = open();
    let region = store.own().unwrap();
    device.take_batches();
    for direction in [Direction::Forward, Direction::Reverse] {
        // The first pair may be all that is wanted. Nodes on the way may be read here, too.
        for number in (0..KEYS).step_by(100) {
            let key = number.to_be_bytes();
            let mut scan = region.scan(key..=key, direction);
            scan.next().unwrap().unwrap();
        }
        assert_eq!(device.take_batches().into_iter().max(), Some(1));
        let mut count = 0;
        for pair in region.scan(.., direction) {
            let (key, value) = pair.unwrap();
            let number = u32::from_be_bytes(key.try_into().unwrap());
            let place = match direction {
                Direction::Forward => count,
                Direction::Reverse => KEYS - 1 - count,
            };
            assert_eq!((number, value.len()), (place, VALUE_BYTES));
            count += 1;
        }
        assert_eq!(count, KEYS);
        let batches = device.take_batches();
        let (calls, reads) = (batches.len(), batches.iter().sum::<usize>());
        assert!(calls * 10 < reads, "{calls} calls for {reads} reads");
        assert!(reads < 2 * KEYS as usize, "{reads} reads of {KEYS} records");
    }
}
