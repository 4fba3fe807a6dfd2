//! What a growth factor costs: many small records in little memory, then gets.
//!
//! `cargo run --release -p kreon-bench --example levels -- RECORDS GROWTH [MEMORY_MIB [GETS]]`; a growth of 0 means one level
//! of any size. One thread writes values of 33 bytes under keys of 16 to 23 bytes in hashed order, into a store in a
//! temporary folder below the current one. CPU time is that of the whole process.

use std::env;
use std::time::{Duration, Instant};

use kreon::{Region, Store};
use rustix::time::{ClockId, clock_gettime};

const VALUE: [u8; 33] = [7; 33];

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn name(number: u64) -> String {
    let hash = mix(number);
    let digits = 12 + (hash >> 60) as usize / 2;
    format!("user{:0digits$}", hash % 10_u64.pow(digits as u32))
}

/// CPU time, device bytes and time since a start.
struct Meter<'a> {
    store: &'a Store,
    cpu: f64,
    begun: Instant,
    written: u64,
    reads: u64,
}

impl<'a> Meter<'a> {
    fn new(store: &'a Store) -> Self {
        let stats = store.stats();
        Self {
            store,
            cpu: cpu(),
            begun: Instant::now(),
            written: stats.device_write_bytes,
            reads: stats.device_reads,
        }
    }

    fn tell(&self, what: &str, count: u64) {
        let (stats, count) = (self.store.stats(), count as f64);
        let written = (stats.device_write_bytes - self.written) as f64 / count;
        println!(
            "{what:<9} {:6.2} s  {:6.2} us CPU, {written:6.0} bytes written, {:.2} reads each",
            self.begun.elapsed().as_secs_f64(),
            (cpu() - self.cpu) * 1e6 / count,
            (stats.device_reads - self.reads) as f64 / count,
        );
    }
}

fn load(region: &Region, records: u64) -> kreon::Result<()> {
    (0..records).try_for_each(|number| region.put(name(number), VALUE))
}

/// Waits until no merge is due or running.
fn settle(store: &Store) -> kreon::Result<()> {
    store.checkpoint()?;
    let mut last = None;
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = store.stats().device_write_bytes;
        if last.replace(now) == Some(now) {
            return Ok(());
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u64> = env::args().skip(1).flat_map(|arg| arg.parse()).collect();
    let number = |at: usize, usual| numbers.get(at).copied().unwrap_or(usual);
    let (records, growth) = (number(0, 2_000_000), number(1, 8) as u32);
    let (memory_mib, gets) = (number(2, 64) as usize, number(3, 200_000));
    let folder = tempfile::tempdir_in(".")?;
    let store = Store::options()
        .memory_bytes(memory_mib << 20)
        .growth_factor((growth > 0).then_some(growth))
        .open(folder.path().join("store"))?;
    let region = store.region("r")?;
    println!("{records} records, growth {growth}, {memory_mib} MiB");
    let meter = Meter::new(&store);
    load(&region, records)?;
    meter.tell("load", records);
    settle(&store)?;
    meter.tell("settled", records);
    let meter = Meter::new(&store);
    for turn in 0..gets {
        let found = region.get(name(mix(turn) % records))?;
        assert!(found.is_some(), "record {} is lost", mix(turn) % records);
    }
    meter.tell("get", gets);
    let meter = Meter::new(&store);
    for turn in 0..gets {
        let found = region.get(format!("{}x", name(mix(turn) % records)))?;
        assert!(found.is_none());
    }
    meter.tell("get none", gets);
    let text = store.stats().to_string();
    let is_wanted = |line: &&str| {
        line.starts_with("spills")
            || line.starts_with("merges")
            || line.starts_with("  pages")
            || line.starts_with("  L")
    };
    text.lines()
        .filter(is_wanted)
        .for_each(|line| println!("{line}"));
    store.close()?;
    Ok(())
}
