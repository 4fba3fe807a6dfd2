//! What a scan costs over a million deleted keys: `cargo run --release -p kreon-bench --example dead_keys -- FILE [range]`.
//!
//! It puts and spills 1.1 M pairs of 100 bytes and deletes 1 M of them, by single deletions or by one range deletion.
//! Then it reads the first pair behind the deleted ones and scans all pairs, before and after the spill of the
//! deletions.

use std::time::Instant;

use kreon::{Durability, Region, Result, Store};

const PAIRS: u32 = 1_100_000;
/// Deleted keys, from the first to one past the last.
const DEAD: [u32; 2] = [50_000, 1_050_000];

fn key(number: u32) -> [u8; 16] {
    let mut key = *b"key-000000000000";
    key[8..12].copy_from_slice(&number.to_be_bytes());
    key
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let done = work()?;
    println!(
        "{what:<44} {:>12.3} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );
    Ok(done)
}

fn scans(region: &Region, when: &str) -> Result<()> {
    let first = timed(&format!("{when}: first at the dead range"), || {
        region.range(key(DEAD[0])..).next().transpose()
    })?;
    assert_eq!(
        first.map(|(key, _)| key.to_vec()),
        Some(key(DEAD[1]).to_vec())
    );
    let last = timed(&format!("{when}: last before the end of it"), || {
        region.range(..key(DEAD[1])).next_back().transpose()
    })?;
    assert_eq!(
        last.map(|(key, _)| key.to_vec()),
        Some(key(DEAD[0] - 1).to_vec())
    );
    for round in 1..=2 {
        let count = timed(&format!("{when}: scan of all keys, {round}"), || {
            region
                .iter()
                .keys()
                .try_fold(0, |count, key| key.map(|_| count + 1))
        })?;
        assert_eq!(count, PAIRS - (DEAD[1] - DEAD[0]));
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .unwrap_or_else(|| "dead_keys.kreon".to_owned());
    let as_range = arguments.next().is_some_and(|how| how == "range");
    let _ = std::fs::remove_file(&path);
    let store = Store::options()
        .memory_bytes(1 << 30)
        .l0_bytes(256 << 20)
        .open(&path)?;
    let region = store.region("r")?;
    timed("put 1.1 M", || {
        (0..PAIRS)
            .try_for_each(|number| region.put_with(key(number), [7; 100], Durability::Buffered))
    })?;
    timed("checkpoint", || store.checkpoint())?;
    timed("delete 1 M", || match as_range {
        true => region.delete_range(key(DEAD[0])..key(DEAD[1])),
        false => (DEAD[0]..DEAD[1])
            .try_for_each(|number| region.delete_with(key(number), Durability::Buffered)),
    })?;
    scans(&region, "before the spill")?;
    timed("checkpoint", || store.checkpoint())?;
    scans(&region, "after the spill")?;
    for level in store.stats().levels {
        println!("{level:?}");
    }
    drop((region, store));
    let _ = std::fs::remove_file(&path);
    Ok(())
}
