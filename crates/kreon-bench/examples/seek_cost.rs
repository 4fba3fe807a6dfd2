//! What seeks and scans of keys cost, by one thread, of a store in memory.
//!
//! ```sh
//! cargo run --release -p kreon-bench --example seek_cost -- [KEYS] [VALUE_BYTES] [ROUNDS]
//! ```

use std::time::Instant;

use kreon::{Durability, Region, Result, Store};

const PAIRS: usize = 100;

/// Hashes a number.
fn mixed(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Prints how long one call takes, best of five stretches.
fn timed(what: &str, rounds: u64, mut call: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let mut best = f64::MAX;
    for stretch in 0..5 {
        let start = Instant::now();
        for round in 0..rounds {
            call(mixed(stretch * rounds + round))?;
        }
        best = best.min(start.elapsed().as_secs_f64() / rounds as f64);
    }
    println!("{what:44} {:8.0} ns {:10.0} /s", best * 1e9, 1.0 / best);
    Ok(())
}

fn measure(region: &Region, keys: u64, rounds: u64) -> Result<()> {
    let key = |chance: u64| (chance % keys).to_be_bytes();
    timed("new scan, one key", rounds, |chance| {
        let mut scan = region.range(key(chance)..).keys();
        scan.next_with(|key| assert!(!key.is_empty()))?;
        Ok(())
    })?;
    let mut scan = region.iter().keys();
    timed("seek, one key", rounds, |chance| {
        scan.seek(key(chance));
        scan.next_with(|key| assert!(!key.is_empty()))?;
        Ok(())
    })?;
    let mut scan = region.iter().keys();
    let mut at = 0;
    timed("seek two keys on, one key", rounds, |_| {
        at = (at + 2) % (keys - 2);
        scan.seek(at.to_be_bytes());
        scan.next_with(|key| assert!(!key.is_empty()))?;
        Ok(())
    })?;
    let hundred = |chance: u64| region.range(key(chance)..).limit(PAIRS);
    timed("new scan, 100 keys", rounds / 10, |chance| {
        let mut scan = hundred(chance).keys();
        while scan.next_with(|key| assert!(!key.is_empty()))?.is_some() {}
        Ok(())
    })?;
    let mut scan = region.iter().limit(PAIRS).keys();
    timed("seek, 100 keys", rounds / 10, |chance| {
        scan.seek(key(chance));
        while scan.next_with(|key| assert!(!key.is_empty()))?.is_some() {}
        Ok(())
    })?;
    timed("new scan, 100 pairs", rounds / 10, |chance| {
        let mut scan = hundred(chance);
        while scan.next_with(|_, value| value.len())?.is_some() {}
        Ok(())
    })
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| -> u64 {
        let given = arguments.next();
        given.map_or(default, |given| given.parse().expect("a number"))
    };
    let (keys, value_bytes, rounds) = (number(1_000_000), number(100) as usize, number(200_000));
    let folder = tempfile::tempdir().expect("a folder for the store");
    let store = Store::options()
        .memory_bytes(1 << 30)
        .open(folder.path().join("store"))?;
    let region = store.region("r")?;
    for number in 0..keys {
        let value = vec![number as u8; value_bytes];
        region.put_with(number.to_be_bytes(), value, Durability::Buffered)?;
    }
    store.checkpoint()?;
    println!("in a level:");
    measure(&region, keys, rounds)?;
    for number in (0..keys).step_by(7) {
        let value = vec![number as u8; value_bytes];
        region.put_with(number.to_be_bytes(), value, Durability::Buffered)?;
    }
    println!("a seventh of the keys in L0', too:");
    measure(&region, keys, rounds)
}
