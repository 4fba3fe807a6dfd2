//! How fast a store is recovered, beside the same reads without decoding: `cargo run --release -p kreon-kvell --example
//! recovery -- FILE [GiB] [value bytes] [rounds]`.
//!
//! Makes a store of so many GiB of items in FILE (1 GiB of 1024 bytes by default) if there is none. Then for each round: the
//! times of a close and of an opening by the image of the index that it left, and their processor time; the rate of the reads
//! alone, that of an opening that reads everything, and the ratio of the two. The file is opened as stores are, past the page
//! cache where the file system can.

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

/// Bytes of each key in the index: those of the options, and the number of its region. With others an image is not used.
const INDEX_KEY_BYTES: usize = 32 + 4;

/// Items of one call.
const AT_ONCE: u64 = 1000;

/// Takes bytes in and does nothing with them.
struct Nothing;

impl Sink for Nothing {
    fn take_in(&mut self, _: &ExtentHeader, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn end(&mut self) -> Result<bool> {
        Ok(true)
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
    }
    for _ in 0..rounds {
        by_image(&path)?;
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
        index_key_bytes: INDEX_KEY_BYTES,
        memory_bytes: MEMORY_BYTES,
        is_lossless: false,
        store: None,
        creates: true,
        formats: false,
        threads: processors(),
    };
    let device = device(path)?;
    let start = Instant::now();
    let opened = open(device, &opening)?;
    Ok((opened, start.elapsed().as_secs_f64()))
}

/// Processor time of this process in seconds; 0 where `/proc` is not.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name in brackets: user and system time of all threads, ended ones too, in hundredths of a second.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn by_image(path: &PathBuf) -> Result<()> {
    let store = options().open(path)?;
    let (start, before) = (Instant::now(), processor_s());
    store.close()?;
    let (closing_s, closing_cpu_s) = (start.elapsed().as_secs_f64(), processor_s() - before);
    let before = processor_s();
    let (opened, opening_s) = opened(path)?;
    let opening_cpu_s = processor_s() - before;
    let partitions = opened.partitions.iter();
    let keys: u64 = partitions.map(|it| it.parts().index.len()).sum();
    let read_mb = opened.device.stats().reads.bytes as f64 / 1e6;
    println!(
        "{keys} keys: closing {closing_s:.3} s ({closing_cpu_s:.2} of processors), opening by the image {opening_s:.3} s ({opening_cpu_s:.2}), {read_mb:.0} MB read"
    );
    opened.device.unlock()
}

fn round(path: &PathBuf) -> Result<()> {
    let before = processor_s();
    let (opened, opening_s) = opened(path)?;
    let opening_cpu_s = processor_s() - before;
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
        "{gb:.2} GB: reads alone {:.2} GB/s, opening {:.2} GB/s ({opening_cpu_s:.2} s of processors), ratio {:.2}",
        gb / reading_s,
        gb / opening_s,
        reading_s / opening_s
    );
    Ok(())
}
