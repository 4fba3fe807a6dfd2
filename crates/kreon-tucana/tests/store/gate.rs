//! Writers inside the gate, and a freeze that waits for them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kreon_sim::{SimDevice, SimOptions};
use tucana::Options;

use crate::hooked_device::HookedDevice;
use crate::one_region::OneRegion;
use crate::world::options;

const PAGE_BYTES: usize = 4096;
const KEYS: u32 = 40_000;

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

fn is_done_soon(is_done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !is_done() && start.elapsed() < Duration::from_secs(30) {
        thread::yield_now();
    }
    is_done()
}

/// The nodes do not fit into memory, so a write waits for the device; a snapshot, and with it other writers, does not.
#[test]
fn a_snapshot_does_not_wait_for_a_writer_that_reads_a_node() {
    let sim = Arc::new(SimDevice::new(SimOptions {
        record: false,
        ..SimOptions::default()
    }));
    let (device, stop) = HookedDevice::new(sim, PAGE_BYTES);
    drop(stop);
    let options = Options {
        memory_bytes: 512 << 10,
        ..options()
    };
    let store = Arc::new(OneRegion::open(Arc::clone(&device) as _, &options).unwrap());
    for number in 0..KEYS {
        store.put(&key(number), b"value").unwrap();
    }
    store.commit().unwrap();
    let mut met = 0;
    for number in (0..KEYS).step_by(997) {
        let stop = device.stop_next();
        let writer = thread::spawn({
            let store = Arc::clone(&store);
            move || store.put(&key(number), b"another").unwrap()
        });
        let is_stopped = || stop.read.try_recv().is_ok();
        let mut has_stopped = false;
        while !has_stopped && !writer.is_finished() {
            has_stopped = is_stopped();
            thread::yield_now();
        }
        if has_stopped {
            met += 1;
            let snapshot = thread::spawn({
                let store = Arc::clone(&store);
                move || drop(store.snapshot())
            });
            assert!(is_done_soon(|| snapshot.is_finished()), "{number}");
            stop.go_on.send(()).unwrap();
            snapshot.join().unwrap();
        }
        assert!(writer.join().unwrap());
    }
    assert!(met >= 5, "{met} writers read a node");
    store.verify().unwrap();
}
