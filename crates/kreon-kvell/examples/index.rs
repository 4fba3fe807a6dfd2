//! Cost of the index: bytes a key, and the time of an insert and of a get, in random order, beside a `BTreeMap`.
//!
//! `cargo run --release -p kreon-kvell --example index -- [KEYS] [N]` (2,000,000 and 32). With N up to 8 the keys have 8
//! random bytes, else 30: `user` and 26 digits. Times are processor time, so that other work on the machine disturbs
//! little; where `/proc` is not, the clock's. The bytes of the `BTreeMap` are how much the resident memory grew by.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use kvell::index::{Index, Location};

/// Bytes of a page of resident memory.
const PAGE_BYTES: u64 = 4096;

/// `SplitMix64`, of a number.
fn mix(number: u64) -> u64 {
    let mut value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Keys of one length in a row.
struct Keys {
    bytes: Vec<u8>,
    key_bytes: usize,
}

impl Keys {
    fn new(count: u64, key_bytes_max: usize) -> Self {
        let short = key_bytes_max <= 8;
        let mut bytes = Vec::new();
        for number in 0..count {
            if short {
                bytes.extend_from_slice(&mix(number).to_be_bytes());
            } else {
                let digits = u128::from(mix(number)) * 4_000_037 + u128::from(number);
                bytes.extend_from_slice(format!("user{digits:026}").as_bytes());
            }
        }
        Self {
            bytes,
            key_bytes: if short { 8 } else { 30 },
        }
    }

    fn get(&self, number: u64) -> &[u8] {
        &self.bytes[number as usize * self.key_bytes..][..self.key_bytes]
    }
}

/// Resident memory of this process in bytes; 0 where `/proc` is not.
fn resident_bytes() -> u64 {
    let statistics = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statistics
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}

/// Processor time of this thread in nanoseconds.
fn processor_ns() -> Option<u64> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    statistics.split(' ').next()?.parse().ok()
}

/// Nanoseconds of each of `count` calls.
fn measure(count: u64, mut call: impl FnMut(u64)) -> f64 {
    let (start, processor) = (Instant::now(), processor_ns());
    for number in 0..count {
        call(number);
    }
    let spent = processor.and_then(|before| Some(processor_ns()? - before));
    spent.unwrap_or(start.elapsed().as_nanos() as u64) as f64 / count as f64
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        arguments
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(default)
    };
    let (count, key_bytes_max) = (number(2_000_000).max(1), number(32) as usize);
    let keys = Keys::new(count, key_bytes_max);
    let place = |number: u64| Location::new(number * 1024).expect("below 2^51");
    let random = |number: u64| keys.get(mix(number ^ 0x5555) % count);

    let mut index = Index::new(key_bytes_max);
    let before = resident_bytes();
    let insert = measure(count, |number| {
        index.insert(keys.get(number), place(number));
    });
    let resident = resident_bytes().saturating_sub(before);
    let get = measure(count, |number| {
        black_box(index.find(black_box(random(number))).next());
    });
    let update = measure(count, |number| {
        let key = keys.get(number);
        index.replace(key, place(number), place(number + 1));
    });
    println!(
        "{count} keys of {} bytes, N = {key_bytes_max}",
        keys.key_bytes
    );
    println!(
        "index     {:5.1} B a key ({:.1} resident), insert {insert:.0} ns, get {get:.0} ns, replace {update:.0} ns",
        index.memory_bytes() as f64 / index.len() as f64,
        resident as f64 / count as f64,
    );

    let before = resident_bytes();
    let mut map: BTreeMap<Box<[u8]>, u64> = BTreeMap::new();
    let insert = measure(count, |number| {
        map.insert(keys.get(number).into(), place(number).offset());
    });
    let resident = resident_bytes().saturating_sub(before);
    let get = measure(count, |number| {
        black_box(map.get(black_box(random(number))));
    });
    println!(
        "BTreeMap  {:5.1} B a key resident, insert {insert:.0} ns, get {get:.0} ns",
        resident as f64 / count as f64
    );
}
