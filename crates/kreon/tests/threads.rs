//! Several threads at once, with a watchdog for hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kreon::{Durability, Store, WriteBatch};

/// Ends the process if the test takes longer than `patience`: a hang is a failure, not a stuck run.
struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    fn new(patience: Duration) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        std::thread::spawn(move || {
            let end = std::time::Instant::now() + patience;
            while std::time::Instant::now() < end {
                std::thread::sleep(Duration::from_millis(50));
                if seen.load(Ordering::Relaxed) {
                    return;
                }
            }
            eprintln!("watchdog: the test hangs");
            std::process::abort();
        });
        Self(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn store(folder: &tempfile::TempDir, l0_bytes: usize) -> Store {
    Store::options()
        .memory_bytes(24 << 20)
        .l0_bytes(l0_bytes)
        .open(folder.path().join("store"))
        .unwrap()
}

#[test]
fn a_million_puts_of_four_threads_all_arrive() {
    let _watchdog = Watchdog::new(Duration::from_secs(240));
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 2 << 20);
    let region = store.region("r").unwrap();
    const EACH: u64 = 250_000;
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let region = &region;
            scope.spawn(move || {
                for n in 0..EACH {
                    // Half of the keys are written twice.
                    let key = (thread << 32 | (n % (EACH / 2 + EACH / 4)))
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    region
                        .put(key.to_be_bytes(), n.to_le_bytes().repeat(12))
                        .unwrap();
                }
            });
        }
    });
    let distinct = 4 * (EACH / 2 + EACH / 4);
    assert_eq!(region.iter().keys().count() as u64, distinct);
    for thread in 0..4u64 {
        for n in (0..EACH / 2 + EACH / 4).step_by(997) {
            let newest = if n < EACH / 4 {
                n + EACH / 2 + EACH / 4
            } else {
                n
            };
            let key = (thread << 32 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let value = region.get(key.to_be_bytes()).unwrap().unwrap();
            assert_eq!(value, newest.to_le_bytes().repeat(12).as_slice());
        }
    }
    assert!(store.stats().spills > 3);
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn readers_never_see_half_of_a_batch() {
    let _watchdog = Watchdog::new(Duration::from_secs(120));
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 128 << 10);
    let region = store.region("r").unwrap();
    const KEYS: u64 = 40;
    let write = |value: u64| {
        let mut batch = WriteBatch::new();
        for key in 0..KEYS {
            batch.put(
                &region,
                key.to_be_bytes(),
                [value.to_be_bytes().as_slice(), &[7; 90]].concat(),
            );
        }
        store.write(batch, Durability::Buffered).unwrap();
    };
    write(0);
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..4000 {
                write(value);
            }
            done.store(true, Ordering::Relaxed);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Key by key: a later get never shows an earlier batch.
                    let mut least = 0;
                    for key in 0..KEYS {
                        let seen = region.get_with(key.to_be_bytes(), number).unwrap().unwrap();
                        assert!(seen >= least, "key {key} shows batch {seen} after {least}");
                        least = seen;
                    }
                    // A scan and a snapshot each see exactly one batch.
                    let values: Vec<_> =
                        region.iter().map(|pair| number(&pair.unwrap().1)).collect();
                    assert_eq!(values.len() as u64, KEYS);
                    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
                    let snapshot = store.snapshot();
                    let first =
                        number(&snapshot.get(&region, 0u64.to_be_bytes()).unwrap().unwrap());
                    let last = number(
                        &snapshot
                            .get(&region, (KEYS - 1).to_be_bytes())
                            .unwrap()
                            .unwrap(),
                    );
                    assert_eq!(first, last);
                }
            });
        }
    });
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn sync_writers_share_flushes() {
    let _watchdog = Watchdog::new(Duration::from_secs(120));
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 2 << 20);
    let region = store.region("r").unwrap();
    let before = store.stats().device_flushes;
    std::thread::scope(|scope| {
        for thread in 0..16u64 {
            let region = &region;
            scope.spawn(move || {
                for n in 0..50u64 {
                    region
                        .put_with((thread << 32 | n).to_be_bytes(), "v", Durability::Sync)
                        .unwrap();
                }
            });
        }
    });
    let flushes = store.stats().device_flushes - before;
    assert!(
        flushes < 400,
        "{flushes} flushes for 800 writes of 16 threads"
    );
}

#[test]
fn scans_beside_writers_are_sorted_and_complete() {
    let _watchdog = Watchdog::new(Duration::from_secs(120));
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 128 << 10);
    let region = store.region("r").unwrap();
    for n in 0..2000u32 {
        region.put((n * 2).to_be_bytes(), [1; 100]).unwrap();
    }
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..30_000u32 {
                region
                    .put(((n % 2000) * 2 + 1).to_be_bytes(), n.to_le_bytes())
                    .unwrap();
                if n % 3 == 0 {
                    region
                        .delete((((n * 7) % 2000) * 2 + 1).to_be_bytes())
                        .unwrap();
                }
                written.fetch_add(1, Ordering::Relaxed);
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let keys: Vec<_> = region
                .iter()
                .keys()
                .map(|key| Vec::from(key.unwrap()))
                .collect();
            assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
            let even = keys.iter().filter(|key| key[3] % 2 == 0).count();
            assert_eq!(even, 2000);
            let back: Vec<_> = region
                .iter()
                .keys()
                .rev()
                .take(100)
                .map(Result::unwrap)
                .collect();
            assert!(back.windows(2).all(|pair| pair[0] > pair[1]));
        }
    });
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn a_batch_that_returned_is_seen_by_its_writer() {
    let _watchdog = Watchdog::new(Duration::from_secs(120));
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 256 << 10);
    let region = store.region("r").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (store, region) = (&store, &region);
            scope.spawn(move || {
                let key = |n: u64| (thread << 32 | n).to_be_bytes();
                for round in 0..1500u64 {
                    let mut batch = WriteBatch::new();
                    for n in 0..8 {
                        batch.put(region, key(n), round.to_le_bytes().repeat(30));
                    }
                    store.write(batch, Durability::Buffered).unwrap();
                    for n in 0..8 {
                        let value = region.get(key(n)).unwrap().unwrap();
                        assert_eq!(value, round.to_le_bytes().repeat(30).as_slice());
                    }
                }
            });
        }
    });
}

#[test]
fn of_a_key_that_a_batch_writes_twice_only_the_last_value_is_ever_seen() {
    let _watchdog = Watchdog::new(Duration::from_secs(120));
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 128 << 10);
    let region = store.region("r").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..60_000u32 {
                let mut batch = WriteBatch::new();
                for passing in 1..4u8 {
                    batch.put(&region, "key", [passing]);
                }
                batch.put(&region, "key", [0]);
                store.write(batch, Durability::Buffered).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = region.get_with("key", |value| value[0]).unwrap();
            assert!(matches!(seen, None | Some(0)), "{seen:?}");
        }
    });
}
