//! `kreon-bench depth`: how much of the device's random reads one thread gets by asynchronous gets, from data that
//! do not fit in memory; both measured by turns.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::{StreamExt, stream::FuturesUnordered};
use kreon::{Region, Store};
use kreon_device::{AlignedBuf, Device, FileDevice, FileOptions, Read};

use crate::keys::{fill, hash, key, number};
use crate::meter::{Meter, Taken};
use crate::run::parent::Scratch;

/// Of the raw reads.
const PAGE_BYTES: usize = 4096;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// Records.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Bytes of a value, 8 at the least.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Memory of the store, in MiB: a quarter of the data.
    #[arg(long, default_value_t = 256)]
    memory_mib: usize,
    /// Gets, and raw reads, in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=256))]
    in_flight: u64,
    /// Gets of a round.
    #[arg(long, default_value_t = 200_000)]
    gets: u64,
    /// Rounds; one more warms the memory up.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Folder for the store; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Loads a store and prints the table.
///
/// # Errors
/// If the store or the file system fails, or an answer is wrong.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let path = scratch.0.join("depth.kreon");
    let file = FileOptions {
        create: true,
        ring_depth: settings.in_flight as u32,
        ..FileOptions::default()
    };
    let device = Arc::new(FileDevice::open(&path, &file)?.0);
    let store = Store::options()
        .memory_bytes(settings.memory_mib << 20)
        .open_on(Arc::clone(&device) as Arc<dyn Device>)?;
    let region = store.region("bench")?;
    load(settings, &region)?;
    store.checkpoint()?;
    println!(
        "{} records of {} B, {} MiB of memory, {} in flight, one thread\n",
        settings.records, settings.value_bytes, settings.memory_mib, settings.in_flight
    );
    get_all(settings, &store, &region, 0)?;
    println!("| round | raw reads k/s | gets k/s | of raw | CPU us a get | device reads a get |");
    println!("|---|---|---|---|---|---|");
    for round in 1..=settings.rounds {
        let raw = raw_rate(&device)?;
        let (before, meter) = (store.stats(), Meter::start());
        get_all(settings, &store, &region, round)?;
        let (taken, after) = (meter.stop(), store.stats());
        let Taken {
            seconds,
            cpu_seconds,
        } = taken;
        let gets = settings.gets as f64;
        println!(
            "| {round} | {:.1} | {:.1} | {:.2} | {:.2} | {:.3} |",
            raw / 1e3,
            gets / seconds / 1e3,
            gets / seconds / raw,
            cpu_seconds * 1e6 / gets,
            (after.device_reads - before.device_reads) as f64 / gets,
        );
    }
    drop(region);
    Ok(store.close()?)
}

fn load(settings: &Settings, region: &Region) -> anyhow::Result<()> {
    let (mut name, mut value) = (Vec::new(), vec![0; settings.value_bytes as usize]);
    for n in 0..settings.records {
        key(n, &mut name);
        fill(n, &mut value);
        region.put(&name, &value)?;
    }
    Ok(())
}

/// Gets of records chosen at random, so many in flight at any time.
fn get_all(settings: &Settings, store: &Store, region: &Region, round: u64) -> anyhow::Result<()> {
    let mut wanted = (0..settings.gets).map(|n| hash(n ^ round << 48) % settings.records);
    store.drive(async {
        let start = |record| {
            let mut name = Vec::new();
            key(record, &mut name);
            let get = region.get_async(name);
            async move { (record, get.await) }
        };
        let first = wanted.by_ref().take(settings.in_flight as usize);
        let mut gets: FuturesUnordered<_> = first.map(start).collect();
        while let Some((record, value)) = gets.next().await {
            let value = value?.context("a record is missing")?;
            ensure!(number(&value) == Some(record), "a wrong value");
            gets.extend(wanted.next().map(start));
        }
        Ok(())
    })
}

/// Direct reads of 4 KiB at random places a second, so many in flight from one thread: what the device gives. A thread
/// with `pread` for each read in flight came to the same (93 to 98 k/s against 94 k/s, 64 in flight, two cores).
fn raw_rate(device: &FileDevice) -> anyhow::Result<f64> {
    const TIME: Duration = Duration::from_secs(2);
    /// Reads of a call, which keeps the ring full until its end.
    const READS: usize = 2048;
    let pages = device.len_bytes() / PAGE_BYTES as u64;
    let mut memory = AlignedBuf::new(READS * PAGE_BYTES);
    let (mut count, start) = (0, Instant::now());
    while start.elapsed() < TIME {
        let buffers = memory.chunks_exact_mut(PAGE_BYTES).zip(count..);
        let place = |n| hash(n ^ 1 << 60) % pages * PAGE_BYTES as u64;
        let mut reads: Vec<_> = buffers.map(|(page, n)| Read::new(place(n), page)).collect();
        device.read(&mut reads)?;
        count += READS as u64;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}
