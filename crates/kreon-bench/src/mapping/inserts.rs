//! Latencies of inserts while a checkpoint is made each second, everything in memory (`Kreon 4.2.2`, figure 3.6 of the
//! dissertation).

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use kreon::{MappingModes, Region, Store};

use super::ram::pool::Done;
use crate::keys::{fill, key};
use crate::meter::Meter;

/// Bytes of a value.
const VALUE_BYTES: usize = 1000;

/// Bytes of a record in the log, and a little more.
const RECORD_BYTES: u64 = 1100;

/// Between the starts of two checkpoints.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Name of the store.
const STORE: &str = "latency.kreon";

/// Inserts on `threads` threads until `seconds` have passed, or the records would take half of the memory. Returns the
/// percentiles of their latencies in microseconds, and how many checkpoints there were.
///
/// # Errors
/// Of the store.
pub fn run(
    dir: &Path,
    memory_bytes: u64,
    modes: MappingModes,
    seconds: u64,
    threads: u64,
) -> anyhow::Result<(Done, Vec<(String, f64)>)> {
    let store = Store::options()
        .memory_bytes(memory_bytes as usize)
        .mapping_modes(modes)
        .open(dir.join(STORE))?;
    let region = store.region("bench")?;
    let inserts = Inserts {
        region: &region,
        next: AtomicU64::new(0),
        count_max: memory_bytes / 2 / RECORD_BYTES,
        end: Instant::now() + Duration::from_secs(seconds),
        is_over: AtomicBool::new(false),
        latencies: Mutex::new(histogram()?),
    };
    let meter = Meter::start();
    let checkpoints = inserts.all(&store, threads)?;
    let taken = meter.stop();
    let latencies = inserts.latencies.into_inner();
    let latencies = latencies.map_err(|_| anyhow::anyhow!("a thread panicked"))?;
    let count = latencies.len();
    let us = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
    let mut figures: Vec<_> = [("p50 us", 0.5), ("p99 us", 0.99), ("p99.9 us", 0.999)]
        .map(|(name, quantile)| (name.to_owned(), us(quantile)))
        .into();
    figures.push(("p99.99 us".into(), us(0.9999)));
    figures.push(("longest us".into(), latencies.max() as f64 / 1e3));
    figures.push(("checkpoints".into(), checkpoints as f64));
    drop(region);
    store.close()?;
    std::fs::remove_file(dir.join(STORE))?;
    Ok((Done { count, taken }, figures))
}

struct Inserts<'a> {
    region: &'a Region,
    next: AtomicU64,
    count_max: u64,
    end: Instant,
    is_over: AtomicBool,
    latencies: Mutex<Histogram<u64>>,
}

impl Inserts<'_> {
    /// Returns how many checkpoints there were.
    fn all(&self, store: &Store, threads: u64) -> anyhow::Result<u64> {
        std::thread::scope(|scope| {
            let checkpoints = scope.spawn(|| self.checkpoints(store));
            let writers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.some())).collect();
            let mut outcome = Ok(());
            for writer in writers {
                outcome = outcome.and(match writer.join() {
                    Ok(written) => written,
                    Err(_) => Err(anyhow::anyhow!("a thread panicked")),
                });
            }
            self.is_over.store(true, Relaxed);
            let Ok(checkpoints) = checkpoints.join() else {
                bail!("the thread of checkpoints panicked");
            };
            outcome.and(checkpoints)
        })
    }

    fn some(&self) -> anyhow::Result<()> {
        let mut latencies = histogram()?;
        let (mut name, mut value) = (Vec::new(), vec![0; VALUE_BYTES]);
        let mut now = Instant::now();
        while now < self.end {
            let number = self.next.fetch_add(1, Relaxed);
            if number >= self.count_max {
                break;
            }
            name.clear();
            key(number, &mut name);
            fill(number, &mut value);
            let start = Instant::now();
            self.region.put(&name, &value)?;
            now = Instant::now();
            latencies.saturating_record((now - start).as_nanos() as u64);
        }
        let all = self.latencies.lock();
        let mut all = all.map_err(|_| anyhow::anyhow!("another thread panicked"))?;
        all.add(latencies).context("add up latencies")
    }

    fn checkpoints(&self, store: &Store) -> anyhow::Result<u64> {
        let (mut due, mut count) = (Instant::now() + CHECKPOINT_INTERVAL, 0);
        while !self.is_over.load(Relaxed) {
            if Instant::now() < due {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            store.checkpoint()?;
            count += 1;
            due = (due + CHECKPOINT_INTERVAL).max(Instant::now());
        }
        Ok(count)
    }
}

/// From a nanosecond to ten minutes.
fn histogram() -> anyhow::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, 600_000_000_000, 3).context("make a histogram")
}
