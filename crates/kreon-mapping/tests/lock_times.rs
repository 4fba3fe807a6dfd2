//! What the feature `lock-times` tells.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use common::{Content, MemoryDevice, VOLUME_BYTES, any, fresh, mapping_with};
use kreon_mapping::{CountWrites, LockTimes, Mapping, clock_ticks, hold_cost_ticks};

/// The times are those of the whole process: one test at a time.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn mapping(frames: u64, free_lists: usize) -> (Arc<MemoryDevice>, Mapping) {
    let device = Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Zero));
    let mapping = mapping_with(&device, frames, |options| {
        options.modes.free_lists = free_lists;
    });
    (device, mapping)
}

fn lock(mapping: &Mapping, name: &str) -> LockTimes {
    let mut all = mapping.lock_times();
    all.find(|lock| lock.name == name).expect("such a lock")
}

/// Holds by kind of lock, and writes by kind of count.
fn uses(mapping: &Mapping) -> Vec<(&'static str, u64)> {
    let holds = mapping
        .lock_times()
        .map(|LockTimes { name, holds, .. }| (name, holds));
    let writes = mapping
        .count_writes()
        .map(|CountWrites { name, writes }| (name, writes));
    holds.chain(writes).collect()
}

/// What `work` uses, without what it does not.
fn used(mapping: &Mapping, work: impl FnOnce()) -> Vec<(&'static str, u64)> {
    let before = uses(mapping);
    work();
    let after = uses(mapping).into_iter();
    let used = after
        .zip(before)
        .map(|((name, after), (_, before))| (name, after - before));
    used.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_hit_takes_no_lock_and_writes_no_shared_count() {
    let _alone = ALONE.lock();
    let (_, mapping) = mapping(64, 0);
    mapping.read(any(3), |_| ()).unwrap();
    let hit = used(&mapping, || mapping.read(any(3), |_| ()).unwrap());
    assert_eq!(hit, []);
}

#[test]
fn misses_and_fresh_pages_take_the_locks_that_they_need() {
    let _alone = ALONE.lock();
    let (_, mapping) = mapping(64, 0);
    let miss = used(&mapping, || mapping.read(any(3), |_| ()).unwrap());
    assert_eq!(
        miss,
        [
            ("shard", 2),
            ("list of free frames", 1),
            ("resident pages", 1),
            ("free frames", 1),
            ("statistics", 2),
        ]
    );
    let fresh = used(&mapping, || fresh(&mapping, 4, 1).unwrap());
    assert_eq!(
        fresh,
        [
            ("shard", 1),
            ("list of free frames", 1),
            ("limbo", 1),
            ("resident pages", 1),
            ("dirty pages", 1),
            ("free frames", 1),
            ("statistics", 1),
        ]
    );
}

#[test]
fn locks_are_as_many_as_the_mapping_has() {
    let _alone = ALONE.lock();
    for (free_lists, lists) in [(0, 4), (1, 1)] {
        let (_, mapping) = mapping(64, free_lists);
        assert_eq!(lock(&mapping, "shard").locks, 4);
        assert_eq!(lock(&mapping, "list of free frames").locks, lists);
        assert_eq!(lock(&mapping, "turn of eviction").locks, 1);
    }
}

#[test]
fn a_wait_for_a_load_of_another_is_no_hold() {
    let _alone = ALONE.lock();
    let (device, mapping) = mapping(64, 0);
    let (start, start_ticks) = (Instant::now(), clock_ticks());
    let before = lock(&mapping, "shard").held_ticks;
    device.read_delay_us.store(100_000, SeqCst);
    // One loads the page, the others wait for it in its shard.
    std::thread::scope(|scope| {
        (0..4).for_each(|_| {
            scope.spawn(|| mapping.read(any(3), |_| ()).unwrap());
        });
    });
    let held_ticks = lock(&mapping, "shard").held_ticks - before;
    let ticks_per_second = (clock_ticks() - start_ticks) as f64 / start.elapsed().as_secs_f64();
    let held_seconds = held_ticks as f64 / ticks_per_second;
    assert!(
        start.elapsed().as_millis() >= 100 && held_seconds < 0.09,
        "{held_seconds} s"
    );
}

#[test]
fn the_measurement_tells_what_it_costs() {
    let _alone = ALONE.lock();
    let (clock, hold) = hold_cost_ticks();
    assert!(clock > 0.0 && hold > clock, "{clock} and {hold} ticks");
}
