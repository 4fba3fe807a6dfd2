//! CPU time of the calling thread for small puts, single and in batches.
//!
//! `cargo run --release -p kreon-bench --example write_cost [-- KEYS]`; 400,000 keys by default. Values of 20 bytes under
//! keys of 23 bytes in hashed order, into a store in a temporary folder below the current one; no spill runs meanwhile.
//! Linux only, as it reads the CPU time of a thread from `/proc`.

use std::{env, fs};

use kreon::{Durability, Store, WriteBatch};

/// CPU time of this thread in ns.
fn cpu_ns() -> f64 {
    std::thread::yield_now();
    let line = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = line.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys: u64 = env::args()
        .nth(1)
        .and_then(|arg| arg.parse().ok())
        .unwrap_or(400_000);
    let name = |number: u64| format!("user{:019}", mix(number) % 10_u64.pow(19));
    for batch_keys in [1, 10, 100, 1000] {
        let folder = tempfile::tempdir_in(".")?;
        let store = Store::options()
            .memory_bytes(1 << 30)
            .open(folder.path().join("store"))?;
        let region = store.region("r")?;
        let mut cost = [0.0; 2];
        // The first round inserts the keys, the second overwrites them.
        for cost in &mut cost {
            let mut spent = 0.0;
            for start in (0..keys).step_by(10_000) {
                let batches: Vec<WriteBatch> = (start..start + 10_000)
                    .step_by(batch_keys)
                    .map(|first| {
                        let mut batch = WriteBatch::new();
                        for number in first..first + batch_keys as u64 {
                            batch.put(&region, name(number), [7; 20]);
                        }
                        batch
                    })
                    .collect();
                let begin = cpu_ns();
                for batch in batches {
                    store.write(batch, Durability::Buffered)?;
                }
                spent += cpu_ns() - begin;
            }
            *cost = spent / keys as f64;
        }
        println!(
            "batches of {batch_keys:4}: {:4.0} ns a new key, {:4.0} a known one",
            cost[0], cost[1]
        );
        store.close()?;
    }
    Ok(())
}
