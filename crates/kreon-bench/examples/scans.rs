//! Scans of random ranges, second by second: their rate grows as values are copied into key order.
//!
//! ```sh
//! cargo run --release -p kreon-bench --example scans -- FOLDER [MIB] [SECONDS] [MEMORY_MIB] [SPACE_PERCENT] [on|off] [uniform|zipfian]
//! ```

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kreon::{Region, Result, Store};

const VALUE_BYTES: usize = 1000;
const PAIRS_MAX: u64 = 100;
const THREADS: u64 = 2;

/// Hashes a number.
fn mixed(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

fn key(number: u64) -> String {
    format!("user{:026}", mixed(number))
}

/// User and system time of this process in seconds.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<u64>().ok())
        .sum();
    ticks as f64 / 100.0
}

/// Approximately YCSB's scrambled Zipfian: 0.99 over ten billion items.
fn zipfian(drawn: u64) -> u64 {
    const LESS_THAN_ONE: f64 = 0.01;
    let most = 1e10_f64.powf(LESS_THAN_ONE) - 1.0;
    let share = drawn as f64 / u64::MAX as f64;
    (share * most + 1.0).powf(1.0 / LESS_THAN_ONE) as u64
}

fn scan(
    region: &Region,
    (stop, done): (&AtomicBool, &AtomicU64),
    is_zipfian: bool,
    mut seed: u64,
) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        seed = mixed(seed);
        let pairs = 1 + seed % PAIRS_MAX;
        let number = match is_zipfian {
            true => zipfian(mixed(seed ^ PAIRS_MAX)),
            false => seed,
        };
        let mut scan = region.range(key(number)..).limit(pairs as usize);
        while scan.next_with(|_, value| value.len())?.is_some() {}
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder"));
    let mut number = |default: u64| -> u64 {
        let given = arguments.next();
        given.map_or(default, |given| given.parse().expect("a number"))
    };
    let (mib, seconds, memory_mib) = (number(2048), number(40), number(512));
    let space = number(130) as f64 / 100.0;
    let is_on = arguments.next().is_none_or(|word| word != "off");
    let is_zipfian = arguments.next().is_some_and(|word| word == "zipfian");
    let path = folder.join("scans.kreon");
    _ = std::fs::remove_file(&path);
    let options = Store::options().memory_bytes((memory_mib as usize) << 20);
    let options = options.space_amplification(space);
    let store = options.scan_reorganisation(is_on).open(&path)?;
    let region = store.region("r")?;
    for number in 0..(mib << 20) / (VALUE_BYTES as u64 + 30) {
        region.put(key(number), vec![number as u8; VALUE_BYTES])?;
    }
    store.checkpoint()?;
    println!("  s  scans/s  us CPU  reads    KiB  moved MiB  busy  space  collected MiB");
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (region, stop, done) = (&region, &stop, &done);
            let scans = move || scan(region, (stop, done), is_zipfian, thread);
            threads.spawn(move || scans().expect("a scan"));
        }
        let mut before = (store.stats(), processor_seconds(), 0, Instant::now());
        for second in 1..=seconds {
            std::thread::sleep(Duration::from_secs(1));
            let now = (
                store.stats(),
                processor_seconds(),
                done.load(Ordering::Relaxed),
                Instant::now(),
            );
            let scans = (now.2 - before.2).max(1) as f64;
            println!(
                "{second:3} {:8.0} {:7.0} {:6.1} {:6.1} {:10} {:5.2} {:6.2} {:8}",
                scans / (now.3 - before.3).as_secs_f64(),
                (now.1 - before.1) / scans * 1e6,
                (now.0.device_reads - before.0.device_reads) as f64 / scans,
                (now.0.device_read_bytes - before.0.device_read_bytes) as f64 / scans / 1024.0,
                now.0.reorganisation.bytes_copied >> 20,
                now.0.reorganisation.seconds - before.0.reorganisation.seconds,
                now.0.collection.space_amplification.unwrap_or(1.0),
                now.0.collection.bytes_copied >> 20,
            );
            before = now;
        }
        stop.store(true, Ordering::Relaxed);
    });
    store.close()?;
    _ = std::fs::remove_file(&path);
    Ok(())
}
