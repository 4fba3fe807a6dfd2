//! Cost of filters when a leaf is rewritten: `cargo run --release -p kreon-format --example filter_cost`.
//!
//! Prints ns an entry for copying runs of entries into fresh leaves, for building their filters, and for queries.

use std::hint::black_box;
use std::time::Instant;

use kreon_base::{
    Attributes, Epoch, Error, LogOffset, Lsn, PAGE_BYTES, PageNo, Payload, RegionId, Result,
};
use kreon_format::{FilterBuilder, Leaf, LeafBuilder, NodeIdentity, StoreId};

const KEYS: u64 = 200_000;
const ROUNDS: u32 = 20;
const IDENTITY: NodeIdentity = NodeIdentity {
    store: StoreId(1),
    page: PageNo(1),
    epoch: Epoch(1),
    region: RegionId(1),
    level: 0,
};

type Page = Box<[u8; PAGE_BYTES]>;

fn main() -> Result<()> {
    let user = |n: u64| format!("user{:019}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2);
    let long = |n: u64| {
        format!(
            "user{:019}-abcdefg",
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2
        )
    };
    measure("keys of 23 bytes", (0..KEYS).map(|n| user(n).into_bytes()))?;
    measure("keys of 31 bytes", (0..KEYS).map(|n| long(n).into_bytes()))?;
    let number = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
    measure("keys of 8 bytes", (0..KEYS).map(number))
}

fn measure(name: &str, keys: impl Iterator<Item = Vec<u8>>) -> Result<()> {
    let mut keys: Vec<_> = keys.collect();
    keys.sort();
    let pages = leaves(&keys)?;
    let copied = per_key(|| {
        let (mut builder, mut page) = (LeafBuilder::new(), Box::new([0; PAGE_BYTES]));
        for old in &pages {
            let leaf = Leaf::open(old)?;
            let middle = leaf.len() / 2;
            builder.push_run(&leaf, 0..middle, PAGE_BYTES)?;
            builder.push_run(&leaf, middle..leaf.len(), PAGE_BYTES)?;
            black_box(builder.finish(&IDENTITY, &mut page)?);
        }
        Ok(())
    })?;
    let mut filters = FilterBuilder::new();
    let built = per_key(|| {
        for page in &pages {
            black_box(filters.build(&Leaf::open(page)?, 10)?);
        }
        Ok(())
    })?;
    let one = filters.build(&Leaf::open(&pages[0])?, 10)?;
    let asked = per_key(|| {
        for _ in &pages {
            let own = &keys[..keys.len() / pages.len()];
            black_box(own.iter().filter(|key| one.may_hold(key)).count());
        }
        Ok(())
    })?;
    println!(
        "{name}: {} leaves, copied {copied:.1}, filter built {built:.1}, asked {asked:.1} ns a key",
        pages.len()
    );
    Ok(())
}

fn leaves(keys: &[Vec<u8>]) -> Result<Vec<Page>> {
    let (mut builder, mut pages) = (LeafBuilder::new(), Vec::new());
    for key in keys {
        let payload = Payload::Logged {
            offset: LogOffset(1 << 30),
            value_bytes: 1000,
            attributes: Attributes::NONE,
        };
        if builder.push(key, Lsn(0), payload).is_err() {
            let mut page = Box::new([0; PAGE_BYTES]);
            builder.finish(&IDENTITY, &mut page)?;
            pages.push(page);
            builder.push(key, Lsn(0), payload)?;
        }
    }
    match pages.is_empty() {
        true => Err(Error::invalid("too few keys")),
        false => Ok(pages),
    }
}

/// The fastest of several rounds, in ns a key.
fn per_key(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        work()?;
        best = best.min(started.elapsed().as_nanos() as f64 / KEYS as f64);
    }
    Ok(best)
}
