//! How many durable puts there are in a second: `cargo run --release -p kreon-tucana --example durable_puts -- FILE [seconds]
//! [threads]`.
//!
//! By turns, a second each: threads that put with `Sync` into a store in a new file, and the bare device: as many writes of a
//! block and flushes, of one thread.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kreon_device::{AlignedBuf, Device, FileDevice, FileOptions};
use tucana::{Durability, Options, Region, Result, Store};

const VALUE: [u8; 100] = [7; 100];
const TURN: Duration = Duration::from_secs(1);

fn open(path: &str) -> Result<FileDevice> {
    let options = FileOptions {
        create: true,
        ..FileOptions::default()
    };
    FileDevice::open(path, &options).map(|(device, _)| device)
}

/// Durable puts of so many threads in one turn.
fn puts(region: &Region, threads: u64, turn: u64) -> Result<u64> {
    let start = Instant::now();
    thread::scope(|scope| {
        let put = |thread: u64| {
            let mut count = 0_u64;
            while start.elapsed() < TURN {
                let key = [turn, thread, count].map(u64::to_be_bytes).concat();
                region.put_with(&key, VALUE, Durability::Sync)?;
                count += 1;
            }
            Ok(count)
        };
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || put(thread)))
            .collect();
        running
            .into_iter()
            .map(|one| one.join().expect("a thread"))
            .sum()
    })
}

/// Writes with a flush each in one turn.
fn writes(device: &dyn Device, turn: u64) -> Result<u64> {
    let (start, mut count) = (Instant::now(), 0);
    let block = AlignedBuf::new(device.block_bytes() as usize);
    while start.elapsed() < TURN {
        let at = (turn << 24) + count * block.len() as u64;
        device.write_at(at, &block)?;
        device.flush()?;
        count += 1;
    }
    Ok(count)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file that is to be made");
    let mut number = || arguments.next().map(|text| text.parse().expect("a number"));
    let (turns, threads) = (number().unwrap_or(5), number().unwrap_or(1));
    let bare = open(&format!("{path}.bare"))?;
    bare.grow((turns + 1) << 24)?;
    bare.allocate(0, (turns + 1) << 24)?;
    let store = Store::open(Arc::new(open(&path)?), &Options::default())?;
    let region = store.region("default")?;
    let mut sums = [0; 2];
    for turn in 0..turns {
        sums[0] += puts(&region, threads, turn)?;
        sums[1] += writes(&bare, turn)?;
    }
    let [durable, bare] = sums.map(|sum| sum as f64 / turns as f64);
    println!(
        "{durable:.0} durable puts a second of {threads} threads, {bare:.0} writes with a flush: {:.2}",
        durable / bare
    );
    store.close()
}
