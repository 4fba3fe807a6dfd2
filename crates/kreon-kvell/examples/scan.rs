//! What a scan of 50 items of 1 KiB costs: in memory, and from a file.
//!
//! `cargo run --release -p kreon-kvell --example scan -- FILE [KEYS] [MEMORY_MIB] [SECONDS]`
//!
//! The file is made anew. With memory for all items the scans cost no I/O; that is checked by nothing here, so give enough.

use std::time::{Duration, Instant};

use kvell::Durability::Buffered;
use kvell::{Options, Region, Result};

const SCAN_KEYS: usize = 50;

/// A generator of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn key(number: u64) -> String {
    format!("user{number:026}")
}

fn fill(region: &Region, keys: u64) -> Result<()> {
    let numbers: Vec<u64> = (0..keys).collect();
    for part in numbers.chunks(1000) {
        let changes: Vec<_> = part.iter().map(|&it| (key(it), Some([7; 1024]))).collect();
        region.write_many(&changes, Buffered)?;
    }
    Ok(())
}

/// CPU time of this thread in ns, where the system tells it.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next();
    first.and_then(|it| it.parse().ok()).unwrap_or_default()
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "scan.kvell".to_owned());
    let mut number = |default: u64| {
        let given = arguments.next().and_then(|it| it.parse().ok());
        given.unwrap_or(default)
    };
    let (keys, memory_mib, seconds) = (number(50_000), number(256), number(2));
    let _ = std::fs::remove_file(&path);
    let options = Options {
        memory_bytes: (memory_mib as usize) << 20,
        ..Options::default()
    };
    let store = options.open(&path)?;
    let region = store.region("r")?;
    fill(&region, keys)?;
    store.sync()?;
    let mut random = Random(0x9e37_79b9);
    let last = keys.saturating_sub(SCAN_KEYS as u64).max(1);
    let mut measure = |name: &str, scan: &mut dyn FnMut(String) -> Result<usize>| -> Result<()> {
        let (begun, patience) = (Instant::now(), Duration::from_secs(seconds));
        let cpu_begun = cpu_ns();
        let (mut scans, mut bytes) = (0_u64, 0);
        while begun.elapsed() < patience {
            bytes += scan(key(random.below(last)))?;
            scans += 1;
        }
        let each = begun.elapsed().as_secs_f64() * 1e6 / scans as f64;
        let cpu_us = (cpu_ns() - cpu_begun) as f64 / 1e3 / scans as f64;
        let each_bytes = bytes as u64 / scans;
        println!("{name:<20} {each:8.1} us, {cpu_us:8.1} us CPU of the caller, {each_bytes} bytes");
        Ok(())
    };
    measure("50 pairs, limit", &mut |from| {
        let scan = region.range(from..).limit(SCAN_KEYS);
        scan.map(|pair| pair.map(|pair| pair.1.len())).sum()
    })?;
    measure("50 pairs, take", &mut |from| {
        let scan = region.range(from..).take(SCAN_KEYS);
        scan.map(|pair| pair.map(|pair| pair.1.len())).sum()
    })?;
    measure("50 pairs, backward", &mut |from| {
        let scan = region.range(..from).limit(SCAN_KEYS).rev();
        scan.map(|pair| pair.map(|pair| pair.1.len())).sum()
    })?;
    measure("50 keys", &mut |from| {
        let scan = region.range(from..).limit(SCAN_KEYS).keys();
        scan.map(|key| key.map(|key| key.len())).sum()
    })?;
    measure("50 gets", &mut |from| {
        let first: u64 = from.get(4..).and_then(|it| it.parse().ok()).unwrap_or(0);
        let keys: Vec<_> = (first..first + SCAN_KEYS as u64).map(key).collect();
        let values = region.multi_get(&keys)?;
        Ok(values.iter().flatten().map(Vec::len).sum())
    })?;
    store.close()?;
    let _ = std::fs::remove_file(&path);
    Ok(())
}
