//! What commits cost the writers beside them: `cargo run --release -p kreon-tucana --example commits -- FILE [seconds]`.
//!
//! One thread updates random keys of a store in a new file: while nothing is committed, and while the thread of the store
//! commits ten times a second. Latencies of the updates by the clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_device::{FileDevice, FileOptions};
use tucana::{Options, Region, Result, Store};

const KEYS: u64 = 200_000;
const VALUE: [u8; 100] = [7; 100];
const INTERVAL: Duration = Duration::from_millis(100);

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Updates random keys for so long; the latencies in us, sorted.
fn update(region: &Region, time: Duration) -> Result<Vec<f64>> {
    let (start, mut latencies, mut state) = (Instant::now(), Vec::new(), 1_u64);
    while start.elapsed() < time {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let begun = Instant::now();
        region.put(key((state >> 33) % KEYS), VALUE)?;
        latencies.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    latencies.sort_by(f64::total_cmp);
    Ok(latencies)
}

fn report(what: &str, latencies: &[f64]) {
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    let over = latencies.iter().filter(|us| **us > 1000.0).count();
    println!(
        "{what:20} {:8} updates, us: median {:.1}, 99 % {:.1}, 99.99 % {:.1}, largest {:.0}; {over} over 1 ms",
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
    let time = Duration::from_secs(seconds);
    let hour = Duration::from_secs(3600);
    for (what, commit_interval) in [("without commits", hour), ("beside commits", INTERVAL)] {
        let file = FileOptions {
            create: true,
            ..FileOptions::default()
        };
        let (device, _) = FileDevice::open(&path, &file)?;
        let options = Options {
            memory_bytes: 256 << 20,
            commit_interval,
            // Nothing but the time has a commit made.
            commit_log_bytes: 1 << 40,
            ..Options::default()
        };
        let store = Store::open(Arc::new(device), &options)?;
        let region = store.region("default")?;
        for number in 0..KEYS {
            region.put(key(number), VALUE)?;
        }
        store.commit()?;
        let copies = store.stats().copies;
        report(what, &update(&region, time)?);
        let stats = store.stats();
        println!(
            "{} nodes were copied; {} freezes, the longest kept writers out for {} us",
            stats.copies - copies,
            stats.freezes,
            stats.longest_freeze_ns / 1000
        );
        store.close()?;
    }
    Ok(())
}
