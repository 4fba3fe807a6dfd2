//! What a data set takes that is overwritten ten times: `cargo run --release -p kreon-tucana --example space -- FILE [keys]`.
//!
//! Keys of 16 bytes with values of 1000 in a new file, then ten times as many updates of random keys: bytes of the volume in
//! use, beside those of keys and values, and how long a round took.

use std::sync::Arc;
use std::time::Instant;

use kreon_device::{FileDevice, FileOptions};
use tucana::{Options, Result, Store};

const VALUE_BYTES: usize = 1000;

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file that is to be made");
    let keys: u64 = arguments
        .next()
        .map_or(200_000, |text| text.parse().expect("keys"));
    let file = FileOptions {
        create: true,
        ..FileOptions::default()
    };
    let (device, _) = FileDevice::open(&path, &file)?;
    let store = Store::open(Arc::new(device), &Options::default())?;
    let region = store.region("default")?;
    let live = keys * (16 + VALUE_BYTES as u64);
    let report = |what: &str, begun: Instant| {
        let (used, seconds) = (store.used_bytes(), begun.elapsed().as_secs_f64());
        println!(
            "{what:10} {:6.0} MB for {:.0} MB: {:.2}; {:.0} k writes a second",
            used as f64 / 1e6,
            live as f64 / 1e6,
            used as f64 / live as f64,
            keys as f64 / seconds / 1e3
        );
    };
    let begun = Instant::now();
    for number in 0..keys {
        region.put(key(number), [0; VALUE_BYTES])?;
    }
    report("loaded", begun);
    let mut state = 1_u64;
    for round in 1..=10_u8 {
        let begun = Instant::now();
        for _ in 0..keys {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            region.put(key((state >> 33) % keys), [round; VALUE_BYTES])?;
        }
        report(&format!("round {round}"), begun);
    }
    let begun = Instant::now();
    assert_eq!(store.verify()?.keys, keys);
    println!("verified in {:.1} s", begun.elapsed().as_secs_f64());
    store.close()
}
