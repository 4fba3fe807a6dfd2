//! Threads that evict and write back beside each other.

mod common;

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Content, MemoryDevice, VOLUME_BYTES, any, fresh, mapping_with_frames, verify, version,
};
use kreon_base::{PageNo, Priority};
use kreon_mapping::{Mapping, PageRequest};

/// Pages of a stripe; its number, modulo the four shards, is that of its shard.
const STRIPE: u64 = 1024;

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

fn read(mapping: &Mapping, page: u64, priority: u8) {
    let request = PageRequest {
        priority: Priority(priority),
        ..any(page)
    };
    mapping.read(request, |_| ()).unwrap();
}

fn resident_of(mapping: &Mapping, priority: u8) -> u64 {
    let mut all = mapping.pages_by_priority();
    let found = all.find(|(of, _)| of.0 == priority);
    found.map_or(0, |(_, pages)| pages)
}

/// Waits for what other threads do.
fn wait_until(is_done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing goes on");
        thread::yield_now();
    }
}

#[test]
fn pages_of_the_last_priority_go_first_also_from_the_shards_of_other_threads() {
    let device = device();
    // Two turns: that of shards 0 and 2, and that of 1 and 3.
    let mapping = mapping_with_frames(&device, 2048);
    for i in 0..500 {
        read(&mapping, i, 2);
        read(&mapping, STRIPE + i, 2);
    }
    for i in 0..1048 {
        // All of them in shard 1.
        read(&mapping, (5 + 4 * (i / STRIPE)) * STRIPE + i % STRIPE, 200);
    }
    assert_eq!(mapping.stats().frames_free, 0);
    // Threads that live at the same time have different turns.
    let (both_live, one_by_one) = (Barrier::new(2), Mutex::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                both_live.wait();
                let mut next = one_by_one.lock().unwrap();
                for _ in 0..150 {
                    read(&mapping, 2 * STRIPE + *next, 2);
                    *next += 1;
                }
                drop(next);
                both_live.wait();
            });
        }
    });
    assert_eq!(resident_of(&mapping, 2), 1300);
    assert!(resident_of(&mapping, 200) <= 748);
}

#[test]
fn a_thread_over_the_limit_of_dirty_pages_writes_beside_another() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    thread::scope(|scope| {
        let gate = device.write_gate.lock();
        for thread in 0..2 {
            let mapping = &mapping;
            scope.spawn(move || {
                (0..60).for_each(|i| fresh(mapping, thread * STRIPE + i, 1).unwrap());
            });
        }
        wait_until(|| device.write_calls.load(SeqCst) == 2);
        drop(gate);
    });
    mapping.sync().unwrap();
    device.assert_no_violation();
    for page in (0..60).chain(STRIPE..STRIPE + 60) {
        assert_eq!(verify(page, &device.page(page)), Ok(1));
        assert_eq!(version(&mapping, page).unwrap(), 1);
    }
}

#[test]
fn below_the_limit_one_thread_writes_and_the_others_go_on() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    thread::scope(|scope| {
        let gate = device.write_gate.lock();
        let writes = scope.spawn(|| (0..33).for_each(|i| fresh(&mapping, i, 1).unwrap()));
        wait_until(|| device.write_calls.load(SeqCst) == 1);
        // 33 pages are dirty, 48 may be.
        let goes_on = scope.spawn(|| (100..110).for_each(|i| fresh(&mapping, i, 1).unwrap()));
        wait_until(|| goes_on.is_finished());
        assert!(!writes.is_finished());
        assert_eq!(device.write_calls.load(SeqCst), 1);
        drop(gate);
    });
}

#[test]
fn a_write_ahead_that_failed_keeps_nobody_from_the_next() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    (0..32).for_each(|i| fresh(&mapping, i, 1).unwrap());
    device.write_failures_left.store(1, SeqCst);
    fresh(&mapping, 32, 1).unwrap_err();
    assert_eq!(mapping.stats().pages_dirty, 33);
    fresh(&mapping, 33, 1).unwrap();
    assert!(mapping.stats().pages_dirty < 33);
    mapping.discard(PageNo(0), 64);
}
