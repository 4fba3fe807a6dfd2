//! What a commit costs the writers beside it: `cargo run --release -p kreon-tucana --example commits -- FILE [seconds]`.
//!
//! One thread updates random keys of a store in a new file, another one commits ten times a second. Latencies of the updates by
//! the clock, beside those of as many seconds without a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use kreon_device::{FileDevice, FileOptions};
use tucana::{Options, Result, Store};

const KEYS: u64 = 200_000;
const VALUE: [u8; 100] = [7; 100];
const INTERVAL: Duration = Duration::from_millis(100);

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Updates random keys for so long; the latencies in us, sorted.
fn update(store: &Store, time: Duration) -> Result<Vec<f64>> {
    let (start, mut latencies, mut state) = (Instant::now(), Vec::new(), 1_u64);
    while start.elapsed() < time {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let begun = Instant::now();
        store.put(&key((state >> 33) % KEYS), &VALUE)?;
        latencies.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    latencies.sort_by(f64::total_cmp);
    Ok(latencies)
}

fn report(what: &str, latencies: &[f64]) {
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "{what:20} {:8} updates, us: median {:.1}, 99 % {:.1}, 99.99 % {:.1}, largest {:.0}",
        latencies.len(),
        at(0.5),
        at(0.99),
        at(0.9999),
        at(1.0)
    );
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file that is to be made");
    let seconds = arguments
        .next()
        .map_or(5, |text| text.parse().expect("seconds"));
    let file = FileOptions {
        create: true,
        ..FileOptions::default()
    };
    let (device, _) = FileDevice::open(&path, &file)?;
    let options = Options {
        memory_bytes: 256 << 20,
        ..Options::default()
    };
    let store = Store::open(Arc::new(device), &options)?;
    for number in 0..KEYS {
        store.put(&key(number), &VALUE)?;
    }
    store.commit()?;
    let time = Duration::from_secs(seconds);
    report("without commits", &update(&store, time)?);
    let (goes_on, commits, longest_us) =
        (AtomicBool::new(true), AtomicU64::new(0), AtomicU64::new(0));
    let latencies = thread::scope(|scope| {
        scope.spawn(|| {
            while goes_on.load(Relaxed) {
                let begun = Instant::now();
                store.commit().expect("a commit");
                let took = begun.elapsed();
                longest_us.fetch_max(took.as_micros() as u64, Relaxed);
                commits.fetch_add(1, Relaxed);
                thread::sleep(INTERVAL.saturating_sub(took));
            }
        });
        let latencies = update(&store, time);
        goes_on.store(false, Relaxed);
        latencies
    })?;
    report("beside commits", &latencies);
    println!(
        "{} commits, the longest {} ms",
        commits.load(Relaxed),
        longest_us.load(Relaxed) / 1000
    );
    Ok(())
}
