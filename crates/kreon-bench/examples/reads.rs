//! What reads cost with data that does not fit in memory, and with data that does.
//!
//! ```text
//! cargo run --release -p kreon-bench --example reads -- FILE load RECORDS
//! cargo run --release -p kreon-bench --example reads -- FILE MIB SECONDS RECORDS WORKLOAD..
//! ```
//! Workloads: `get:THREADS`, `multi:KEYS`, `scan:THREADS` (1 to 100 pairs), `async:GETS` (gets in flight, driven by one
//! thread), `foreign:GETS` (gets in flight under an executor that does not know the store).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream::FuturesUnordered};
use kreon::{Durability, Region, Result, Store};
use rustix::time::{ClockId, clock_gettime};

const VALUE_BYTES: usize = 1000;

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A minimal executor: the thread parks until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash(self.0)
    }
}

fn hash(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A different seed for each run.
fn start_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64)
}

fn key(number: u64) -> String {
    format!("user{:020}", hash(number))
}

fn check(key: &str, value: &[u8]) {
    assert_eq!(value.len(), VALUE_BYTES, "{key}");
    assert_eq!(&value[..24], key.as_bytes());
}

fn load(path: &str, records: u64) -> Result<()> {
    let store = Store::options().memory_bytes(1 << 30).open(path)?;
    let region = store.region("r")?;
    let mut value = vec![b'v'; VALUE_BYTES];
    for number in 0..records {
        let key = key(number);
        value[..24].copy_from_slice(key.as_bytes());
        region.put_with(&key, &value, Durability::Buffered)?;
    }
    store.checkpoint()?;
    store.close()
}

struct Run<'a> {
    store: &'a Store,
    region: &'a Region,
    records: u64,
    time: Duration,
}

impl Run<'_> {
    /// Runs `work` in `threads` threads until the time is up. `work` returns the number of operations of one call.
    fn measure(&self, name: &str, threads: u64, work: impl Fn(&mut Random) -> Result<u64> + Sync) {
        let warm = Instant::now();
        // New keys each time: repeated ones would be in memory.
        let mut seeds = Random(start_seed());
        let mut random = Random(seeds.draw());
        while warm.elapsed() < self.time / 4 {
            work(&mut random).expect("warm");
        }
        let operations = AtomicU64::new(0);
        let (start, cpu_start, before) = (Instant::now(), cpu(), self.store.stats());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (operations, work, mut random) = (&operations, &work, Random(seeds.draw()));
                scope.spawn(move || {
                    while start.elapsed() < self.time {
                        operations.fetch_add(work(&mut random).expect("reads"), Relaxed);
                    }
                });
            }
        });
        let seconds = start.elapsed().as_secs_f64();
        let cpu_us = (cpu() - cpu_start).as_secs_f64() * 1e6;
        let after = self.store.stats();
        let operations = operations.into_inner() as f64;
        let reads = (after.device_reads - before.device_reads) as f64;
        let bytes = (after.device_read_bytes - before.device_read_bytes) as f64;
        println!(
            "{name:12} {:9.0} ops/s {:9.0} reads/s {:7.2} CPU us/op {:6.3} reads/op {:5.2} KiB/read",
            operations / seconds,
            reads / seconds,
            cpu_us / operations,
            reads / operations,
            bytes / reads / 1024.0
        );
    }

    fn gets(&self, threads: u64) {
        self.measure(&format!("get:{threads}"), threads, |random| {
            let key = key(random.draw() % self.records);
            let found = self.region.get_with(&key, |value| check(&key, value))?;
            found.expect("a value");
            Ok(1)
        });
    }

    fn multi_gets(&self, count: u64) {
        self.measure(&format!("multi:{count}"), 1, |random| {
            let keys: Vec<_> = (0..count)
                .map(|_| key(random.draw() % self.records))
                .collect();
            for (key, value) in keys.iter().zip(self.region.multi_get(&keys)?) {
                check(key, &value.expect("a value"));
            }
            Ok(count)
        });
    }

    /// Gets of one thread, always `in_flight` of them except at the end of a round.
    async fn round(&self, in_flight: u64, random: &mut Random) -> Result<u64> {
        const ROUND_GETS: u64 = 4_000;
        let mut left = ROUND_GETS.saturating_sub(in_flight);
        let mut get = || {
            let key = key(random.draw() % self.records);
            let get = self.region.get_async(key.clone());
            async move { (get.await, key) }
        };
        let mut gets: FuturesUnordered<_> = (0..in_flight).map(|_| get()).collect();
        while let Some((value, key)) = gets.next().await {
            check(&key, &value?.expect("a value"));
            if left > 0 {
                left -= 1;
                gets.push(get());
            }
        }
        Ok(ROUND_GETS.max(in_flight))
    }

    fn async_gets(&self, in_flight: u64) {
        self.measure(&format!("async:{in_flight}"), 1, |random| {
            self.store.drive(self.round(in_flight, random))
        });
    }

    fn foreign_gets(&self, in_flight: u64) {
        self.measure(&format!("foreign:{in_flight}"), 1, |random| {
            block_on(self.round(in_flight, random))
        });
    }

    fn scans(&self, threads: u64) {
        self.measure(&format!("scan:{threads}"), threads, |random| {
            let start = key(random.draw() % self.records);
            let count = 1 + random.draw() % 100;
            let mut scan = self.region.range(start..).limit(count as usize);
            for _ in 0..count {
                let shown = scan.next_with(|_, value| assert_eq!(value.len(), VALUE_BYTES))?;
                if shown.is_none() {
                    break;
                }
            }
            Ok(1)
        });
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [path, "load", records] => load(path, records.parse().expect("records")),
        [path, mib, seconds, records, ref workloads @ ..] => {
            let memory_bytes = mib.parse::<usize>().expect("MiB") << 20;
            let store = Store::options().memory_bytes(memory_bytes).open(path)?;
            let run = Run {
                store: &store,
                region: &store.region("r")?,
                records: records.parse().expect("records"),
                time: Duration::from_secs_f64(seconds.parse().expect("seconds")),
            };
            for workload in workloads {
                let (name, number) = workload.split_once(':').expect("NAME:NUMBER");
                let number = number.parse().expect("a number");
                match name {
                    "get" => run.gets(number),
                    "multi" => run.multi_gets(number),
                    "async" => run.async_gets(number),
                    "foreign" => run.foreign_gets(number),
                    "scan" => run.scans(number),
                    _ => panic!("no workload {name}"),
                }
            }
            store.close()
        }
        _ => panic!("see the example's text"),
    }
}
