//! What insertions and lookups cost: `cargo run --release -p kreon-tucana --example tree [keys] [rounds]`.
//!
//! A tree in memory, its log in memory, keys of 30 bytes in a random order, values of 100 bytes. Processor time of the
//! threads that do the work, per operation, and operations a second by the clock; medians of the rounds. A round with one
//! writer and one with two go by turns, each on a tree of its own.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kreon_base::{Epoch, PAGE_BYTES, PageNo, RegionId, Result};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_format::StoreId;
use kreon_mapping::{Mapping, MappingOptions};
use rustix::time::{ClockId, clock_gettime};
use tucana::{CountedPages, MemoryLog, Tree, TreeHome};

const VALUE: [u8; 100] = [7; 100];

/// A device that takes everything and keeps nothing: all nodes stay in frames.
struct Nothing(u64);

impl Device for Nothing {
    fn block_bytes(&self) -> u32 {
        4096
    }
    fn len_bytes(&self) -> u64 {
        self.0
    }
    fn len_bytes_max(&self) -> u64 {
        self.0
    }
    fn grow(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn read(&self, _: &mut [Read<'_>]) -> Result<()> {
        Ok(())
    }
    fn write(&self, _: &[Write<'_>]) -> Result<()> {
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Key number `i` of `keys`, in an order that looks random.
fn key(i: usize, keys: usize) -> [u8; 30] {
    let number = i as u64 * 2_654_435_761 % keys as u64;
    let mut key = *b"user/00000000000000000000/data";
    let mut rest = number;
    for digit in key[5..25].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn tree(keys: usize) -> Result<Tree<MemoryLog>> {
    // 20 bytes of a leaf for each key, leaves two thirds full, and as many frames again that must not be open.
    let memory_bytes = (keys * 20 * 3 / 2 * 5 / 2).next_multiple_of(1 << 20) + (64 << 20);
    let volume_bytes = 4 * memory_bytes as u64;
    let options = MappingOptions::new(memory_bytes, volume_bytes);
    let mapping = Mapping::new(Arc::new(Nothing(volume_bytes)), options)?;
    let home = TreeHome {
        mapping: Arc::new(mapping),
        log: Arc::new(MemoryLog::default()),
        pages: Arc::new(CountedPages::new(
            PageNo(1),
            PageNo(volume_bytes / PAGE_BYTES as u64),
        )),
        store: StoreId(1),
        region: RegionId(1),
    };
    Tree::new(home, Epoch(1))
}

/// Processor time in us of one of `keys` operations that so many threads do, and millions of them a second.
#[derive(Clone, Copy)]
struct Cost {
    cpu_us: f64,
    rate: f64,
}

fn measured(keys: usize, threads: usize, operation: impl Fn(usize) + Sync) -> Cost {
    let start = Instant::now();
    let cpu: Duration = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let operation = &operation;
                scope.spawn(move || {
                    let start = thread_cpu();
                    (worker..keys).step_by(threads).for_each(operation);
                    thread_cpu() - start
                })
            })
            .collect();
        let times = workers.into_iter().map(|worker| worker.join());
        times.map(|time| time.expect("no panic")).sum()
    });
    Cost {
        cpu_us: cpu.as_secs_f64() * 1e6 / keys as f64,
        rate: keys as f64 / start.elapsed().as_secs_f64() / 1e6,
    }
}

fn report(what: &str, costs: &[Cost]) -> f64 {
    let median = |of: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let rate = median(|cost| cost.rate);
    println!(
        "{what:28} {:6.3} CPU us, {rate:6.3} M/s",
        median(|cost| cost.cpu_us)
    );
    rate
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: usize| {
        let text = arguments.next();
        text.map_or(usual, |text| text.parse().expect("a number"))
    };
    let (keys, rounds) = (number(1_000_000), number(3));
    let mut costs = [const { Vec::new() }; 4];
    let mut last = None;
    for _ in 0..rounds {
        for threads in [1, 2] {
            let tree = tree(keys)?;
            costs[threads - 1].push(measured(keys, threads, |i| {
                tree.put(&key(i, keys), &VALUE).expect("a put");
            }));
            costs[threads + 1].push(measured(keys, threads, |i| {
                let found = tree.get_with(&key(i, keys), <[u8]>::len);
                assert_eq!(found.expect("a get"), Some(VALUE.len()));
            }));
            last = Some(tree.stats());
        }
    }
    println!("{keys} keys, {rounds} rounds");
    let one = report("insertion, 1 writer", &costs[0]);
    let two = report("insertion, 2 writers", &costs[1]);
    println!("{:28} {:6.2}", "2 writers to 1", two / one);
    report("lookup, 1 reader", &costs[2]);
    report("lookup, 2 readers", &costs[3]);
    if let Some(stats) = last {
        println!(
            "searches that read no key: {:.2} %, records read for a hash that are the right ones: {:.2} %, {} splits",
            100.0 * (1.0 - stats.ties as f64 / stats.searches.max(1) as f64),
            100.0 * (1.0 - stats.hash_misses as f64 / stats.hash_matches.max(1) as f64),
            stats.splits,
        );
    }
    Ok(())
}
