//! Write throughput: writes a second, time of a write, longest wait.
//!
//! `cargo run --release -p kreon-bench --example durable -- FOLDER threads 64` (64 threads, each waits until its write is
//! durable), `futures 256` (one thread with 256 writes in flight), or `buffered 2` (two threads, buffered writes).
//! `KEYS` limits the number of keys, so that the log is the load and not the index.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use kreon::{Durability, Region, Store};

const SECONDS: f64 = 3.0;
const VALUE_BYTES: usize = 1000;
/// Few enough that the index fits in the processor's cache.
const KEYS: u64 = 1000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("FOLDER MODE COUNT")?;
    let mode = arguments.next().ok_or("a mode")?;
    let count: usize = arguments.next().ok_or("how many")?.parse()?;

    let path = std::path::Path::new(&folder).join("durable.kreon");
    let _ = std::fs::remove_file(&path);
    let store = Store::options().memory_bytes(512 << 20).open(&path)?;
    let region = store.region("r")?;
    let flushes = store.stats().device_flushes;
    let written = store.stats().device_write_bytes;
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut waits = match mode.as_str() {
        "threads" => on_threads(count, &region, Durability::Sync),
        "futures" => in_futures(count, &region),
        "buffered" => on_threads(count, &region, Durability::Buffered),
        other => return Err(format!("no mode {other}").into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    store.sync()?;
    let ops = waits.len() as f64;
    let flushes = (store.stats().device_flushes - flushes) as f64;
    let written = (store.stats().device_write_bytes - written) as f64;
    waits.sort_unstable();
    let at = |part: f64| f64::from(waits[((ops - 1.0) * part) as usize]) / 1e3;
    println!(
        "{mode} {count}: {:.1} k ops/s, {:.2} us of CPU each, {:.2} a flush ({:.0} flushes/s), {:.2} bytes \
         written a byte; us p50 {:.1} p99 {:.1} p99.9 {:.1} p99.99 {:.1} max {:.0}",
        ops / seconds / 1e3,
        (cpu_seconds() - cpu) * 1e6 / ops,
        ops / flushes,
        flushes / seconds,
        written / ops / VALUE_BYTES as f64,
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        at(1.0),
    );
    store.close()?;
    std::fs::remove_file(&path)?;
    Ok(())
}

/// Nanoseconds of each write of `count` threads.
fn on_threads(count: usize, region: &Region, durability: Durability) -> Vec<u32> {
    let work = |thread: usize| {
        let (value, mut waits) = ([7; VALUE_BYTES], Vec::with_capacity(8 << 20));
        let end = Instant::now() + Duration::from_secs_f64(SECONDS);
        let mut now = Instant::now();
        while now < end {
            let key = key(thread, waits.len());
            region.put_with(key, value, durability).expect("a put");
            let then = std::mem::replace(&mut now, Instant::now());
            waits.push((now - then).as_nanos() as u32);
        }
        waits
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || work(n))).collect();
        let waits = threads.into_iter().map(|thread| thread.join());
        waits.flat_map(|waits| waits.expect("a thread")).collect()
    })
}

/// Nanoseconds of each write of one thread with `count` writes in flight.
fn in_futures(count: usize, region: &Region) -> Vec<u32> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let (value, mut waits) = ([7; VALUE_BYTES], Vec::with_capacity(8 << 20));
    let mut under_way = VecDeque::new();
    let end = Instant::now() + Duration::from_secs_f64(SECONDS);
    let mut number = 0;
    while Instant::now() < end {
        while under_way.len() < count {
            let start = Instant::now();
            let mut durable = region.put_async(key(0, number), value);
            number += 1;
            // The first poll requests a flush.
            if Future::poll(Pin::new(&mut durable), &mut context).is_pending() {
                under_way.push_back((start, durable));
            } else {
                waits.push(start.elapsed().as_nanos() as u32);
            }
        }
        // Futures complete in log order.
        while let Some((start, durable)) = under_way.front_mut() {
            match Future::poll(Pin::new(durable), &mut context) {
                Poll::Ready(outcome) => outcome.expect("a put"),
                Poll::Pending => break,
            }
            waits.push(start.elapsed().as_nanos() as u32);
            under_way.pop_front();
        }
        if under_way.len() == count {
            std::thread::park();
        }
    }
    waits
}

fn key(thread: usize, number: usize) -> [u8; 24] {
    let mut key = *b"user--------------------";
    let number = (number as u64 * 64 + thread as u64) % KEYS;
    key[4..12].copy_from_slice(&number.to_be_bytes());
    key
}

/// CPU time of the process since its start.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = behind_name.split_whitespace();
    // User and system time, in hundredths of a second.
    let ticks = fields.skip(11).take(2).flat_map(str::parse::<f64>);
    ticks.sum::<f64>() / 100.0
}
