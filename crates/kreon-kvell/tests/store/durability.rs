//! What is durable when.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kreon_sim::Call;
use kvell::Durability::{Buffered, Sync};

use crate::world::{after_power_cut, new_store, value};

/// Long beside the 100 ms that buffered changes may take, for slow machines.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_durable_change_survives_a_power_cut_as_soon_as_it_is_acknowledged() {
    let (device, _store, region) = new_store();
    for number in 0..20 {
        let len_bytes = if number % 2 == 0 { 50 } else { 5000 };
        region
            .put("key", value(number, len_bytes), Sync)
            .expect("a put");
        let (_store, after) = after_power_cut(&device);
        let found = after.get("key").expect("a get");
        assert_eq!(found, Some(value(number, len_bytes)));
    }
    region.delete("key", Sync).expect("a deletion");
    let (_store, after) = after_power_cut(&device);
    assert_eq!(after.get("key").expect("a get"), None);
}

#[test]
fn a_buffered_change_becomes_durable_though_nobody_asks_for_it() {
    let (device, _store, region) = new_store();
    region.put("key", "value", Buffered).expect("a put");
    wait_until_durable(&device, "value");
}

#[test]
fn a_buffered_change_becomes_durable_though_its_partition_is_busy_all_the_time() {
    let (device, _store, region) = new_store();
    let is_over = AtomicBool::new(false);
    let before = device.calls(Call::Flush);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (region, is_over) = (&region, &is_over);
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Relaxed) {
                    number += 1;
                    let key = [thread, number % 20].map(u64::to_be_bytes).concat();
                    region
                        .put(&key, value(number, 600), Buffered)
                        .expect("a put");
                }
            });
        }
        let start = Instant::now();
        region.put("key", "value", Buffered).expect("a put");
        // One may have begun before the put.
        while device.calls(Call::Flush) < before + 3 && start.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Relaxed);
        assert!(start.elapsed() < LONG, "no flush");
    });
    wait_until_durable(&device, "value");
}

fn wait_until_durable(device: &kreon_sim::SimDevice, expected: &str) {
    let start = Instant::now();
    loop {
        let (_store, after) = after_power_cut(device);
        let found = after.get("key").expect("a get");
        if found.as_deref() == Some(expected.as_bytes()) {
            return;
        }
        assert!(start.elapsed() < LONG, "still {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_idle_store_flushes_nothing() {
    let (device, store, region) = new_store();
    region.put("key", "value", Buffered).expect("a put");
    store.sync().expect("a sync");
    let before = (device.calls(Call::Flush), device.events());
    store.sync().expect("a sync of nothing");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!((device.calls(Call::Flush), device.events()), before);
}

#[test]
fn a_sync_ends_beside_writers_and_what_was_acknowledged_before_it_is_durable() {
    let (device, store, region) = new_store();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (region, is_over) = (&region, &is_over);
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Relaxed) {
                    number += 1;
                    let key = [thread, number % 50].map(u64::to_be_bytes).concat();
                    region
                        .put(&key, value(number, 60), Buffered)
                        .expect("a put");
                }
            });
        }
        for number in 0..5 {
            region
                .put("key", value(number, 700), Buffered)
                .expect("a put");
            store.sync().expect("a sync");
            let (_store, after) = after_power_cut(&device);
            let found = after.get("key").expect("a get");
            assert_eq!(found, Some(value(number, 700)));
        }
        is_over.store(true, Relaxed);
    });
}
