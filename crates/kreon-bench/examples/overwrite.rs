//! Overwrites a store many times: space, bytes written and processor time, with and without garbage collection.
//!
//! `cargo run --release -p kreon-bench --example overwrite -- FILE [TARGET] [TIMES] [RECORDS] [uniform|zipf]`

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const VALUE_BYTES: usize = 1000;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let target: f64 = arguments.next().as_deref().unwrap_or("1.3").parse()?;
    let times: u64 = arguments.next().as_deref().unwrap_or("10").parse()?;
    let records: u64 = arguments.next().as_deref().unwrap_or("200000").parse()?;
    let is_uniform = arguments.next().is_none_or(|name| name == "uniform");
    _ = std::fs::remove_file(&path);
    let live_bytes = records * (VALUE_BYTES as u64 + 30);
    let store = kreon::Store::options()
        .memory_bytes((live_bytes / 4) as usize)
        .space_amplification(target)
        .open(&path)?;
    let region = store.region("records")?;
    let mut value = [7; VALUE_BYTES];
    for number in 0..records {
        region.put(key(number), value)?;
    }
    store.sync()?;
    let mut dice = 1u64;
    let mut roll = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice.wrapping_mul(0x2545_f491_4f6c_dd1d) as f64 / u64::MAX as f64
    };
    println!(
        "times  k ops/s  CPU us/op  written/byte  space max  space now  stats  victims  freed MiB"
    );
    let (mut worst, mut looked) = (0.0f64, Instant::now());
    for round in 0..times {
        let (begun, cpu, before) = (Instant::now(), cpu_time()?, store.stats());
        let mut round_worst = 0.0f64;
        for step in 0..records {
            let number = match is_uniform {
                true => (roll() * records as f64) as u64,
                // Approximately a Zipf distribution of exponent 1, in scattered order.
                false => ((records as f64).powf(roll()) as u64).wrapping_mul(0x9e37_79b9) % records,
            };
            value[..8].copy_from_slice(&(round << 32 | step).to_le_bytes());
            region.put(key(number.min(records - 1)), value)?;
            if step % 64 == 0 && looked.elapsed() > Duration::from_millis(50) {
                looked = Instant::now();
                let blocks = std::fs::metadata(&path)?.blocks() * 512;
                round_worst = round_worst.max(blocks as f64 / live_bytes as f64);
            }
        }
        let (stats, took) = (store.stats(), begun.elapsed().as_secs_f64());
        let written = (stats.device_write_bytes - before.device_write_bytes) as f64;
        let blocks = std::fs::metadata(&path)?.blocks() * 512;
        println!(
            "{:>5}  {:>7.0}  {:>9.2}  {:>12.2}  {:>9.3}  {:>9.3}  {:>5.2}  {:>7}  {:>9}  spills {}",
            round + 1,
            records as f64 / took / 1e3,
            (cpu_time()? - cpu) * 1e6 / records as f64,
            written / live_bytes as f64,
            round_worst,
            blocks as f64 / live_bytes as f64,
            stats.collection.space_amplification.unwrap_or(1.0),
            stats.collection.victims,
            stats.collection.bytes_freed >> 20,
            stats.spills - before.spills,
        );
        worst = worst.max(round_worst);
    }
    println!("worst {worst:.3}");
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(250));
        let blocks = std::fs::metadata(&path)?.blocks() * 512;
        print!("idle {:.3}  ", blocks as f64 / live_bytes as f64);
    }
    println!("\n{}", store.stats());
    store.close()?;
    Ok(())
}

/// Key of a number, in hashed order.
fn key(number: u64) -> String {
    format!("user{:026}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// CPU time of all threads of the process, in seconds.
fn cpu_time() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let behind = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = behind.split_whitespace().skip(11);
    let user: f64 = fields.next().unwrap_or("0").parse()?;
    let system: f64 = fields.next().unwrap_or("0").parse()?;
    Ok((user + system) / 100.0)
}
