//! How fast a store is recovered, beside the same reads without decoding: `cargo run --release -p kreon-kvell --example
//! recovery -- FILE [GiB] [value bytes] [rounds]`.
//!
//! Makes a store of so many GiB of items in FILE (1 GiB of 1024 bytes by default) if there is none, and prints the time of
//! an opening by the image of its index. Then for each
//! round the rate of the reads alone, that of a whole opening, and the ratio of the two. The file is opened as stores are,
//! past the page cache where the file system can.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use kreon_base::{PAGE_BYTES, Result};
use kreon_device::{Device, FileDevice, FileOptions, processors};
use kvell::format::{EXTENT_BYTES, ExtentHeader, ItemSeal};
use kvell::opening::{Opened, Opening, Sink, open, read_extents};
use kvell::{Durability, Options};

const MEMORY_BYTES: usize = 4 << 30;

/// Items of one call.
const AT_ONCE: u64 = 1000;

/// Takes bytes in and does nothing with them.
struct Nothing;

impl Sink for Nothing {
    fn take_in(&mut self, _: &ExtentHeader, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().expect("a file"));
    let mut number = |otherwise: u64| {
        let told = arguments.next().map(|it| it.parse().expect("a number"));
        told.unwrap_or(otherwise)
    };
    let (len_gib, value_bytes, rounds) = (number(1), number(1024) as usize, number(3));
    if !has_store(&path) {
        fill(&path, len_gib << 30, value_bytes)?;
        by_image(&path)?;
    }
    for _ in 0..rounds {
        round(&path)?;
    }
    Ok(())
}

/// Whether the file or block device has a store, or is not for this.
fn has_store(path: &PathBuf) -> bool {
    let mut page = [0; PAGE_BYTES];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut page));
    read.is_ok() && page != [0; PAGE_BYTES]
}

fn options() -> Options {
    Options {
        memory_bytes: MEMORY_BYTES,
        ..Options::default()
    }
}

fn fill(path: &PathBuf, len_bytes: u64, value_bytes: usize) -> Result<()> {
    let store = options().open(path)?;
    let region = store.region("r")?;
    let value = vec![7; value_bytes];
    // Keys in no order, as after a long use.
    let key = |number: u64| format!("key {:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let count = len_bytes / value_bytes.max(1) as u64;
    for first in (0..count).step_by(AT_ONCE as usize) {
        let keys: Vec<String> = (first..count.min(first + AT_ONCE)).map(key).collect();
        let puts: Vec<_> = keys.iter().map(|key| (key, Some(&value))).collect();
        region.write_many(&puts, Durability::Buffered)?;
    }
    store.close()
}

fn device(path: &PathBuf) -> Result<Arc<dyn Device>> {
    let (device, _) = FileDevice::open(path, &FileOptions::default())?;
    Ok(Arc::new(device))
}

/// Opens the store. Dropped, it is as after a kill: the next opening reads everything.
fn opened(path: &PathBuf) -> Result<(Opened, f64)> {
    let opening = Opening {
        partitions: 8,
        atomic_bytes: 512,
        index_key_bytes: 32,
        memory_bytes: MEMORY_BYTES,
        is_lossless: false,
        store: None,
        formats: false,
        threads: processors(),
    };
    let device = device(path)?;
    let start = Instant::now();
    let opened = open(device, &opening)?;
    Ok((opened, start.elapsed().as_secs_f64()))
}

fn by_image(path: &PathBuf) -> Result<()> {
    let (opened, opening_s) = opened(path)?;
    let partitions = opened.partitions.iter();
    let keys: u64 = partitions.map(|it| it.parts().index.len()).sum();
    println!("opening by the image of {keys} keys: {opening_s:.3} s");
    opened.device.unlock()
}

fn round(path: &PathBuf) -> Result<()> {
    let (opened, opening_s) = opened(path)?;
    let (in_use, _) = opened.extents.counts();
    let superblock = opened.superblocks.newest();
    let seal = ItemSeal {
        store: superblock.store,
    };
    let mut sinks: Vec<Nothing> = opened.partitions.iter().map(|_| Nothing).collect();
    opened.device.unlock()?;
    drop(opened);
    let (device, start) = (device(path)?, Instant::now());
    let end = superblock.extents_end;
    read_extents(&device, seal, end, processors(), &mut sinks)?;
    let reading_s = start.elapsed().as_secs_f64();
    let gb = f64::from(in_use) * EXTENT_BYTES as f64 / 1e9;
    println!(
        "{gb:.2} GB: reads alone {:.2} GB/s, opening {:.2} GB/s, ratio {:.2}",
        gb / reading_s,
        gb / opening_s,
        reading_s / opening_s
    );
    Ok(())
}
